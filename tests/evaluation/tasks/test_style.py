"""Scores of STEL and STEL-or-Content equal those by hand, and are right for encoders of only style or only content."""

import csv
import gzip
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from bgt_core.data.clean import copy_key
from bgt_core.data.examples import style_sentences
from bgt_core.data.properties import PROPERTIES
from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import DataError, UsageError
from bgt_core.evaluation.comparison import Result
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks import style as module
from bgt_core.evaluation.tasks.style import BASELINES, Quadruple, Style, built_in, judged, read_stel
from bgt_core.tables import Estimate
from tests.close import FLOAT64, assert_close

HEADER = ["", *module.COLUMNS[:5], "ID", "# Votes out of 5 for Correct Alternative", module.COLUMNS[5]]
ROWS = [  # each row: two anchors, two alternatives, the index of the right alternative, the style
    ["It's late.", "It is late.", "We're here now.", "We are here now.", "1", "contraction"],
    ["They are my friends.", "They're my friends.", "I'm cold, and you?", "I am cold, and you?", "2", "contraction"],
    ['He said "yo".', 'He said "good day".', "I am obliged.", "thx\ta lot", "2", "formality"],
]


def write(path: Path, rows: Sequence[Sequence[str]] = ROWS, header: Sequence[str] = HEADER) -> Path:
    """Write a file in STEL's format: tab-separated columns, with quotes as in CSV."""
    with path.open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out, delimiter="\t", lineterminator="\n")
        table.writerow(header)
        table.writerows([number, *row[:5], f"QQ_{number}", "", *row[5:]] for number, row in enumerate(rows))
    return path


def noise(texts: list[str], lang: str, latent: str) -> np.ndarray:
    """Embed each text as a random vector. Equal texts get equal vectors."""
    return np.stack([np.random.default_rng(crc32(text.encode())).normal(size=4) for text in texts])


def cells(result: Result, measure: str) -> dict[tuple[str, str], list[float | None]]:
    """Return the scores in this measure: (language, style) -> one score for each system, or None."""
    return {
        (key.lang, key.style): [cell.value if isinstance(cell, Estimate) else None for cell in row]
        for key, row in result.scores.items()
        if key.measure == measure
    }


def cosine(left: Mapping[object, float], right: Mapping[object, float]) -> float:
    norms = [math.sqrt(sum(value * value for value in each.values())) for each in (left, right)]
    return sum(value * right.get(name, 0.0) for name, value in left.items()) / math.prod(norms)


def higher(first: float, second: float) -> float:
    equal = abs(first - second) <= FLOAT64 * max(first, second)
    return 0.5 if equal else float(first > second)


def by_hand(vectors: Mapping[str, Mapping[object, float]], rows: Sequence[Sequence[str]]) -> list[tuple[float, float]]:
    """Compute STEL and STEL-or-Content of each row by the formulas of their papers."""
    right = []
    for a1, a2, s1, s2, correct, _ in rows:
        sim = {(a, s): cosine(vectors[a], vectors[s]) for a in (a1, a2) for s in (s1, s2, a2)}
        one = (1 - sim[a1, s1]) ** 2 + (1 - sim[a2, s2]) ** 2
        two = (1 - sim[a1, s2]) ** 2 + (1 - sim[a2, s1]) ** 2
        if correct == "2":
            one, two = two, one
        right.append((higher(two, one), higher(sim[a1, s1 if correct == "1" else s2], sim[a1, a2])))
    return right


def tfidf(terms: Mapping[str, Sequence[str]]) -> dict[str, dict[object, float]]:
    """Compute tf-idf: the count of a term times ln((1 + number of texts) / (1 + number of texts with the term)) + 1."""
    having = Counter(term for each in terms.values() for term in set(each))
    return {
        text: {term: count * (math.log((1 + len(terms)) / (1 + having[term])) + 1) for term, count in each.items()}
        for text, each in ((text, Counter(of)) for text, of in terms.items())
    }


def test_both_scores_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_AVERAGED", 1)
    result = evaluate("style", {"noise": ExternalEncoder("noise", noise)}, write(tmp_path / "a.tsv"), resamples=200)
    assert list(result.systems) == ["noise", "tf-idf of words", "tf-idf of character trigrams"]
    texts = list(dict.fromkeys(text for row in ROWS for text in row[:4]))
    words = {text: re.findall(r"\w+", text.lower()) for text in texts}
    trigrams = {text: [text.lower()[at : at + 3] for at in range(len(text) - 2)] for text in texts}
    vectors = {text: dict(enumerate(row)) for text, row in zip(texts, noise(texts, "en", ""), strict=True)}
    for system, of in enumerate([vectors, tfidf(words), tfidf(trigrams)]):
        rows = by_hand(of, ROWS)
        for number, measure in enumerate(module.MEASURES):
            scores = [100 * row[number] for row in rows]
            expected = {"contraction": sum(scores[:2]) / 2, "formality": scores[2]}
            got = cells(result, measure)
            for style, score in {**expected, "mean": sum(expected.values()) / 2}.items():
                assert_close(got["en", style][system], score)
    assert [key.quadruples for key in result.scores] == [3, 3, 2, 1, 2, 1]
    assert result.about.startswith("3 quadruples in en; ") and "mean: of 2 of the 2 styles" in result.about


def test_a_file_is_read_by_its_columns_and_alternatives_are_put_in_order(tmp_path: Path) -> None:
    first, second, third = read_stel(write(tmp_path / "a.tsv"), "en")
    assert first == ("en", "contraction", ("It's late.", "It is late."), ("We're here now.", "We are here now."))
    assert second.alternatives == ("I am cold, and you?", "I'm cold, and you?")
    assert third == ("en", "formality", ('He said "yo".', 'He said "good day".'), ("thx\ta lot", "I am obliged."))
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress(write(tmp_path / "b.tsv", ROWS[1:]).read_bytes()))
    read = Style(lang="de").load([tmp_path / "b.tsv.gz", write(tmp_path / "c.tsv", ROWS[:1])], seed=0)
    assert [(each.lang, each.anchors[0]) for each in read] == [("de", ROWS[row][0]) for row in (1, 2, 0)]


@pytest.mark.parametrize(("rows", "message"), [
    ([], r"a\.tsv: no rows after the header; expected one or more quadruples\."),
    ([[*ROWS[0][:4], "3", "x"]], r"a\.tsv:2: the correct alternative is '3'; expected 1 or 2\."),
    ([ROWS[0], [*ROWS[1][:3], " ", "1", "x"]], r"a\.tsv:3: expected one field for each column, none of"),
    ([[*ROWS[0][:5], ""]], r"a\.tsv:2: expected one field"),
    ([[*ROWS[0], "one more"]], r"a\.tsv:2: expected one field"),
    ("\t".join(HEADER[:-1]) + "\n", r"no column 'style type'; expected a header with Anchor 1, "),
    ("\t".join(HEADER) + '\n0\t"never closed\n', r"a\.tsv:2: .*; quotes must be paired as in CSV"),
])  # fmt: skip
def test_errors_name_the_file_and_the_line(tmp_path: Path, rows: list[list[str]] | str, message: str) -> None:
    path = tmp_path / "a.tsv"
    if isinstance(rows, str):
        path.write_text(rows, "utf-8")
    with pytest.raises(DataError, match=message):
        read_stel(path if isinstance(rows, str) else write(path, rows))


def test_ties_count_half() -> None:
    def near(gap: float, base: float = 0.5) -> list[list[float]]:
        compared = {("a1", "s2"): base + gap, ("a2", "s2"): 1.0, ("a2", "s1"): 1.0}

        def compare(left: Sequence[str], right: Sequence[str]) -> np.ndarray:
            return np.array([compared.get(pair, base) for pair in zip(left, right, strict=True)])

        return judged(compare, [Quadruple("en", "x", ("a1", "a2"), ("s1", "s2"))]).tolist()

    assert near(0) == near(1e-7) == near(-1e-7) == [[0.5], [0.5]]
    assert near(1e-5) == near(1e-5, 0.999) == [[0], [0.5]]  # STEL counts a wrong choice, STEL-or-Content a tie
    assert near(-1e-5) == [[1], [0.5]]
    one = ExternalEncoder("one", lambda texts, lang, latent: np.ones((len(texts), 2)))
    result = evaluate(Style(lang="tr"), one)
    assert cells(result, "STEL")["tr", "address"][0] == cells(result, "STEL-or-Content")["tr", "address"][0] == 50


def test_built_in_quadruples_have_two_contents_and_two_styles() -> None:
    items = built_in(seed=1)
    by_lang = Counter(each.lang for each in items)
    assert sum(by_lang[lang] for lang in ("en", "fr", "de", "es", "ja")) >= 300 and min(by_lang.values()) >= 5
    assert {(each.lang, each.style) for each in items} == {
        *((lang, "address") for lang in ("fr", "de", "es", "tr")),
        ("fr", "question-form"),
        ("en", "contraction"),
        ("ja", "politeness"),
    }
    meanings: dict[tuple[str, str], set[str]] = {}
    for lang, text, _, translation in style_sentences():
        meanings.setdefault((lang, text), set()).add(copy_key(translation))
    for lang, style, anchors, alternatives in items:
        values = [[PROPERTIES[style].value(text, lang) for text in pair] for pair in (anchors, alternatives)]
        assert values[0] == values[1] and "" not in values[0] and values[0][0] != values[0][1]
        of = [[meanings[lang, text] for text in pair] for pair in (anchors, alternatives)]
        assert of[0][0] & of[0][1] and of[1][0] & of[1][1] and of[0] != of[1]
        assert not {*anchors} & {*alternatives}
        for name, other in PROPERTIES.items():  # the anchors do not differ in any other property
            assert name == style or len({other.value(text, lang) for text in anchors}) == 1
    assert len({(each.style, frozenset(each.anchors)) for each in items}) == len(items)  # no pair occurs twice
    firsts = Counter(PROPERTIES["address"].value(each.anchors[0], "fr") for each in items if each.lang == "fr")
    assert min(firsts["tu"], firsts["vous"]) > 100  # each form is often the first


def one_hot(numbers: Mapping[str, int]) -> ExternalEncoder:
    """Make an encoder of one-hot vectors; `numbers` maps each text to the index of its vector's 1."""

    def encode(texts: list[str], lang: str, latent: str) -> np.ndarray:
        return np.eye(max(numbers.values()) + 1)[[numbers[text] for text in texts]]

    return ExternalEncoder("one-hot", encode)


def test_an_encoder_of_style_is_always_right_and_one_of_content_never() -> None:
    items = [each for each in built_in() if each.style != "question-form"]
    styles: dict[str, int] = {}
    contents: dict[str, int] = {}
    shown = sorted({PROPERTIES[each.style].value(each.anchors[0], each.lang) for each in items})
    for number, (lang, style, anchors, _) in enumerate(items):
        for text in anchors:
            styles[text] = shown.index(PROPERTIES[style].value(text, lang))
            contents[text] = number
    result = evaluate(Style(), {"style": one_hot(styles), "content": one_hot(contents)}, items, resamples=100)
    stel, or_content = cells(result, "STEL"), cells(result, "STEL-or-Content")
    assert len(stel) == len({(each.lang, each.style) for each in items}) + 1
    assert [row[:2] for row in stel.values()] == [[100, 50]] * len(stel)
    assert [row[:2] for row in or_content.values()] == [[100, 0]] * len(stel)


def test_a_system_is_measured_in_its_languages() -> None:
    items = [each for each in built_in() if each.lang in ("de", "en", "es", "fr")]
    english = ExternalEncoder("english", noise, ("en",), ("semantic", "language"))
    result = evaluate(Style(), {"english": english, "two": ExternalEncoder("two", noise, ("fr", "en"))}, items)
    assert list(result.systems) == ["english semantic", "english language", "two", *BASELINES]
    measured = {key: [cell is not None for cell in row] for key, row in cells(result, "STEL").items()}
    assert measured["en", "contraction"] == [True] * 5 and ("en", "mean") not in measured
    assert measured["fr", "address"] == [False, False, True, True, True]
    assert measured["de", "address"] == [False, False, False, True, True]
    stel = cells(evaluate(Style(), {"two": ExternalEncoder("two", noise, ("fr", "en"))}, items), "STEL")
    assert ("fr", "question-form") in stel  # it is measured, but has too few quadruples to be included in the mean
    assert_close(stel["en, fr", "mean"], np.add(stel["en", "contraction"], stel["fr", "address"]) / 2)
    with pytest.raises(UsageError, match=r"german supports it"):
        evaluate(Style(), {"german": ExternalEncoder("x", noise, ("it",))}, items)
    with pytest.raises(UsageError, match=r"Two systems are named 'tf-idf of words'"):
        evaluate(Style(), {"tf-idf of words": ExternalEncoder("x", noise)}, items)

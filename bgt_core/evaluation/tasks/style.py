"""Style: measure whether similarities reflect style (STEL), and more than content (STEL-or-Content).

STEL's files, or built-in pairs of sentences -> quadruples -> similarities -> share of right choices for each style
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.clean import copy_key
from bgt_core.data.columns import UNSPACED, known_lang, primary, takes
from bgt_core.data.examples import differing, style_sentences
from bgt_core.data.properties import PROPERTIES
from bgt_core.data.textfile import text_lines
from bgt_core.errors import DataError
from bgt_core.evaluation.bootstrap import ItemSample, share
from bgt_core.evaluation.comparison import Statistic
from bgt_core.evaluation.systems import systems
from bgt_core.evaluation.task import Latent, Task
from bgt_core.evaluation.tasks.pairs import WORD, fitted, word_cosines
from bgt_core.vectors.arrays import above

MEASURES = ("STEL", "STEL-or-Content")
MEAN = "mean"
MIN_AVERAGED = 30  # a style with fewer quadruples is left out of the mean over styles
COLUMNS = ("Anchor 1", "Anchor 2", "Alternative 1.1", "Alternative 1.2", "Correct Alternative", "style type")
BASELINES = ("tf-idf of words", "tf-idf of character trigrams")
TRIGRAMS = {"analyzer": "char", "ngram_range": (3, 3)}

Compare = Callable[[Sequence[str], Sequence[str]], np.ndarray]  # N left and N right sentences -> N similarities


class Quadruple(NamedTuple):
    """Two sentences with one content in two styles, and two sentences with another content in the same two styles."""

    lang: str
    style: str  # the property of style in which the sentences differ
    anchors: tuple[str, str]
    alternatives: tuple[str, str]  # sentence n has the style of anchor n, and another content


class StyleKey(NamedTuple):
    measure: str
    lang: str
    style: str
    quadruples: int


@dataclass(frozen=True)
class Style(Task[Sequence[Quadruple]]):
    """Style: are sentences with the same style and different content similar (STEL, STEL-or-Content)?

    Two anchors have one content in two styles; two alternatives have another content in the same two styles. STEL
    counts how often similarities match each alternative with the anchor of the same style; chance is 50.
    STEL-or-Content counts how often the first anchor is nearer to the alternative of the same style than to the second
    anchor, which has the same content; an encoder that compares only content scores about 0. Ties count half.

    Baselines are tf-idf of words and of character trigrams, lower-cased and fitted on the same sentences; in languages
    without spaces, each character is a word. A system is measured in the languages that it supports. The mean covers
    all styles that have at least 30 quadruples and that are measured for all systems; a style is a property in one
    language.

    Sources: Wegmann and Nguyen (2021), "Does It Capture STEL?"; Wegmann, Schraagen and Nguyen (2022), "Same Author or
    Just Same Topic?", whose code uses the first anchor, as this task does.
    """

    data = (
        "STEL's files (TSV with a header, also .gz .xz .zst); by default built-in pairs in en, fr, "
        "de, es, tr and ja that differ in form of address, politeness, contraction or form of the question."
    )

    lang: Annotated[
        str | None, "Language of DATA, by default en; without DATA, the language to measure, by default all."
    ] = None
    latent: Latent = None

    def load(self, paths: Sequence[Path], *, seed: int) -> list[Quadruple]:
        if not paths:
            return built_in(self.lang, seed)
        return [each for path in paths for each in read_stel(path, self.lang or "en")]

    def statistic(self, items: Sequence[Quadruple], encoders: Mapping[str, SentenceEncoder], *, seed: int) -> Statistic:
        """Score each quadruple of sentences by each system that supports their language."""
        langs = list(dict.fromkeys(each.lang for each in items))
        rows = systems(encoders, (), self.latent, reserved=BASELINES)
        for name, encoder in encoders.items():
            if not any(takes(encoder.langs, lang) for lang in langs):
                known_lang(langs[0], encoder.langs, name)
        right: dict[tuple[str, str], np.ndarray] = {}  # (language, style) -> scores by both measures, (S, 2, N)
        for lang in langs:
            chosen = [each for each in items if each.lang == lang]
            compared: list[Compare | None] = [
                partial(system.similarities, left_lang=lang, right_lang=lang)
                if takes(system.encoder.langs, lang)
                else None
                for system in rows
            ]
            words = {"token_pattern": r"\w" if primary(lang) in UNSPACED else WORD}
            compared += [partial(tfidf, words), partial(tfidf, TRIGRAMS)]
            scores = np.stack([judged(compare, chosen) for compare in compared])
            for style in dict.fromkeys(each.style for each in chosen):
                right[lang, style] = scores[:, :, [each.style == style for each in chosen]]
        hits = {
            StyleKey(measure, *key, of.shape[2]): of[:, number]
            for number, measure in enumerate(MEASURES)
            for key, of in right.items()
        }
        averaged = {key: of for key, of in right.items() if np.isfinite(of).all() and of.shape[2] >= MIN_AVERAGED}
        several, total = len(averaged) > 1, sum(of.shape[2] for of in averaged.values())
        keys = [
            StyleKey(name, ", ".join(dict.fromkeys(lang for lang, _ in averaged)), MEAN, total) for name in MEASURES
        ]

        def means(weights: Sequence[np.ndarray]) -> dict[StyleKey, np.ndarray]:
            shares = [
                [share(drawn, hit, np.ones_like(hit)) for hit in of.swapaxes(0, 1)]
                for drawn, of in zip(weights, averaged.values(), strict=True)
            ]  # (K, 2, B, S)
            return dict(zip(keys, np.mean(shares, 0), strict=True))

        return Statistic(
            systems=[*(system.name for system in rows), *BASELINES],
            scores=means if several else Statistic.scores,
            samples=[ItemSample(of.shape[2], (2, number)) for number, of in enumerate(averaged.values()) if several],
            hits=hits,
            about=f"{len(items):,} quadruples in {', '.join(langs)}; x 100: share of right choices, ties count half"
            + (f"; mean: of {len(averaged)} of the {len(right)} styles" if several else ""),
        )


TASK = Style


def judged(compare: Compare | None, items: Sequence[Quadruple]) -> np.ndarray:
    """Score each of N quadruples by STEL and STEL-or-Content: 1 if right, 0 if wrong, 0.5 for a tie, (2, N).

    A1 and A2 are the anchors, S1 and S2 the alternatives. STEL compares (1 - sim(A1, S1))² + (1 - sim(A2, S2))² with (1
    - sim(A1, S2))² + (1 - sim(A2, S1))². We compare the square roots of these sums: their rounding errors are no larger
    than those of similarities, so the same tolerance detects ties. STEL-or-Content compares sim(A1, S1) with sim(A1,
    A2). All scores are NaN if `compare` is None.
    """
    if compare is None:
        return np.full((len(MEASURES), len(items)), np.nan)
    a1, a2, s1, s2 = map(list, zip(*(each.anchors + each.alternatives for each in items), strict=True))
    similarity = compare([*a1, *a2, *a1, *a2, *a1], [*s1, *s2, *s2, *s1, *a2])
    first, second, *crossed, content = np.split(similarity, 5)
    ordered, exchanged = np.hypot(1 - first, 1 - second), np.hypot(*(1 - each for each in crossed))
    return np.stack([above(exchanged, ordered), above(first, content)])


def tfidf(settings: Mapping[str, Any], left: Sequence[str], right: Sequence[str]) -> np.ndarray:
    """Return the cosine of the tf-idf vectors of each pair, (N,). The idf is fitted on the same sentences."""
    return word_cosines(fitted(TfidfVectorizer(**settings), left, right), left, right)


def read_stel(path: Path, lang: str = "en") -> list[Quadruple]:
    """Read a file of STEL: tab-separated, with a header, and quoted as in CSV. Columns not in `COLUMNS` are ignored."""
    table = csv.DictReader((f"{line}\n" for _, line in text_lines(path)), delimiter="\t", strict=True)
    items = []
    try:
        if missing := [name for name in COLUMNS if name not in (table.fieldnames or ())]:
            raise DataError(f"{path}: no column '{missing[0]}'; expected a header with {', '.join(COLUMNS)}.")
        for row in table:
            *texts, correct, style = ((row[name] or "").strip() for name in COLUMNS)
            if None in row or not all((*texts, style)):
                raise DataError(f"{path}:{table.line_num}: expected one field for each column, none of them empty.")
            if correct not in ("1", "2"):
                raise DataError(f"{path}:{table.line_num}: the correct alternative is '{correct}'; expected 1 or 2.")
            first, second, *others = texts
            like_first, like_second = others if correct == "1" else others[::-1]
            items.append(Quadruple(lang, style, (first, second), (like_first, like_second)))
    except csv.Error as error:
        raise DataError(f"{path}:{table.reader.line_num}: {error}; quotes must be paired as in CSV.") from None
    if not items:
        raise DataError(f"{path}: no rows after the header; expected one or more quadruples.")
    return items


def built_in(lang: str | None = None, seed: int = 0) -> list[Quadruple]:
    """Make a quadruple of each built-in pair of sentences that differ in one property (`data.examples.differing`).

    The sentences of the pair are the anchors. The alternatives are a pair with another meaning, whose sentences have
    the same two values of the same property. A pair without alternatives is omitted. `seed` determines the
    alternatives, and which sentence of a pair comes first. By default, all languages are used.
    """
    groups: dict[tuple[str, ...], list[tuple[str, dict[str, str]]]] = {}  # pairs: (meaning, {property's value: text})
    for name, *both in differing(style_sentences()):
        of = both[0].lang
        texts = {PROPERTIES[name].value(each.text, of): each.text for each in both}
        groups.setdefault((of, name, *sorted(texts)), []).append((copy_key(both[0].translation), texts))
    known = known_lang(lang, sorted({of for of, *_ in groups}), "the built-in set") if lang else None
    items = []
    for (of, name, *values), pairs in sorted(groups.items()):
        if known not in (None, of):
            continue
        rng = Random(f"{seed} {of} {name} {values}")
        rng.shuffle(pairs)
        for row, (meaning, texts) in enumerate(pairs):
            first, second = rng.sample(values, 2)
            others = (each for other, each in pairs[row + 1 :] + pairs[:row] if other != meaning)
            if partner := next(others, None):
                items.append(Quadruple(of, name, (texts[first], texts[second]), (partner[first], partner[second])))
    return items

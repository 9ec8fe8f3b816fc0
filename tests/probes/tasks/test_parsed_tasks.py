"""Probing tasks derive the right labels from CoNLL-U parses and from bracketed trees."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from bgt_core.data.trees import Parsed, Tree, read_conllu, read_trees
from probes.task import Items
from probes.tasks import TASKS
from probes.tasks.coord_inv import clauses, invert
from probes.tasks.depth import depth


def parse(tmp_path: Path, *sentences: str) -> list[Parsed]:
    """Parse sentences of one word per line: form (after "+" if no space), part of speech, head, relation, features."""
    blocks = []
    for sentence in sentences:
        rows = [line.split() for line in sentence.strip().splitlines()]
        glued = [row[0].startswith("+") for row in rows[1:]] + [False]
        blocks.append(
            "".join(
                f"{number}\t{form.removeprefix('+')}\t_\t{upos}\t_\t{feats}\t{head}\t{relation}\t_\t"
                f"{'SpaceAfter=No' if close else '_'}\n"
                for number, ((form, upos, head, relation, feats), close) in enumerate(zip(rows, glued, strict=True), 1)
            )
        )
    file = tmp_path / "en_own-ud-test.conllu"
    file.write_text("\n".join(blocks), "utf-8")
    return read_conllu([file])


def clause(subject: str, number: str, verb: str, tense: str, thing: str, things: str) -> str:
    return f"""
The DET 2 det _
{subject} NOUN 3 nsubj Number={number}
{verb} VERB 0 root Tense={tense}|VerbForm=Fin
{thing} NOUN 3 obj Number={things}
+. PUNCT 3 punct _
"""


FIVE = (
    clause("cat", "Sing", "chased", "Past", "mice", "Plur"),
    clause("dogs", "Plur", "chase", "Pres", "cats", "Plur"),
    clause("girl", "Sing", "eats", "Pres", "bread", "Sing"),
    clause("boys", "Plur", "ate", "Past", "soup", "Sing"),
    "She PRON 3 nsubj Number=Sing\nhas AUX 3 aux Tense=Pres|VerbForm=Fin\nslept VERB 0 root Tense=Past|VerbForm=Part",
)
TEXTS = ["The cat chased mice.", "The dogs chase cats.", "The girl eats bread.", "The boys ate soup."]


@pytest.mark.parametrize(
    ("task", "labels"),
    [
        ("subj-num", ["Sing", "Plur", "Sing", "Plur"]),
        ("obj-num", ["Plur", "Plur", "Sing", "Sing"]),
        ("tense", ["Past", "Pres", "Pres", "Past"]),
    ],
)
def test_number_and_tense_of_the_main_clause_and_one_sentence_skipped(
    tmp_path: Path, task: str, labels: list[str]
) -> None:
    items = TASKS[task].builds["conllu"](parse(tmp_path, *FIVE), "en", Random(0))
    assert dict(zip(items.sentences, items.labels, strict=True)) == dict(zip(TEXTS, labels, strict=True))


@pytest.mark.parametrize("relation", ["nsubj", "nsubj:pass"])
def test_a_subject_that_is_not_a_single_common_noun_is_skipped(tmp_path: Path, relation: str) -> None:
    plural = f"cats NOUN 2 {relation} Number=Plur\nsleep VERB 0 root _"
    singular = f"cat NOUN 2 {relation} Number=Sing\nsleeps VERB 0 root _"
    skipped = [
        f"Ann PROPN 2 {relation} Number=Sing\nsleeps VERB 0 root _",
        f"team NOUN 2 {relation} Number=Coll\nsleeps VERB 0 root _",
        f"dog NOUN 4 {relation} Number=Sing\nand CCONJ 3 cc _\nhorse NOUN 1 conj Number=Sing\neat VERB 0 root _",
        f"dog NOUN 3 {relation} Number=Sing\nhorse NOUN 3 {relation} Number=Sing\neat VERB 0 root _",
    ]
    items = TASKS["subj-num"].builds["conllu"](parse(tmp_path, plural, singular, *skipped), "en", Random(0))
    assert sorted(items.sentences) == ["cat sleeps", "cats sleep"]


def test_sentences_with_the_same_noun_are_a_group_and_labels_are_balanced(tmp_path: Path) -> None:
    forms = [("cat", "Sing"), ("Cat", "Sing"), ("dog", "Sing"), ("cats", "Plur")]
    sentences = [f"{form} NOUN 2 nsubj Number={number}\nsleeps VERB 0 root _" for form, number in forms]
    sentences += ["dogs NOUN 3 nsubj Number=Plur\nnever ADV 3 advmod _\nsleep VERB 0 root _"]
    items = TASKS["subj-num"].builds["conllu"](parse(tmp_path, *sentences), "en", Random(0))
    assert Counter(items.labels) == {"Sing": 2, "Plur": 2}
    every = TASKS["subj-num"].builds["conllu"](parse(tmp_path, *sentences[:2], *sentences[3:]), "en", Random(0))
    group = dict(zip(every.sentences, every.groups, strict=True))
    assert group["cat sleeps"] == group["Cat sleeps"] != group["cats sleeps"]


@pytest.mark.parametrize(
    ("sentence", "label"),
    [
        ("Il PRON 2 nsubj _\ndormait VERB 0 root Tense=Imp|VerbForm=Fin", "Past"),
        ("Elle PRON 3 nsubj _\nest AUX 3 cop Tense=Pres|VerbForm=Fin\ngrande ADJ 0 root _", "Pres"),
        ("Geldi VERB 0 root Tense=Past|Mood=Ind", "Past"),
        ("Il PRON 3 nsubj _\na AUX 3 aux:tense Tense=Pres|VerbForm=Fin\ndormi VERB 0 root Tense=Past", None),
        ("Dormant VERB 0 root Tense=Pres|VerbForm=Part", None),
        ("Viendra VERB 0 root Tense=Fut|VerbForm=Fin", None),
    ],
)
def test_tense_is_that_of_the_only_finite_verb(tmp_path: Path, sentence: str, label: str | None) -> None:
    other = "dormit VERB 0 root Tense=Past|VerbForm=Fin" if label == "Pres" else "dort VERB 0 root Tense=Pres"
    parsed = parse(tmp_path, sentence, other)
    items = TASKS["tense"].builds["conllu"](parsed, "fr", Random(0))
    assert dict(zip(items.sentences, items.labels, strict=True)).get(parsed[0].text()) == label


def test_depth_is_the_longest_path_from_the_root_without_punctuation(tmp_path: Path) -> None:
    rain, cat, chain = parse(
        tmp_path,
        "Rain NOUN 0 root _\n+. PUNCT 1 punct _",
        FIVE[0],
        "a X 2 dep _\nb X 3 dep _\nc X 4 dep _\nd X 0 root _",
    )
    assert (depth(rain), depth(cat), depth(chain)) == (1, 3, 4)
    items = TASKS["depth"].builds["conllu"]([rain, cat, chain, cat], "en", Random(0))
    assert dict(zip(items.sentences, items.labels, strict=True)) == {"Rain.": "1", TEXTS[0]: "3", "a b c d": "4"}


def nested(word: str, depth: int) -> Tree:
    """Make a tree of one word under `depth` nested constituents."""
    return Tree("X", (nested(word, depth - 1),)) if depth else Tree("N", word=word)


def test_depth_keeps_a_limited_number_per_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probes.tasks.depth.AT_MOST", 3)
    trees = [nested(f"word{number}", 4 + (number > 7)) for number in range(10)]
    items = TASKS["depth"].builds["trees"](trees, "en", Random(0))
    assert Counter(items.labels) == {"4": 3, "5": 2}


JOINED = """
{first} {upos} 2 nsubj _
{verb} VERB 0 root _
+, PUNCT 6 punct _
but CCONJ 6 cc _
they PRON 6 nsubj _
laughed VERB 2 conj _
{more}+. PUNCT 2 punct _
"""


def joined(first: str = "She", upos: str = "PRON", verb: str = "cried", more: str = "") -> str:
    return JOINED.format(first=first, upos=upos, verb=verb, more=more)


@pytest.mark.parametrize(
    ("sentence", "lang", "expected"),
    [
        (joined(), "en", "They laughed, but she cried."),
        (joined("Ann", "PROPN"), "en", "They laughed, but Ann cried."),
        (joined("I"), "en", "They laughed, but I cried."),
        (joined("Kinder", "NOUN"), "de", "They laughed, but Kinder cried."),
        (joined("Kinder", "NOUN"), "en", "They laughed, but kinder cried."),
        (joined("İyi", "ADJ").replace("they", "içki"), "tr", "İçki laughed, but iyi cried."),
        (joined().replace("cried VERB", "and CCONJ"), "en", None),  # skipped: two conjunctions
        (joined().replace("they PRON 6 nsubj", "often ADV 6 advmod"), "en", None),  # no subject in the second clause
        (FIVE[0], "en", None),
    ],
)
def test_two_clauses_are_exchanged(tmp_path: Path, sentence: str, lang: str, expected: str | None) -> None:
    (parsed,) = parse(tmp_path, sentence)
    parts = clauses(parsed)
    assert (parts and invert(parsed, parts, lang)) == expected


def test_the_order_of_clauses_does_not_depend_on_their_length(tmp_path: Path) -> None:
    longer = "again ADV 6 advmod _\n"
    # four sentences have a longer second clause, and four have clauses of equal length
    sentences = [joined(verb=f"cried{number}", more=longer * (number % 2)) for number in range(8)]
    first_longer = [
        f"He PRON 2 nsubj _\nwept{number} VERB 0 root _\nvery ADV 4 advmod _\nlong ADV 2 advmod _\nand CCONJ 7 cc _\n"
        "we PRON 7 nsubj _\nsang VERB 2 conj _\n+. PUNCT 2 punct _"
        for number in range(3)
    ]
    parsed = parse(tmp_path, *sentences, *first_longer)
    items = TASKS["coord-inv"].builds["conllu"](parsed, "en", Random(0))
    # two items have a longer first clause, two have a longer second clause, and four have clauses of equal length
    assert Counter(items.labels) == {"O": 4, "I": 4}
    longer_first: Counter[tuple[str, bool]] = Counter()
    for sentence, label in zip(items.sentences, items.labels, strict=True):
        start, end = sentence.replace(", but", " and").split(" and ")
        if len(start.split()) != len(end.split()):
            longer_first[label, len(start.split()) > len(end.split())] += 1
    assert set(longer_first.values()) == {1}
    originals = {sentence.text() for sentence in parsed}
    assert all((text in originals) == (label == "O") for text, label in zip(items.sentences, items.labels, strict=True))
    assert len(set(items.groups)) == 8


def top(trees: str, tmp_path: Path) -> Items:
    file = tmp_path / "en.mrg"
    file.write_text(trees, "utf-8")
    return TASKS["top-const"].builds["trees"](read_trees([file]), "en", Random(0))


def test_top_constituents_and_the_sequences_that_are_skipped(tmp_path: Path) -> None:
    items = top(
        "( (S (NP-SBJ (NN Rain)) (VP (VBZ falls)) (. .)) )\n"
        "(ROOT (S (NP (PRP It)) (ADVP (RB still)) (VP (VBZ rains)) (. .)))\n"
        "(S (VP (VB Go)) (. !))\n"
        "(S (ADVP (RB Now)) (, ,) (NP (PRP it)) (VP (VBZ rains)) (. .))\n"  # skipped: has a comma inside
        "(S (NP (PRP It)) (VP (VBZ rains)))\n",  # skipped: no mark at the end
        tmp_path,
    )
    assert dict(zip(items.sentences, items.labels, strict=True)) == {
        "Rain falls.": "NP_VP_.",
        "It still rains.": "NP_ADVP_VP_.",
        "Go!": "VP_.",
    }


def test_rare_sequences_have_a_common_label(tmp_path: Path) -> None:
    rows = [
        f"(S (A{letter} (X w{letter}{n})) (VP (V v)) (. .))" for letter in "bcdefghijklmnopqrstuv" for n in range(2)
    ]
    items = top("\n".join(rows[:-2]) + "\n(S (Z (X once)) (. .))", tmp_path)
    counts = Counter(items.labels)
    assert len(counts) == 20
    assert counts["OTHER"] == 3  # the 20th and 21st most frequent sequences, of two trees and one, share a label

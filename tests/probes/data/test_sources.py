"""Readers of labels, parses and trees; the search for sources in folders; items and their card."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from bgt_core.data.trees import Tree, read_conllu, read_trees
from bgt_core.errors import BgtError
from probes.data.load import load_items
from probes.data.sources import (
    CORPORA,
    find_source,
    pair_of,
    provenance_of,
    read_labelled,
    read_sentences,
    read_texts,
)
from probes.task import Items
from probes.tasks import TASKS


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    file.write_bytes(lzma.compress(data) if file.suffix == ".xz" else data)
    return file


LABELLED = (
    "tr\tNNS\tThe cats sleep , Ann .\n"
    "va\tNN\t42\tmore\tA dog barks .\n"
    "te\tNN\tHe 's home .\n"
    "te\tNNS\tThe CATS sleep - Ann\n"
)


def test_sentevals_rows_are_read_as_they_stand_first_second_and_last_cell(tmp_path: Path) -> None:
    items = read_labelled(write(tmp_path / "subj_number.txt", LABELLED), "en")
    assert items == Items(
        ["The cats sleep, Ann.", "A dog barks.", "He's home.", "The CATS sleep - Ann"],
        ["NNS", "NN", "NN", "NNS"],
        [0, 1, 2, 0],  # the same letters
        ["train", "dev", "test", "test"],
    )


def test_versions_in_another_order_are_one_group_where_the_task_says_so(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tsv", "tr\tO\tWe saw it .\nte\tI\tWe it saw .\n")
    assert read_labelled(file, "en").groups == [0, 1]
    assert read_labelled(file, "en", reordered=True).groups == [0, 0]


def test_quotes_left_by_a_csv_writer_go(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tsv", 'tr\tx\t"She said "" no "" twice ."\ntr\tx\t" No " , she said .\n')
    assert read_labelled(file, "en").sentences == ['She said "no" twice.', '"No", she said.']


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tr\tNN\ta\ntr\tNN\n", ":2: 2 of 3 columns"),
        ("tr\tNN\ta\ntrain\tNN\ta\n", ":2: split 'train'; expected tr, va, te"),
        ("tr\t \ta\n", ":1: an empty label"),
        ("tr\tx\t\u200b\n", ":1: an empty sentence"),
        ("", "is empty"),
    ],
)
def test_a_bad_labelled_line_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BgtError, match=message) as caught:
        read_labelled(write(tmp_path / "a.tsv", text), "en")
    assert caught.value.exit_code == 4


CONLLU = """# sent_id = 1
1\tVa\taller\tVERB\t_\tMood=Imp\t0\troot\t_\t_
2-3\tau\t_\t_\t_\t_\t_\t_\t_\t_
2\tà\tà\tADP\t_\t_\t4\tcase\t_\t_
3\tle\tle\tDET\t_\t_\t4\tdet\t_\t_
4\tbois\tbois\tNOUN\t_\tGender=Masc|Number=Sing\t1\tobl:arg\t_\tSpaceAfter=No
4.1\tvide\t_\t_\t_\t_\t_\t_\t_\t_
5\t.\t.\tPUNCT\t_\t_\t1\tpunct\t_\t_

"""


def test_conllu_reads_what_is_written_and_what_hangs_on_what(tmp_path: Path) -> None:
    (sentence,) = read_conllu([write(tmp_path / "fr_x-ud-test.conllu.xz", CONLLU)])
    assert sentence.text() == "Va au bois."
    assert sentence.root.form == "Va"
    assert [word.form for word in sentence.children[4]] == ["à", "le"]
    assert sentence.under(sentence.words[3]) == {2, 3, 4}
    assert sentence.words[3].feats == {"Gender": "Masc", "Number": "Sing"}
    assert sentence.words[3].is_a("obl") and not sentence.words[3].is_a("obj")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("5\t.\t.", "5\t.", ":8: 9 columns"),
        ("4\tbois", "x\tbois", ":2: sentence with a bad number"),
        ("Mood=Imp", "Imp", ":2: sentence with a bad number or feature"),
        ("_\t4\tdet", "_\t_\tdet", ":2: sentence with a bad number or feature: word 3, le"),
        ("1\tVa", "# a comment\n1 Va", ":3: 9 columns"),
        ("5\t.\t.", "6\t.\t.", ":2: sentence whose words are not numbered"),
        ("_\t1\tpunct", "_\t0\tpunct", ":2: sentence with 2 roots"),
        ("_\t1\tpunct", "_\t9\tpunct", "a head that is not a word"),
        ("_\t4\tdet", "_\t3\tdet", ":2: sentence with a cycle"),
    ],
)
def test_a_bad_parse_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(BgtError, match=message):
        read_conllu([write(tmp_path / "a.conllu", CONLLU.replace(old, new, 1))])


def test_trees_lose_traces_and_functions_and_count_constituents(tmp_path: Path) -> None:
    text = "( (S (NP-SBJ-1 (DT The) (NN cat)) (VP (VBZ sleeps)\n  (NP (-NONE- *T*-1)) (ADVP=2 (RB here))) (. .)) )\n"
    text += "(X (Y a) (Z b))"
    cat, plain = read_trees([write(tmp_path / "a.mrg", text)])
    assert (cat.text("en"), cat.label, cat.depth) == ("The cat sleeps here.", "S", 3)
    assert [child.label for child in cat.children] == ["NP", "VP", "."]
    assert [(leaf.label, leaf.word) for leaf in cat.leaves][2:] == [("VBZ", "sleeps"), ("RB", "here"), (".", ".")]
    assert plain == Tree("X", (Tree("Y", word="a"), Tree("Z", word="b")))
    assert (plain.text("en"), plain.depth) == ("a b", 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NN Rain)\n", ":1: a bracket that is never closed"),
        ("(S (NN Rain)))\n", r":1: '\)' outside"),
        ("\nword (S (NN Rain))\n", ":2: 'word' outside"),
        ("(S (NN Rain) falls)\n", ":1: word 'falls' without a part of speech"),
        ("(S (NN Rain (X y)))\n", ":1: a bracket after the word 'Rain'"),
        ("\n" + 300 * "(S ", ":2: 200 open brackets"),
    ],
)
def test_a_bad_tree_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BgtError, match=message):
        read_trees([write(tmp_path / "a.mrg", text)])


def test_sentences_that_share_a_translation_are_one_group(tmp_path: Path) -> None:
    pairs = write(tmp_path / "en-fr.own.tsv", "I am tired.\tJe suis las.\nI am tired.\tJe suis lasse.\nHi.\tSalut.\n")
    alone = write(tmp_path / "fr.txt", "Salut.\nBon.\n")
    french = read_texts([pairs, alone], ["fr"])["fr"]
    assert french.sentences == ["Je suis las.", "Je suis lasse.", "Salut.", "Bon."]
    assert french.groups[0] == french.groups[1]
    assert len(set(french.groups)) == 3
    with pytest.raises(BgtError, match=r"own\.tsv:1: 2 columns; give one sentence per line, as from: cut -f1 FILE"):
        read_sentences(write(tmp_path / "own.tsv", "Salut.\tHi.\n"))
    assert pair_of(tmp_path / "en-zh-Hant.own.tsv") == ("en", "zh-Hant") and pair_of(tmp_path / "zh-Hant.tsv") is None


def test_a_folder_gives_its_best_source(tmp_path: Path) -> None:
    write(tmp_path / "subj_number.txt", LABELLED)
    write(tmp_path / "xprobe/en/subj_number.tsv.xz", LABELLED)
    write(tmp_path / "xprobe/fr/subj_number.tsv.xz", LABELLED)
    write(tmp_path / "ud/es_own-ud-train.conllu", CONLLU)
    write(tmp_path / "de/a.conllu", CONLLU)
    write(tmp_path / "gum/en/a.mrg", "(S (NN Rain))")
    write(tmp_path / "text/en-fr.own.tsv", "Hi.\tSalut.\n")
    write(tmp_path / "text/fr.txt", "Salut.\n")

    def source_of(task: str, lang: str) -> tuple[str, list[str]]:
        source = find_source(tmp_path, TASKS[task], lang)
        return source.kind, [file.relative_to(tmp_path).as_posix() for file in source.files]

    assert source_of("subj-num", "en") == ("labelled", ["subj_number.txt"])
    assert source_of("subj-num", "fr") == ("labelled", ["xprobe/fr/subj_number.tsv.xz"])
    assert find_source(tmp_path / "xprobe/fr", TASKS["subj-num"], "fr").kind == "labelled"
    with pytest.raises(BgtError, match="No 'en' data"):
        find_source(tmp_path / "xprobe/fr", TASKS["subj-num"], "en")
    assert source_of("subj-num", "es") == ("conllu", ["ud/es_own-ud-train.conllu"])
    assert source_of("depth", "de") == ("conllu", ["de/a.conllu"])
    assert source_of("depth", "en") == ("trees", ["gum/en/a.mrg"])
    assert source_of("length", "fr") == ("text", ["text/en-fr.own.tsv", "text/fr.txt"])
    assert source_of("lang-id", "en-fr") == ("texts", ["text/en-fr.own.tsv"])


def test_pairs_with_a_score_are_no_translations(tmp_path: Path) -> None:
    scored = write(tmp_path / "sts17/en-ar.tsv", "1.4\tTwo men cry.\tرجلان\n")
    with pytest.raises(BgtError, match=r"No 'en' data for task 'length'.*passed over sts17/en-ar.tsv: 3 columns"):
        find_source(tmp_path, TASKS["length"], "en")
    pairs = write(
        tmp_path / "text/en-ar.own.tsv.xz", "".join(f"Word {'x ' * (n % 9)}{n}\tكلمة {n}\n" for n in range(400))
    )
    source = find_source(tmp_path, TASKS["length"], "en")
    assert source.files == (pairs,)
    dataset = load_items(TASKS["length"], "en", tmp_path)
    assert len(dataset.items.labels) == 400
    assert (
        dataset.about["card"]["notes"][0]
        == f"passed over {scored.relative_to(tmp_path)}: 3 columns, translations have 2"
    )
    assert find_source(tmp_path, TASKS["lang-id"], "en-ar").files == (pairs,)


@pytest.mark.parametrize(
    ("task", "lang", "message", "code"),
    [
        ("subj-num", "tr", "No 'tr' data for task 'subj-num' in .*: it needs subj_number.txt or .tsv", 3),
        ("gender", "es", "it needs text", 3),
        ("gender", "en", "available: fr, es", 2),
        ("lang-id", "fr", "needs two or more languages", 2),
        ("length", "en-fr", "needs one language", 2),
        ("lang-id", "fr-ja", "No 'fr-ja' data", 3),
    ],
)
def test_what_a_folder_lacks_is_said(tmp_path: Path, task: str, lang: str, message: str, code: int) -> None:
    write(tmp_path / "fr.txt", "Salut.\n")
    with pytest.raises(BgtError, match=message) as caught:
        find_source(tmp_path, TASKS[task], lang)
    assert caught.value.exit_code == code


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [("any.tsv", LABELLED, "labelled"), ("x.conllu.xz", CONLLU, "conllu"), ("x.mrg", "(S (NN A))", "trees")],
)
def test_a_file_given_by_name_tells_what_it_holds(tmp_path: Path, name: str, text: str, kind: str) -> None:
    assert find_source(write(tmp_path / name, text), TASKS["depth"], "fr").kind == kind


def test_a_file_that_a_task_cannot_use_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BgtError, match=r"'depth' can't be labelled from this; it needs tree_depth\.txt"):
        find_source(write(tmp_path / "plain.txt", "Hi.\n"), TASKS["depth"], "en")
    with pytest.raises(BgtError, match="absent: no such file or folder"):
        find_source(tmp_path / "absent", TASKS["depth"], "en")


def test_a_corpus_is_not_recognised_by_a_folder_far_above_its_files(tmp_path: Path) -> None:
    def about(path: str) -> str:
        return provenance_of(tmp_path / path, "sentences").about

    assert about("xprobe/en/tense.tsv") != about("xprobe/mine/en/tense.tsv") == CORPORA["unknown"].about
    assert about("mine/en-fr.un.tsv") == about("un/en.txt") != about("un/home/texts/en.txt")


def test_sentences_are_read_from_text(tmp_path: Path) -> None:
    text = write(tmp_path / "a.txt.xz", "Été.\r\n\nDeux  mots.\nÉté.\n")
    assert read_sentences(text) == ["Été.", "Deux mots."]
    text.write_bytes(lzma.compress(b"text" * 99)[:-9])
    with pytest.raises(BgtError, match=r"a\.txt.xz is cut short or damaged"):
        read_sentences(text)

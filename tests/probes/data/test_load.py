"""Probes find data in folders, read labels, parses and trees, and describe the data of a task in a card."""

import hashlib
import json
import lzma
from collections import Counter
from pathlib import Path

import pytest

from bgt_core.data.trees import Tree, read_conllu, read_trees
from bgt_core.errors import BgtError
from probes.data import load
from probes.data.load import CORPORA, EXAMPLES, GRAMMAR, find_source, load_items, pair_of, read_labelled, read_texts
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


def test_sentevals_rows_are_split_label_and_last_cell(tmp_path: Path) -> None:
    items = read_labelled(write(tmp_path / "subj_number.txt", LABELLED), "en")
    assert items == Items(
        ["The cats sleep, Ann.", "A dog barks.", "He's home.", "The CATS sleep - Ann"],
        ["NNS", "NN", "NN", "NNS"],
        [0, 1, 2, 0],  # the first and the last sentence have the same words
        ["train", "dev", "test", "test"],
    )
    file = write(tmp_path / "a.tsv", "tr\tO\tWe saw it .\nte\tI\tWe it saw .\n")
    assert read_labelled(file, "en").groups == [0, 1]
    assert read_labelled(file, "en", reordered=True).groups == [0, 0]
    # The first line has the quotes that a CSV writer adds.
    file.write_text('tr\tx\t"She said "" no "" twice ."\ntr\tx\t" No " , she said .\n')
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
def test_an_invalid_labelled_line_is_named(tmp_path: Path, text: str, message: str) -> None:
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


def test_conllu_has_the_written_text_and_the_tree(tmp_path: Path) -> None:
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
        ("_\t4\tdet", "_\t_\tdet", ":2: sentence whose word 3, le, has no head"),
        ("5\t.\t.", "6\t.\t.", ":2: sentence whose words are not numbered"),
        ("_\t1\tpunct", "_\t0\tpunct", ":2: sentence with 2 roots"),
        ("_\t1\tpunct", "_\t9\tpunct", "a head that is not a word"),
        ("_\t4\tdet", "_\t3\tdet", ":2: sentence with a cycle"),
    ],
)
def test_an_invalid_parse_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(BgtError, match=message):
        read_conllu([write(tmp_path / "a.conllu", CONLLU.replace(old, new, 1))])


def test_trees_are_read_without_traces_and_functions(tmp_path: Path) -> None:
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
        ("(S (NN Rain)\n", ":1: this bracket is never closed"),
        ("\nword (S (NN Rain))\n", ":2: 'word' outside"),
        ("(S (NN Rain) falls)\n", ":1: word 'falls' without a part of speech"),
        ("(S (NN Rain (X y)))\n", ":1: a bracket after the word 'Rain'"),
        ("\n" + 300 * "(S ", ":2: 200 open brackets"),
    ],
)
def test_an_invalid_tree_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BgtError, match=message):
        read_trees([write(tmp_path / "a.mrg", text)])


def test_sentences_that_share_a_translation_are_one_group(tmp_path: Path) -> None:
    pairs = write(tmp_path / "en-fr.own.tsv", "I am tired.\tJe suis las.\nI am tired.\tJe suis lasse.\nHi.\tSalut.\n")
    alone = write(tmp_path / "fr.txt", "Salut.\nBon.\n")
    french = read_texts([pairs, alone], ["fr"])["fr"]
    assert french.sentences == ["Je suis las.", "Je suis lasse.", "Salut.", "Bon."]
    assert french.groups[0] == french.groups[1]
    assert len(set(french.groups)) == 3
    assert pair_of(tmp_path / "en-zh-Hant.own.tsv") == ("en", "zh-Hant") and pair_of(tmp_path / "zh-Hant.tsv") is None


def test_the_best_source_of_a_folder_is_used(tmp_path: Path) -> None:
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
    for name, text, kind in (("any.tsv", LABELLED, "labelled"), ("x.conllu.xz", CONLLU, "conllu"),
                             ("x.mrg", "(S (NN A))", "trees")):  # fmt: skip
        assert find_source(write(tmp_path / name, text), TASKS["depth"], "fr").kind == kind


def test_a_tsv_of_similarity_scores_is_not_used(tmp_path: Path) -> None:
    write(tmp_path / "sts17/en-ar.tsv", "1.4\tTwo men cry.\tرجلان\n")
    with pytest.raises(BgtError, match=r"No 'en' data for task 'length'.*passed over sts17/en-ar.tsv: 3 columns"):
        find_source(tmp_path, TASKS["length"], "en")
    text = "".join(f"Word {'x ' * (n % 9)}{n}\tكلمة {n}\n" for n in range(400))
    pairs = write(tmp_path / "text/en-ar.own.tsv.xz", text)
    assert find_source(tmp_path, TASKS["length"], "en").files == (pairs,)
    dataset = load_items(TASKS["length"], "en", tmp_path)
    assert len(dataset.items.labels) == 400
    assert dataset.about["card"]["notes"][0] == "passed over sts17/en-ar.tsv: 3 columns, translations have 2"
    assert find_source(tmp_path, TASKS["lang-id"], "en-ar").files == (pairs,)


@pytest.mark.parametrize(
    ("file", "task", "lang", "message", "code"),
    [
        ("", "subj-num", "tr", "No 'tr' data for task 'subj-num' in .*: it needs subj_number.txt or .tsv", 3),
        ("", "gender", "es", "it needs text", 3),
        ("", "lang-id", "fr-ja", "No 'fr-ja' data", 3),
        ("fr.txt", "depth", "en", r"'depth' can't be labelled from this; it needs tree_depth\.txt", 2),
        ("absent", "depth", "en", "absent: no such file or folder", 3),
    ],
)
def test_an_unsuitable_source_is_an_error(
    tmp_path: Path, file: str, task: str, lang: str, message: str, code: int
) -> None:
    write(tmp_path / "fr.txt", "Salut.\n")
    with pytest.raises(BgtError, match=message) as caught:
        find_source(tmp_path / file, TASKS[task], lang)
    assert caught.value.exit_code == code


def test_a_corpus_is_not_recognised_by_a_folder_far_above_its_files(tmp_path: Path) -> None:
    def about(path: str) -> str:
        return load.provenance_of(tmp_path / path, "sentences").about

    assert about("xprobe/en/tense.tsv") != about("xprobe/mine/en/tense.tsv") == CORPORA["unknown"].about
    assert about("mine/en-fr.un.tsv") == about("un/en.txt") != about("un/home/texts/en.txt")


def test_built_in_items_are_examples_or_the_grammars_if_those_are_too_few() -> None:
    dataset = load_items(TASKS["length"], "ja")
    assert (dataset.about["data"], dataset.note) == (EXAMPLES, "") and "card" not in dataset.about
    few = load_items(TASKS["word-content"], "en")
    assert few.about["data"] == GRAMMAR and few.note.startswith("on the built-in grammar: only")
    with pytest.raises(BgtError, match="data is needed: task 'word-content' can label only"):
        load_items(TASKS["word-content"], "ar")
    own = load.label_sentences(TASKS["length"], ["One.", "One.", "Two of them."], "en", source="my.txt")
    assert own.about["data"] == "my.txt" and own.items.sentences == ["One.", "Two of them."]


def test_labelled_items_keep_their_splits_and_have_a_card(tmp_path: Path) -> None:
    file = write(tmp_path / "xprobe/en/subj_number.tsv", LABELLED + "tr\tNN\tHe swims .\n")
    dataset = load_items(TASKS["subj-num"], "en", tmp_path)
    items, card = dataset.items, dataset.about["card"]
    # The sentence about cats is removed from train, because test has it. So no training item has the label NNS.
    assert items.sentences == ["A dog barks.", "He's home.", "He swims."]
    assert items.splits == ["dev", "test", "train"]
    assert card["sizes"] == {"train": 1, "dev": 1, "test": 1} and card["labels"] == {"NN": 3}
    assert card["sha256"] == {"xprobe/en/subj_number.tsv": hashlib.sha256(file.read_bytes()).hexdigest()}
    assert "Wikipedia" in card["sources"][0] and "CC BY-SA" in card["licences"][0]
    assert card["tokenisation"] == "tokens of the file joined to text"
    assert card["notes"] == [
        "1 item left out: repeated, or in another split, perhaps in another version",
        "1 item left out: no item of train has the same label ('NNS')",
    ]
    assert json.loads(json.dumps(dataset.about)) == dataset.about
    verbatim = load_items(TASKS["subj-num"], "en", tmp_path, senteval=True)
    assert verbatim.items.sentences[0] == "The cats sleep , Ann ." and len(verbatim.items.labels) == 5
    assert "2 of 100,000 train items" in verbatim.about["card"]["notes"]


def test_items_without_splits_are_divided_as_in_senteval(tmp_path: Path) -> None:
    nouns = [f"mot{first}{second}" for first in "abcdefghijkl" for second in "bcdfghjklm"]
    text = "".join(f"Ici, le {noun} dort.\nUn {noun} dort, là.\n" for noun in nouns)
    (tmp_path / "fr.txt").write_text(text, "utf-8")
    items, again, other = (load_items(TASKS["gender"], "fr", tmp_path, seed=s, senteval=True).items for s in (5, 5, 6))
    assert Counter(items.splits) == {"train": 400, "dev": 40, "test": 40}
    assert again == items != other
    unsplit = load_items(TASKS["gender"], "fr", tmp_path)
    assert unsplit.items.splits is None and unsplit.about["card"]["sizes"] == {"all": 480}


def test_languages_are_balanced_and_translations_stay_together(tmp_path: Path) -> None:
    rows = "".join(f"Number {n} is here.\tVoici le {n}.\n" for n in range(240)) + "Internet.\tInternet.\n"
    (tmp_path / "en-fr.own.tsv").write_text(rows + "One more.\tEncore.\nOne more.\tEncore un.\n", "utf-8")
    items = load_items(TASKS["lang-id"], "en-fr", tmp_path).items
    assert Counter(items.labels) == {"en": 241, "fr": 241}
    assert "Internet." not in items.sentences
    assert Counter(Counter(items.groups).values())[2] > 230


def test_without_usable_items_the_error_has_a_reason(tmp_path: Path) -> None:
    (tmp_path / "fr.txt").write_text("Oui.\n", "utf-8")
    with pytest.raises(BgtError, match="Task 'gender' found no items in"):
        load_items(TASKS["gender"], "fr", tmp_path)
    write(tmp_path / "subj_number.txt", "tr\tNNS\tThe cats sleep .\n" * 399 + "te\tNN\tThe cats sleep .\n")
    reason = "400 items left out: copies with contradicting labels, as 'The cats sleep.': 'NN', 'NNS'"
    with pytest.raises(BgtError, match=reason):
        load_items(TASKS["subj-num"], "en", tmp_path)

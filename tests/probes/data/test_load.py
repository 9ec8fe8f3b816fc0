"""Items of a task: built-in items, and items from files, with the card that describes them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

from bgt_core.errors import BgtError
from probes.data.load import EXAMPLES, GRAMMAR, label_sentences, load_items
from probes.tasks import TASKS

LABELLED = "tr\tNNS\tThe cats sleep , Ann .\nva\tNN\t42\tA dog barks .\nte\tNN\tHe 's home .\n"
LABELLED += "te\tNNS\tThe CATS sleep - Ann\ntr\tNN\tHe swims .\n"


def test_built_in_items_are_examples_or_the_grammars_if_those_are_too_few() -> None:
    for task, lang, source in (("length", "ja", EXAMPLES), ("contraction", "en", EXAMPLES)):
        dataset = load_items(TASKS[task], lang)
        assert (dataset.about["data"], dataset.note) == (source, "") and "card" not in dataset.about
    few = load_items(TASKS["word-content"], "en")
    assert few.about["data"] == GRAMMAR and few.note.startswith("on the built-in grammar: only")
    with pytest.raises(BgtError, match="data is needed: task 'word-content' can label only"):
        load_items(TASKS["word-content"], "ar")
    own = label_sentences(TASKS["length"], ["One.", "One.", "Two of them."], "en", source="my.txt")
    assert own.about["data"] == "my.txt" and own.items.sentences == ["One.", "Two of them."]


def test_labelled_items_keep_their_splits_and_the_card_says_what_they_are(tmp_path: Path) -> None:
    file = tmp_path / "xprobe" / "en" / "subj_number.tsv"
    file.parent.mkdir(parents=True)
    file.write_text(LABELLED, "utf-8")
    dataset = load_items(TASKS["subj-num"], "en", tmp_path)
    items, card = dataset.items, dataset.about["card"]
    # the cats are also in test, so not in train; so NNS is not in train either
    assert items.sentences == ["A dog barks.", "He's home.", "He swims."]
    assert items.splits == ["dev", "test", "train"]
    assert card["sizes"] == {"train": 1, "dev": 1, "test": 1} and card["labels"] == {"NN": 3}
    assert card["sha256"] == {"xprobe/en/subj_number.tsv": hashlib.sha256(file.read_bytes()).hexdigest()}
    assert "Wikipedia" in card["sources"][0] and "CC BY-SA" in card["licences"][0]
    assert card["tokenisation"] == "tokens of the file joined to text"
    assert card["notes"] == [
        "1 item left out: repeated, or in another split, perhaps in another version",
        "1 item left out: their label is not in train, 'NNS'",
    ]
    assert json.loads(json.dumps(dataset.about)) == dataset.about
    verbatim = load_items(TASKS["subj-num"], "en", tmp_path, senteval=True)
    assert verbatim.items.sentences[0] == "The cats sleep , Ann ." and len(verbatim.items.labels) == 5
    assert "2 of 100,000 train items" in verbatim.about["card"]["notes"]


def test_built_items_get_the_papers_proportions_and_whole_groups_for_senteval(tmp_path: Path) -> None:
    nouns = [f"mot{first}{second}" for first in "abcdefghijkl" for second in "bcdfghjklm"]
    text = "".join(f"Ici, le {noun} dort.\nUn {noun} dort, là.\n" for noun in nouns)
    (tmp_path / "fr.txt").write_text(text, "utf-8")
    items, again, other = (load_items(TASKS["gender"], "fr", tmp_path, seed=s, senteval=True).items for s in (5, 5, 6))
    assert Counter(items.splits) == {"train": 400, "dev": 40, "test": 40}
    assert Counter(items.labels) == {"correct": 240, "swapped": 240}
    split_of = dict(zip(items.groups, items.splits, strict=True))
    assert all(split_of[group] == split for group, split in zip(items.groups, items.splits, strict=True))
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


@pytest.mark.parametrize("contradicting", [1, 200])
def test_nothing_usable_is_an_error_with_its_reason(contradicting: int, tmp_path: Path) -> None:
    (tmp_path / "fr.txt").write_text("Oui.\n", "utf-8")
    with pytest.raises(BgtError, match="Task 'gender' found no items in"):
        load_items(TASKS["gender"], "fr", tmp_path)
    rows = ["tr\tNNS\tThe cats sleep .\n"] * (400 - contradicting) + ["te\tNN\tThe cats sleep .\n"] * contradicting
    (tmp_path / "subj_number.txt").write_text("".join(rows), "utf-8")
    reason = "400 items left out: copies with contradicting labels, as 'The cats sleep.': 'NN', 'NNS'"
    with pytest.raises(BgtError, match=reason):
        load_items(TASKS["subj-num"], "en", tmp_path)

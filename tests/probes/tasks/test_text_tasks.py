"""Probing tasks derive the right labels from text and group related sentences; style tasks have built-in sentences."""

from collections import Counter

import pytest

from bgt_core.errors import BgtError
from probes.data.load import EXAMPLES, load_items
from probes.task import count_words, is_punctuation, split_tokens, split_words
from probes.tasks import GROUPS, TASKS, find
from probes.tasks.bigram_shift import pairs as movable
from probes.tasks.length import bin_edges
from probes.tasks.word_content import targets


def test_gender_labels_both_versions_of_a_sentence_and_skips_one_without_an_article() -> None:
    sentences = ["Je vois la lune.", "Paul dort.", "Le chat dort.", "Voilà un arbre.", "Elle lit une lettre."]
    items = TASKS["gender"].items(sentences, "fr")
    assert list(zip(items.sentences, items.labels, items.groups, strict=True)) == [
        ("Je vois la lune.", "correct", 0),
        ("Je vois le lune.", "swapped", 0),
        ("Le chat dort.", "correct", 2),
        ("La chat dort.", "swapped", 2),
        ("Voilà un arbre.", "correct", 3),
        ("Voilà une arbre.", "swapped", 3),
        ("Elle lit une lettre.", "correct", 4),
        ("Elle lit un lettre.", "swapped", 4),
    ]


def test_gender_is_balanced_and_uses_no_text_twice() -> None:
    sentences = ["Un élève lit.", "Une élève lit.", "La lune brille.", "La lune brille."]
    items = TASKS["gender"].items(sentences, "fr")
    assert items.sentences == ["Un élève lit.", "Une élève lit.", "La lune brille.", "Le lune brille."]
    assert Counter(items.labels) == {"correct": 2, "swapped": 2}


def test_length_labels_are_ranges_and_a_sentence_without_a_word_is_skipped() -> None:
    sentences = ["Go.", "Run now!", "...", "He sees the cat.", "She reads her book today."]
    items = TASKS["length"].items(sentences, "en")
    assert list(zip(items.sentences, items.labels, strict=True)) == [
        ("Go.", "1"),
        ("Run now!", "2"),
        ("He sees the cat.", "3-4"),
        ("She reads her book today.", "5"),
    ]


def test_words() -> None:
    assert count_words("L'eau, c'est bon !") == len(split_words("L'eau, c'est bon !")) == 5
    assert count_words("猫が好き。") == 4
    assert split_words("شكرًا لك") == ["شكرًا", "لك"]  # an Arabic vowel sign is part of its word
    assert split_tokens("L'eau, 猫が。") == ["L", "'", "eau", ",", "猫", "が", "。"]


def test_length_bins_are_six_and_about_equal() -> None:
    lengths = [length for length in range(1, 61) for _ in range(10)]
    assert bin_edges(lengths) == [10, 20, 30, 40, 50, 60]
    skewed = [1] * 500 + list(range(2, 102))
    assert bin_edges(skewed) == [1, 21, 41, 61, 81, 101]


def test_each_mark_is_counted_and_a_sentence_without_a_mark_is_skipped() -> None:
    sentences = ["Oui.", "¿Qué?", "Non", "« Bon... », dit-elle…", ", ".join("abcdefghijklm")]
    items = TASKS["punct-num"].items(sentences, "fr")
    assert dict(zip(items.sentences, items.labels, strict=True)) == {
        "Oui.": "1",
        "¿Qué?": "2",
        "« Bon... », dit-elle…": "8",
        ", ".join("abcdefghijklm"): "11+",
    }


def test_punctuation_includes_the_papers_marks_and_those_of_other_scripts() -> None:
    assert all(map(is_punctuation, "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"))
    assert all(map(is_punctuation, "«»¿¡…’“”–—。、「」？،؟"))
    assert not any(map(is_punctuation, "aé1猫ーي€ \u064e"))


def test_bigram_shift_exchanges_two_neighbours_in_half_of_the_sentences() -> None:
    sentences = [
        "She saw the old cat.",
        "They slept, exhausted.",
        "He never came home again.",
        "We all know this song.",
        'He said "no" to all of us.',
    ]
    items = TASKS["bigram-shift"].items(sentences, "en", seed=1)
    assert sorted(items.groups) == [0, 2, 3]
    assert abs(items.labels.count("I") - items.labels.count("O")) <= 1
    for sentence, label, group in zip(items.sentences, items.labels, items.groups, strict=True):
        before, after = sentences[group].rstrip(".").split(), sentence.rstrip(".").split()
        changed = [index for index in range(len(before)) if before[index] != after[index]]
        if label == "O":
            assert not changed
        else:
            first, second = changed
            assert 0 < first == second - 1
            assert (after[first], after[second]) == (before[second], before[first])


def test_bigram_shift_never_moves_marks_or_exchanges_equal_words() -> None:
    assert [(left[0], right[0]) for left, right in movable("Yes we can't, no doubt.")] == [
        ("we", "can't"),
        ("no", "doubt"),
    ]
    assert movable("Run, that that, he (she) ran") == []
    assert movable("Go home.") == []


def test_the_labels_of_word_content_are_less_frequent_words() -> None:
    ranked = [f"word{letter}" for letter in "abcdefghijkl"]
    counts = {word: 200 - rank for rank, word in enumerate(ranked)}
    assert targets(counts, most=4) == set(ranked[8:12])
    assert targets(counts, most=16) == set(ranked[8:12])  # 12 words suffice for 4 labels, but not for 8 or 16
    assert targets(counts | {"of": 193}, most=4) == set(ranked[7:11])  # "of" has a rank, but is too short for a label
    assert targets(dict.fromkeys(ranked, 19)) == set()  # all words are too rare


def test_word_content_uses_sentences_with_exactly_one_of_the_words() -> None:
    common = [f"the cat saw them right here {number}" for number in range(60)]
    sentences = [*common, *(f"{word} {number}" for word in ("alpha", "bravo", "delta") for number in range(30))]
    sentences += ["alpha bravo", "Alpha, the cat", "bravo or bravo"]
    items = TASKS["word-content"].items(sentences, "en")
    assert Counter(items.labels) == {"alpha": 31, "bravo": 30, "delta": 30}
    assert items.labels[items.sentences.index("Alpha, the cat")] == "alpha"
    assert [sentences[group] for group in items.groups] == items.sentences


def test_every_task_is_in_a_group() -> None:
    paper = "subj-num obj-num depth top-const word-content length punct-num punct-first gender"
    assert " ".join(GROUPS["paper"]) == paper
    parts = [name for group in ("surface", "syntax", "semantic", "style") for name in GROUPS[group]]
    assert sorted(parts) == sorted(GROUPS["all"]) == sorted(TASKS)
    assert all(task.name == name for name, task in TASKS.items())


def test_errors_for_an_unknown_task_or_language_list_the_possible_ones() -> None:
    with pytest.raises(BgtError, match=r"Unknown task 'xyz'\. Choose from subj-num, obj-num, .*, tense, paper, "):
        find("xyz")
    with pytest.raises(BgtError, match="Task 'gender' is not defined for 'en'; choose from fr, es") as caught:
        TASKS["gender"].items(["The cat."], "en")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "lang", "labels"),
    [
        ("address", "fr", {"tu", "vous"}),
        ("address", "de", {"du", "Sie"}),
        ("address", "es", {"tú", "usted"}),
        ("address", "tr", {"sen", "siz"}),
        ("politeness", "ja", {"plain", "polite"}),
        ("contraction", "en", {"short", "full"}),
        ("question-form", "fr", {"est-ce que", "inversion", "intonation"}),
        ("sentence-type", "ar", {"statement", "question", "exclamation"}),
    ],
)
def test_tasks_of_style_have_balanced_built_in_sentences_with_translations(
    name: str, lang: str, labels: set[str]
) -> None:
    dataset = load_items(TASKS[name], lang)
    items, counts = dataset.items, Counter(dataset.items.labels)
    assert dataset.about["data"] == EXAMPLES and set(counts) == labels and len(set(counts.values())) == 1
    assert items.other == ("fr" if lang == "en" else "en") and len(items.translations or ()) == len(items.sentences)
    of_translation = dict(zip(items.translations or (), items.groups, strict=True))  # the group of each translation
    assert [of_translation[text] for text in items.translations or ()] == items.groups

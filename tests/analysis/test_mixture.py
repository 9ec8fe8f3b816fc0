"""The training files of the models that ship: what is left out of them."""

from __future__ import annotations

import importlib.util
import lzma
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "analysis" / "mixture.py"
spec = importlib.util.spec_from_file_location("mixture", SCRIPT)
assert spec and spec.loader
mixture = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mixture)


def test_nothing_held_out_or_tested_on_is_trained_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = [f"The {number} dogs sleep here." for number in range(1_000)]
    held = [text for text in numbers if mixture.is_held_out(text)]
    assert 1 <= len(held) <= 20
    pairs = [(text, f"Les {row} chiens dorment ici.") for row, text in enumerate(numbers)]
    pairs += [
        ("the 5 dogs sleep here!", "Les 5 chiens dorment ici"),  # a copy
        ("Dogs sleep.", pairs[numbers.index(held[0])][1]),  # the other side of a held-out pair
        ("The test sentence is this one.", "La voilà."),
        ("I go.", "Je vais."),
        ("I am going.", "Je vais"),
    ]
    (tmp_path / "parallel").mkdir()
    with lzma.open(tmp_path / "parallel" / "en-fr.tatoeba.tsv.xz", "wt", encoding="utf-8") as file:
        file.writelines("\t".join(pair) + "\n" for pair in pairs)
    with lzma.open(tmp_path / "parallel" / "en-de.tatoeba.tsv.xz", "wt", encoding="utf-8") as file:
        file.write(
            "I sleep.\tIch schlafe.\nI see the red barn.\tIch sehe das Tor.\nI watch the red barn.\tIch sehe das Tor.\n"
        )
    (tmp_path / "mono").mkdir()
    with lzma.open(tmp_path / "mono" / "en.ewt.txt.xz", "wt", encoding="utf-8") as file:
        file.write("The test sentence is this one!\nA sentence without a translation.\nToo short here.\n")
    (tmp_path / "sts" / "2014").mkdir(parents=True)
    (tmp_path / "sts" / "2014" / "a.tsv").write_text("3.0\tthe TEST sentence is this one\tI go.\n", "utf-8")
    monkeypatch.setattr(mixture, "GRAMMAR", 20)
    mixture.main(tmp_path, tmp_path / "out", "fr", "de")
    trained = (tmp_path / "out" / "short" / "en-fr.tsv").read_text("utf-8").splitlines()
    kept_out = (tmp_path / "out" / "held-out" / "en-fr.tsv").read_text("utf-8").splitlines()
    assert [line.split("\t")[0] for line in kept_out] == held
    assert len(trained) == 1_000 - len(held) + 2
    assert "I go.\tJe vais." in trained  # too short to be a test's own
    read = {
        path: (tmp_path / "out" / f"{path}.tsv").read_text("utf-8").splitlines()
        for path in ("paraphrase/en-en2-altered_en", "monolingual/en")
    }
    assert read["monolingual/en"] == ["A sentence without a translation."]
    by_language = [row.split("\t") for row in read["paraphrase/en-en2-altered_en"]]  # of English beside either
    assert [row[:2] for row in by_language] == [
        ["I go.", "I am going."],
        ["I see the red barn.", "I watch the red barn."],
    ]
    assert all(altered not in (sentence, paraphrase) for sentence, paraphrase, altered in by_language)
    assert not [line for line in trained if line.startswith(("Dogs", "The test")) or line.endswith("!")]


def test_pairs_in_another_style_are_made_by_rules_and_found_among_paraphrases(tmp_path: Path) -> None:
    pairs = [("I'm late.", "Tu viens ?"), ("See you!", "Tu me manques."), ("See you!", "Vous me manquez.")]
    pairs += [("See you!", "Il me manque.")]  # addresses nobody
    mixture.write_style(tmp_path, pairs, "fr")
    read = {path.stem: path.read_text("utf-8").splitlines() for path in (tmp_path / "style").iterdir()}
    assert read["fr-fr2"] == [
        "Tu viens ?\tEst-ce que tu viens ?",
        "Tu viens ?\tViens-tu ?",
        "Tu me manques.\tVous me manquez.",
    ]
    assert read["en-en2.fr"] == ["I'm late.\tI am late."]
    assert set(read["en-fr"]) == {
        "I am late.\tTu viens ?",
        "I'm late.\tEst-ce que tu viens ?",
        "I'm late.\tViens-tu ?",
    }


def test_each_pair_comes_with_an_altered_sentence_and_with_all_that_swap_its_roles() -> None:
    pairs = [("The dog bit the man.", "Le chien a mordu l'homme."), ("Yes.", "Oui.")]
    (row,) = mixture.with_altered(pairs, 0, "en")
    assert row[:2] == pairs[0] and row[2] in ("The man bit the dog.", "The dog didn't bite the man.")
    assert list(mixture.with_swapped(pairs, 0, "en")) == [(*pairs[0], "The man bit the dog.")]


@pytest.mark.slow
def test_triples_of_the_grammar_are_drawn_once() -> None:
    rows = list(mixture.grammar("en", "fr", 3))
    assert len(rows) == mixture.GRAMMAR and len({row[0] for row in rows}) > 0.9 * len(rows)

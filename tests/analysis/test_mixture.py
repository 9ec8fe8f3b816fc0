"""The training files of the models that ship: what is left out of them."""

from __future__ import annotations

import importlib.util
import lzma
import tarfile
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "analysis" / "mixture.py"
spec = importlib.util.spec_from_file_location("mixture", SCRIPT)
assert spec and spec.loader
mixture = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mixture)


def test_nothing_held_out_or_tested_on_is_trained_on(tmp_path: Path) -> None:
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
    (tmp_path / "mixture").mkdir()
    (tmp_path / "rows.tsv").write_text("I go.\tJe vais.\tGo I.\n", "utf-8")
    with tarfile.open(tmp_path / "mixture" / "altered.tar.xz", "w:xz") as rows:
        rows.add(tmp_path / "rows.tsv", "./short/en-fr-altered_en.tsv")
    mixture.main(tmp_path, tmp_path / "out", "fr", "de")
    trained = (tmp_path / "out" / "short" / "en-fr.tsv").read_text("utf-8").splitlines()
    kept_out = (tmp_path / "out" / "held-out" / "en-fr.tsv").read_text("utf-8").splitlines()
    assert [line.split("\t")[0] for line in kept_out] == held
    assert len(trained) == 1_000 - len(held) + 2
    assert "I go.\tJe vais." in trained  # too short to be a test's own
    assert (tmp_path / "out" / "short" / "en-fr-altered_en.tsv").read_text("utf-8") == "I go.\tJe vais.\tGo I.\n"
    alone = (tmp_path / "out" / "monolingual" / "en.tsv").read_text("utf-8")
    assert alone == "A sentence without a translation.\n"
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

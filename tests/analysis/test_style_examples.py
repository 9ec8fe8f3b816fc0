"""Sentences that show style are held out, and those of pairs that differ in one property come first."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from analysis import style_examples
from analysis.mixture import is_held_out


def test_pairs_come_first_and_nothing_was_trained_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "parallel").mkdir()
    trained = next(text for text in (f"You see {number} dogs." for number in range(99)) if not is_held_out(text))
    rows = {
        "tatoeba": [(trained, "Tu vois des chiens.")],
        "tatoeba-challenge": [
            ("You sleep.", "Tu dors."),
            ("You sleep.", "Vous dormez."),
            *((f"You eat {number}.", f"Tu manges {number}.") for number in range(9)),
        ],
    }
    for lang in ("fr", "es", "de", "tr", "ja", "ar"):
        for name, pairs in rows.items():
            with lzma.open(tmp_path / "parallel" / f"en-{lang}.{name}.tsv.xz", "wt", encoding="utf-8") as file:
                file.writelines("\t".join(pair) + "\n" for pair in (pairs if lang == "fr" else []))
    monkeypatch.setattr(style_examples, "MOST", 3)
    style_examples.main(tmp_path, tmp_path / "style.tsv.xz")
    lines = [
        line.split("\t") for line in lzma.decompress((tmp_path / "style.tsv.xz").read_bytes()).decode().splitlines()
    ]
    french = [text for lang, text, *_ in lines if lang == "fr"]
    assert {"Tu dors.", "Vous dormez."} <= set(french) and "Tu vois des chiens." not in french
    assert 3 <= sum(text.startswith("Tu") for text in french) <= 4

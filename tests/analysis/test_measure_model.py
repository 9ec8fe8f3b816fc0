"""The tables of a model's card, for an untrained model."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from bgt_core import checkpoint
from bgt_core.data.text import Tokenizer
from bgt_core.grammar import Pair
from bgt_core.recipes.recipe import Recipe

SCRIPT = Path(__file__).resolve().parents[2] / "analysis" / "measure_model.py"
spec = importlib.util.spec_from_file_location("measure_model", SCRIPT)
assert spec and spec.loader
measure_model = importlib.util.module_from_spec(spec)
spec.loader.exec_module(measure_model)


@pytest.mark.slow
def test_each_table_of_a_card(
    tiny: Callable[..., Recipe],
    tokenizer: Tokenizer,
    grammar: list[Pair],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    torch.manual_seed(0)
    recipe = tiny("bgt-bound")
    checkpoint.save(tmp_path / "model", recipe, recipe.build(tokenizer), tokenizer, step=3)
    short = [pair.texts for pair in grammar if len(pair.texts["en"].split()) < 12][:60]
    pairs = "".join(f"{texts['en']}\t{texts['fr']}\n" for texts in short)
    judged = "".join(f"{at % 6}\t{texts['en']}\t{texts['en'][:9]}\n" for at, texts in enumerate(short))
    files = {"held-out/en-fr.tsv": pairs, "retrieval/en-fr.tatoeba1000.tsv": pairs}
    for name, text in (files | {f"sts/{year}/x.tsv": judged for year in range(2012, 2016)}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    measure_model.main(str(tmp_path / "model"), tmp_path, tmp_path / "held-out", count=6)
    printed = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in printed.splitlines() if line[:1] == "|"]
    begun = {tuple(row[:3]) for row in rows}
    assert {("en", "fr", "the reference"), ("fr", "its own", "its own"), ("en", "fr", "a random sentence")} <= begun
    assert any("giver and receiver" in row for row in rows) and any(row[0] == "2015" for row in rows)
    assert sum("en to fr" in row for row in rows) == 1 and sum(row[0] == "language" for row in rows) == 1
    assert sum(row[0] == "negation" for row in rows) == 2
    assert any(row[2:4] == ["sentence-type", "question"] for row in rows)  # style taken over
    assert any(row[:1] == ["STEL-or-Content"] for row in rows)

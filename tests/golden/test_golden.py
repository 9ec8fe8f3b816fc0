"""Tiny training runs must have the stored losses, which a refactoring must not change. If you change a computation on
purpose, store the new losses:

    .venv/bin/python tests/golden/test_golden.py > tests/golden/losses.json
"""

import json
import math
import tempfile
from pathlib import Path
from unittest.mock import patch

import pytest
import torch

from bgt_core import recipes, training
from bgt_core.recipes import RECIPES
from bgt_core.training import loop

PAIRS = Path(__file__).with_name("pairs.tsv")
KEPT = Path(__file__).with_name("losses.json")
COMMON: dict[str, object] = {"vocab_size": 300, "d_model": 16, "ffn_dim": 24, "heads": 2, "dropout": 0.1, "epochs": 1.0}
COMMON |= {
    "batch_tokens": 900,
    "micro_tokens": 300,
    "train.warmup_steps": 3,
    "learning_rate": 1e-2,
    "objective.elbo.warmup_steps": 4,
    "valid_pairs": 20,
    "precision": "fp32",
}
SIZES = {name: {"encoder_layers": 1} for name in RECIPES}
SIZES["pair-classifier"] = {"data.columns": ["en", "fr", "gold:label"]}
SIZES["reference-classifier"] = {"body": "lstm"}
SIZES |= {"bgt-small": {"semantic_dim": 12, "language_dim": 6, "min_tokens": 5}, "random-encoder": {"epochs": 0.0}}
SIZES |= {name: {"mega_batch": 3, "mega_batch_warmup": 1} for name in ("sp", "bilstm")}
SIZES["vgvae"] = {"semantic_dim": 12, "syntactic_dim": 6, "hidden_dim": 24, "mega_batch": 2, "mega_batch_start": 0.5}
SIZES |= {
    name: {"hidden_dim": 10, "semantic_dim": 12, "data.columns": ["en", "fr", "gold:label"]}
    for name in ("var-siamese-repeat", "var-siamese-reformulate")
}
SIZES["var-siamese"] = {"model.base.hidden_dim": 10, "model.base.semantic_dim": 12, "model.hidden_dim": 14}
SIZES["var-siamese"] |= {"data.columns": ["en", "fr", "gold:label"]}
SIZES["bgt-bound"] = {"model.average_dim": 12, "model.bound_dim": 8, "model.roles_dim": 16}
SIZES["bgt-bound"] |= {"language_dim": 6, "min_tokens": 5}
SIZES["writer"] = {"encoder": "baseline:words", "language_dim": 6, "decoder_layers": 1, "min_tokens": 5}
SIZES["gran"] = {"mega_batch": 2, "composition_l2": 1e-3, "table_l2": 1e-3}


def curve(name: str, folder: Path) -> dict[str, float]:
    """Train a tiny run in fp32. Return the metrics of the last training report and of the last validation."""
    torch.set_num_threads(1)
    text = folder / "pairs.tsv"
    lines = PAIRS.read_text("utf-8").splitlines()
    if "gold:label" in RECIPES[name]().data.columns:
        classes = 2 if "siamese" in name else 3
        lines = [f"{line}\t{number % classes}" for number, line in enumerate(lines)]
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    known = [f".{setting}" for setting in RECIPES[name]().arguments]
    common = {key: value for key, value in COMMON.items() if sum(each.endswith(f".{key}") for each in known) == 1}
    recipe = recipes.configure(name, common | SIZES[name])
    rows: list[dict[str, object]] = []
    with patch.object(loop, "REPORT_SECONDS", math.inf):  # even on a slow machine, there is only one report, at the end
        training.train(recipe, [text], folder / "run", device="cpu", report=rows.append)
    told = [row for row in rows if row["kind"] in ("train", "valid")]
    dull = ("kind", "steps", "tokens_per_second")
    return {f"{row['kind']}/{key}": value for row in told for key, value in row.items() if key not in dull}


@pytest.mark.parametrize("name", RECIPES)
def test_the_losses_are_those_kept(name: str, tmp_path: Path) -> None:
    kept = json.loads(KEPT.read_text(encoding="utf-8"))[name]
    # on processors without vector instructions, gradient norms differ by up to 8e-5, and losses by less than 4e-6
    assert curve(name, tmp_path) == pytest.approx(kept, rel=3e-4)


if __name__ == "__main__":
    losses = {}
    for recipe_name in RECIPES:
        with tempfile.TemporaryDirectory() as place:
            losses[recipe_name] = curve(recipe_name, Path(place))
    print(json.dumps(losses, indent=2))

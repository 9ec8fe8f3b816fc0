"""The last step of a model that ships: after it, translations have one mean."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import bgt_core
from bgt_core import checkpoint
from bgt_core.data.text import Tokenizer
from bgt_core.grammar import Pair
from bgt_core.recipes.recipe import Recipe

SCRIPT = Path(__file__).resolve().parents[2] / "analysis" / "erase_language.py"
spec = importlib.util.spec_from_file_location("erase_language", SCRIPT)
assert spec and spec.loader
erase_language = importlib.util.module_from_spec(spec)
spec.loader.exec_module(erase_language)


def test_means_meet_and_no_other_weight_changes(
    tiny: Callable[..., Recipe],
    stirred: Callable[[torch.nn.Module], torch.nn.Module],
    tokenizer: Tokenizer,
    grammar: list[Pair],
    tmp_path: Path,
) -> None:
    torch.manual_seed(0)
    recipe, texts = tiny("bgt-bound"), [list(pair.texts.values()) for pair in grammar[:200]]
    checkpoint.save(tmp_path / "before", recipe, stirred(recipe.build(tokenizer)), tokenizer, step=3)
    file = tmp_path / "pairs.tsv"
    file.write_text("".join("\t".join(pair) + "\n" for pair in texts), "utf-8")
    erase_language.main(tmp_path / "before", tmp_path / "after", [f"en-fr={file}"])

    def distance(model: bgt_core.Embedder) -> float:
        """Of the languages' means, against the spread of one language."""
        english, french = (
            model.embed([pair[side] for pair in texts], lang=lang) for side, lang in enumerate(("en", "fr"))
        )
        return float(np.linalg.norm(english.mean(0) - french.mean(0)) / english.std(0).mean())

    before, after = (bgt_core.load(tmp_path / name, "cpu", "fp32") for name in ("before", "after"))
    assert distance(after) < 1e-3 < 0.5 < distance(before)
    old, new = before.model.state_dict(), after.model.state_dict()
    changed = {name.rpartition(".")[2] for name in old if not torch.equal(old[name], new[name])}
    assert changed == {"means", "read", "directions"}

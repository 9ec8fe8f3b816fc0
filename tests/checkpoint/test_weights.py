"""Weights are saved and loaded tensor by tensor, buffers too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from bgt_core.checkpoint import weights
from bgt_core.data.text import Tokenizer
from bgt_core.errors import DataError
from bgt_core.recipes import Recipe


class Counting(nn.Module):
    """A linear map with state that is no parameter, part of it not worth keeping."""

    mean: torch.Tensor
    batches: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))
        self.register_buffer("scratch", torch.zeros(5), persistent=False)
        self.same = self.linear  # named twice, kept once


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_buffers_that_persist_are_kept(
    dtype: torch.dtype, tiny: Callable[..., Recipe], tokenizer: Tokenizer, tmp_path: Path
) -> None:
    model = Counting()
    model.mean += torch.tensor([0.5, -2.0, 3.0])
    model.batches += 123_457  # more than float16 can count
    weights.save(tmp_path / "model", tiny(), model, tokenizer, step=1, dtype=dtype)  # type: ignore[arg-type]
    stored = load_file(tmp_path / "model" / "model.safetensors")
    assert set(stored) == {"linear.weight", "linear.bias", "mean", "batches"}
    again = Counting()
    weights.fill(again, stored, tmp_path)
    assert again.mean.tolist() == [0.5, -2.0, 3.0]
    assert again.batches.item() == 123_457
    assert torch.equal(again.linear.weight.to(dtype), model.linear.weight.to(dtype))
    stored.pop("mean")
    with pytest.raises(DataError, match="'mean' is missing"):
        weights.fill(Counting(), stored, tmp_path)

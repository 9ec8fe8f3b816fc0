"""Settings that no run can use, and missing devices."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import bgt_core
from bgt_core.backend import pick_device
from bgt_core.errors import BgtError
from bgt_core.recipes.recipe import TrainConfig


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", -1.0),
        ("batch_tokens", 0),
        ("micro_tokens", -1),
        ("learning_rate", 0.0),
        ("warmup_steps", -1),
        ("mega_batch", -1),
        ("mega_batch_warmup", -1),
        ("scramble", 1.1),
        ("scramble", -0.1),
        ("clip", 0.0),
        ("valid_every", 0),
        ("save_every", 0),
        ("cooldown", 1.1),
        ("cooldown", -0.1),
        ("precision", "fp8"),
    ],
)
def test_the_number_and_its_rule_are_named(name: str, value: object) -> None:
    with pytest.raises(BgtError, match=f"{name} .*{value}") as error:
        TrainConfig(**{name: value})
    assert error.value.exit_code == 2


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "", "meta"])
def test_an_unknown_device_is_named(name: str) -> None:
    with pytest.raises(BgtError, match=f"'{name}': expected auto, cpu, cuda") as error:
        pick_device(name)
    assert error.value.exit_code == 2


def test_a_cuda_device_that_is_not_there_is_absent() -> None:
    with pytest.raises(BgtError, match="no such CUDA device; use 'cpu'") as error:
        pick_device(f"cuda:{torch.cuda.device_count()}")
    assert error.value.exit_code == 3


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize("native", [{}, {"avx512_bf16": True}, {"amx_bf16": True}])
def test_bf16_on_a_processor_without_it_is_warned_of(
    saved: Path, native: dict[str, bool], monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    for limit in ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA"):
        monkeypatch.delenv(limit, raising=False)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: native)
    assert bgt_core.load(saved, "cpu").precision == ("bf16" if native else "fp32")
    assert not recwarn
    bgt_core.load(saved, "cpu", "bf16").embed(["one"] * 3, lang="en")
    told = [str(each.message) for each in recwarn]
    assert len(told) == (not native) and all("no bf16 instructions" in line for line in told)

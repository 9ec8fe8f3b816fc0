"""In which precision matrix products are computed."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from bgt_core.contracts import BadInput

PRECISIONS = ("auto", "fp32", "bf16")
INT8 = "int8"  # of embedding alone


def check_precision(precision: str, allowed: Sequence[str] = PRECISIONS) -> None:
    """BadInput for what is none of `allowed`."""
    if precision not in allowed:
        raise BadInput(f"precision '{precision}' is none of {', '.join(allowed)}", 2)


def resolve(device: torch.device, precision: str) -> str:
    """ "fp32" or "bf16": "auto" is bf16 on hardware that multiplies it natively. BadInput as `check_precision`."""
    check_precision(precision)
    if precision != "auto":
        return precision
    if device.type == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        capabilities = torch.cpu.get_capabilities()
        native = capabilities.get("amx_bf16") or capabilities.get("avx512_bf16")
    return "bf16" if native else "fp32"


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """Products in that precision; everything else stays in float32."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=resolve(device, precision) == "bf16")

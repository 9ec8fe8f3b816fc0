"""In which precision matrix products are computed."""

from __future__ import annotations

import torch

from bgt_core.contracts import BadInput

PRECISIONS = ("auto", "fp32", "bf16")


def check_precision(precision: str) -> None:
    """BadInput for what is none of PRECISIONS."""
    if precision not in PRECISIONS:
        raise BadInput(f"precision '{precision}' is none of {', '.join(PRECISIONS)}", 2)


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

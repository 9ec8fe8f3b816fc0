"""Libraries that only some commands need."""

from __future__ import annotations

from importlib.util import find_spec

from bgt_core.errors import BadInput


def needs(module: str, extra: str) -> None:
    """BadInput that says how to install `module`, where it is absent."""
    if find_spec(module) is None:
        raise BadInput(f'This needs {module}, which is not installed: pip install "bgt[{extra}]"', 3)

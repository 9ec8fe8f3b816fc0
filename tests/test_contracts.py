"""`isinstance` recognises in every Python version which protocols a model implements, such as `VectorModel`."""

import inspect

import pytest
import torch

from bgt_core import contracts
from bgt_core.data.text import Tokenizer
from bgt_core.recipes import RECIPES

CAPABILITIES = [
    kind for kind in vars(contracts).values() if isinstance(kind, type) and getattr(kind, "_is_runtime_protocol", False)
]


@pytest.mark.parametrize("name", RECIPES)
def test_a_member_of_a_capability_is_in_the_class(name: str, tokenizer: Tokenizer) -> None:
    """From Python 3.12 on, `isinstance` finds a protocol's members only in the class, not among torch submodules."""
    with torch.device("meta"):  # without memory for the weights of large models
        model = RECIPES[name]().build(tokenizer)
    for kind in CAPABILITIES:
        if isinstance(model, kind):
            for member in kind.__protocol_attrs__ if hasattr(kind, "__protocol_attrs__") else vars(kind):
                if not member.startswith("_"):
                    inspect.getattr_static(model, member)

"""Options of beam search and of sampling. This module does not import torch, so that commands start fast."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bgt_core.errors import UsageError, check_choice, check_least


@dataclass(frozen=True)
class Beam:
    """Beam search with `size` hypotheses, ranked by log-probability / length ** `length_penalty`.

    The length is in tokens, EOS included. A penalty above 1 favours long sentences, a penalty below 1 short sentences.
    If `no_repeat_ngram` is n, no n-gram occurs twice. If `max_run` is r, no token occurs more than r times in a row.
    The value 0 turns a limit off. Probabilities are not renormalised after tokens are excluded. The BGT paper's code
    has `size` 5 and `length_penalty` 1.
    """

    size: int = 5
    no_repeat_ngram: int = 0
    max_run: int = 0
    length_penalty: float = 1.0

    def __post_init__(self) -> None:
        check_least(1, beam=self.size)
        if not 0 <= self.length_penalty < math.inf:
            text = f"{self.length_penalty} must be a number of at least 0; 1 ranks by the mean per token."
            raise UsageError(text, parameter="length_penalty")
        check_least(0, no_repeat_ngram=self.no_repeat_ngram, max_run=self.max_run)


@dataclass(frozen=True)
class Sample:
    """Sampling at a temperature, from the smallest set of the most probable tokens whose total probability is at least
    `top_p`. The limits `no_repeat_ngram` and `max_run` are as in `Beam`."""

    temperature: float = 1.0
    top_p: float = 1.0
    no_repeat_ngram: int = 0
    max_run: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.temperature < math.inf:
            text = f"{self.temperature} must be a number above 0. For the most probable tokens, use a beam of 1."
            raise UsageError(text, parameter="temperature")
        if not 0 < self.top_p <= 1:
            raise UsageError(f"{self.top_p} must be a probability above 0 and at most 1.", parameter="top_p")
        check_least(0, no_repeat_ngram=self.no_repeat_ngram, max_run=self.max_run)


GREEDY = Beam(1)
DEFAULT_SEARCH = Beam(8, no_repeat_ngram=3, max_run=1)  # this gave the best reconstructions without repetition loops

Search = Beam | Sample

LIMITS = {"no_repeat_ngram": DEFAULT_SEARCH.no_repeat_ngram, "max_run": DEFAULT_SEARCH.max_run}
OF_DRAWS = {"temperature": 1.0, "top_p": 1.0, "seed": 0}
SETTINGS: dict[str, int | float] = {**OF_DRAWS, **LIMITS, "length_penalty": DEFAULT_SEARCH.length_penalty}


def search_of(beam: int, settings: Sequence[str]) -> tuple[Search, int]:
    """Make a `Sample` if a setting is one of `OF_DRAWS`, else a `Beam` of size `beam`. Also return the random seed.

    Settings have the form NAME=VALUE. Raises UsageError for another form, for a name that is not in `SETTINGS`, and for
    a setting that the search does not have.
    """
    given: dict[str, Any] = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        name = name.replace("-", "_")
        check_choice(SETTINGS, set=name)
        try:
            given[name] = type(SETTINGS[name])(value)
        except ValueError:
            text = f"{setting}: expected {name}=NUMBER, as in {name}={SETTINGS[name]}."
            raise UsageError(text, parameter="set") from None
    seed = given.pop("seed", None)
    if seed is None and not given.keys() & OF_DRAWS.keys():
        return Beam(beam, **LIMITS | given), 0
    if "length_penalty" in given:
        raise UsageError("length_penalty is only for beam search, not for random draws; leave it out.", parameter="set")
    return Sample(**LIMITS | given), seed or 0

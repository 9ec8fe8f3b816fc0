"""Rules of a search, against a search that reads every hypothesis anew and asks of each token whether it may stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from bgt_core.contracts import BOS, EOS, PAD, UNK, Tokens
from bgt_core.errors import UsageError
from bgt_core.generation.options import Beam, Sample
from bgt_core.generation.search import beam, n_best, sample
from bgt_core.nets.decoder import TransformerDecoder
from bgt_core.nets.layers import make_embedding
from bgt_core.nets.output import UntiedOutput

L = 5


def made(vocab_size: int, seed: int) -> TransformerDecoder:
    """A decoder that likes to repeat itself: each token raises its own score."""
    torch.manual_seed(seed)
    table = make_embedding(vocab_size, 16)
    output = UntiedOutput(vocab_size, 16, L)
    decoder = TransformerDecoder(table, output, L, layers=1, ffn_dim=12, heads=2, dropout=0.1)
    with torch.no_grad():
        output.hidden.weight += 0.3 * table.weight
        output.hidden.weight[EOS] *= 2
    return decoder.double().eval()


def latents(count: int) -> Tensor:
    return torch.randn(count, L, dtype=torch.float64, generator=torch.Generator().manual_seed(9))


def repeats(sentence: list[int], rules: Beam | Sample) -> bool:
    """Whether some n tokens stand twice, or one token more often in a row than it may."""
    ngram, run = rules.no_repeat_ngram, rules.max_run
    ngrams = [tuple(sentence[start : start + ngram]) for start in range(len(sentence) - ngram + 1)]
    runs = [sentence[start : start + run + 1] for start in range(len(sentence) - run)]
    return bool((ngram and len(set(ngrams)) < len(ngrams)) or (run and any(len(set(part)) == 1 for part in runs)))


def log_chances(decoder: TransformerDecoder, latent: Tensor, past: list[int]) -> Tensor:
    target = Tokens.of(torch.tensor([[*past, EOS]]), torch.ones(1, len(past) + 1, dtype=torch.bool), "en")
    scores = decoder("reconstruct", "en", latent[None], target).logits()[-1].detach()
    scores[[PAD, UNK, BOS]] = -torch.inf
    if not past:
        scores[EOS] = -torch.inf
    return scores.log_softmax(-1)


def straight(decoder: TransformerDecoder, latent: Tensor, search: Beam, max_length: int) -> list[list[int]]:
    """All sentences that are left in the beam, the best first."""
    kept: list[tuple[float, list[int]]] = [(0.0, [])]
    for _ in range(max_length):
        children = []
        for total, past in kept:
            if past[-1:] == [EOS]:
                children.append((total, past))
                continue
            for token, score in enumerate(log_chances(decoder, latent, past).tolist()):
                if token == EOS or not repeats([*past, token], search):
                    children.append((total + score, [*past, token]))
        kept = sorted(children, reverse=True)[: search.size]
    ranked = sorted(kept, key=lambda item: item[0] / len(item[1]) ** search.length_penalty, reverse=True)
    return [[token for token in past if token != EOS] for total, past in ranked if total > -torch.inf]


@pytest.mark.parametrize("rules", [(2, 0), (3, 0), (0, 1), (0, 2), (3, 2), (1, 0), (0, 0)], ids=str)
@pytest.mark.parametrize("length_penalty", [0.0, 1.0, 2.0])
def test_a_beam_with_rules_is_what_it_is_by_definition(rules: tuple[int, int], length_penalty: float) -> None:
    decoder, z = made(9, 1), latents(6)
    search = Beam(4, *rules, length_penalty)
    written = n_best(decoder, z, search, 4, 8)
    for hypotheses, latent in zip(written, z, strict=True):
        assert [each.tokens for each in hypotheses] == straight(decoder, latent, search, 8)
    unruled = Beam(4, length_penalty=length_penalty)
    free = [best.tokens for best in beam(decoder, z, unruled, 8)]
    assert any(repeats(sentence, search) for sentence in free) == any(rules)  # there was something to leave out


@pytest.mark.parametrize("rules", [Sample(no_repeat_ngram=2), Sample(max_run=1), Sample(max_run=2, top_p=0.8)], ids=str)
def test_draws_keep_the_rules(rules: Sample) -> None:
    decoder, z = made(9, 1), latents(300)
    drawn = {}
    for search in (rules, replace(rules, no_repeat_ngram=0, max_run=0)):
        drawn[search] = sample(decoder, z, search, 8, torch.Generator().manual_seed(1))
    ruled, free = drawn.values()
    assert not any(repeats(sentence, rules) for sentence in ruled)
    assert any(repeats(sentence, rules) for sentence in free)


def test_draws_are_shared_among_what_is_left() -> None:
    """Of the second token, after the first may not stand again."""
    decoder, z = made(7, 0), latents(1)
    drawn = sample(decoder, z.expand(20_000, -1), Sample(max_run=1), 2, torch.Generator().manual_seed(2))
    for first in (4, 5, 6):
        after = [sentence[1] if len(sentence) > 1 else EOS for sentence in drawn if sentence[0] == first]
        chances = log_chances(decoder, z[0], [first]).exp()
        chances[first] = 0.0
        expected = len(after) * (chances / chances.sum())[3:]
        counts = torch.bincount(torch.tensor(after), minlength=7)[3:].double()
        assert counts[first - 3] == 0
        others = expected > 0
        assert ((counts - expected) ** 2 / expected)[others].sum() < 13.8  # 2 degrees of freedom, p = 0.001


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (lambda: Beam(no_repeat_ngram=-1), "no_repeat_ngram -1"),
        (lambda: Sample(max_run=-2), "max_run -2"),
        (lambda: Beam(length_penalty=-0.1), "length_penalty -0.1"),
        (lambda: Beam(length_penalty=float("inf")), "length_penalty inf"),
        (lambda: Beam(length_penalty=float("nan")), "length_penalty nan"),
    ],
)
def test_an_impossible_rule_is_refused(search: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        search()

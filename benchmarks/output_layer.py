"""The fused output layer against the straight one: logits of every padded position, then cross-entropy.

Same batches, alternating, one thread, processor time; medians of per-round ratios. Exact: the largest
relative difference of loss and gradient is printed beside the speed.
"""

from __future__ import annotations

import statistics
import time

import torch
import torch.nn.functional as F

from bgt_core.contracts import PAD, Tokens
from bgt_core.nets.output import TiedOutput, UntiedOutput
from bgt_core.nets.transformer import embedding

ROUNDS, SENTENCES, VOCAB, WIDTH, LATENT, SMOOTHING = 7, 256, 8_000, 256, 512, 0.1


def batch(seed: int) -> tuple[torch.Tensor, torch.Tensor, Tokens]:
    """Features (B, T, H), latents (B, L), target: lengths from 5 to 24 pieces, as in a bucketed batch of real text."""
    draw = torch.Generator().manual_seed(seed)
    lengths = torch.randint(5, 25, (SENTENCES,), generator=draw)
    ids = [torch.randint(4, VOCAB, (int(n),), generator=draw).tolist() for n in lengths]
    target = Tokens.pad(ids, "en")
    features = torch.randn(*target.ids.shape, WIDTH, generator=draw)
    return features, torch.randn(SENTENCES, LATENT, generator=draw), target


def straight(layer: torch.nn.Module, features: torch.Tensor, latent: torch.Tensor, target: Tokens) -> torch.Tensor:
    """Full logits; the latent concatenated at every position for the untied layer."""
    if isinstance(layer, UntiedOutput):
        both = torch.cat([features, latent[:, None].expand(-1, features.shape[1], -1)], dim=-1)
        logits = both @ torch.cat([layer.hidden.weight, layer.latent.weight], dim=1).T
    else:
        logits = layer.logits(features, latent)
    flat, ids = logits.float().flatten(0, 1), target.ids.flatten()
    return F.cross_entropy(flat, ids, ignore_index=PAD, reduction="sum", label_smoothing=SMOOTHING)


def timed(layer: torch.nn.Module, fused: bool, seed: int, bf16: bool) -> tuple[float, float, torch.Tensor]:
    """Seconds of one forward and backward, the loss, and the gradient of the features."""
    features, latent, target = batch(seed)
    features.requires_grad_()
    layer.zero_grad()
    begun = time.process_time()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
        loss = layer.nll(features, latent, target, SMOOTHING)[0] if fused else straight(layer, features, latent, target)
    loss.backward()
    return time.process_time() - begun, loss.item(), features.grad


def main() -> None:
    """Print one table."""
    torch.set_num_threads(1)
    layers = {"tied": TiedOutput(embedding(VOCAB, WIDTH), LATENT), "untied": UntiedOutput(VOCAB, WIDTH, LATENT)}
    print(f"torch {torch.__version__}, 1 thread, {SENTENCES} sentences, V {VOCAB}, H {WIDTH}, L {LATENT}")
    print("layer\tprecision\tspeed-up (median, range)\tloss difference\tgradient difference")
    for name, layer in layers.items():
        for bf16 in (False, True):
            ratios, losses, slopes = [], [], []
            for seed in range(ROUNDS + 1):
                fast, loss, slope = timed(layer, True, seed, bf16)
                slow, expected, reference = timed(layer, False, seed, bf16)
                ratios.append(slow / fast)
                losses.append(abs(loss - expected) / expected)
                slopes.append(((slope - reference).norm() / reference.norm()).item())
            ratios = ratios[1:]  # the first round warms up
            spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
            print(f"{name}\t{'bf16' if bf16 else 'fp32'}\t{spread}\t{max(losses):.0e}\t{max(slopes):.0e}")


if __name__ == "__main__":
    main()

"""Neural BGT: linear BGT with a hidden layer beside each map, trained so that shared parts of a row become similar.

The loss is InfoNCE (van den Oord et al. 2018), in both directions: which sentence of a batch belongs to this one? With
it, shared parts find more translations than with an evidence lower bound (docs/guide/split.md compares both). Training
starts from linear BGT, and the weights with the lowest held-out loss are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from itertools import combinations

import numpy as np
import torch
from torch import Tensor, nn

from bgt_core.backend import usual_defaults
from bgt_core.splitting import linear
from bgt_core.splitting.gather import HeldOut, Statistics
from bgt_core.splitting.parts import Map, Split

UNITS = 512  # units of the hidden layer
EPOCHS, BATCH = 3, 1_024
LEARNING_RATE = 2e-3  # initial; it decreases linearly to 0
TEMPERATURE = 0.05
RIDGE = 1e-6  # ridge penalty for predicting a vector from shared parts, relative to their mean variance


class Reader(nn.Module):
    """Map a language's vectors (N, D) to shared parts (N, K), by a linear map and a hidden layer that starts at 0.

    Vectors are divided by `scale`, because the size of training steps does not depend on the scale of vectors.
    """

    def __init__(self, start: Map, covariance: np.ndarray, scale: float):
        super().__init__()
        factors, width = start.read.shape
        self.offset: Tensor
        self.register_buffer("offset", torch.tensor(start.offset, dtype=torch.float32))
        self.root = scale**0.5  # vectors are divided by it twice, because float32 may not hold the scale itself
        self.read = nn.Parameter(torch.tensor(start.read * scale, dtype=torch.float32))
        self.up, self.down = nn.Linear(width, UNITS), nn.Linear(UNITS, factors, bias=False)
        nn.init.zeros_(self.down.weight)
        with torch.no_grad():
            self.up.weight /= float(np.sqrt(np.trace(covariance) / width)) / scale  # as if units had variance 1

    def forward(self, vectors: Tensor) -> Tensor:
        centred = (vectors - self.offset) / self.root / self.root
        return centred @ self.read.T + self.down(self.up(centred).relu())


def fit(
    statistics: Statistics,
    held_out: Sequence[HeldOut],
    rows: Sequence[HeldOut],
    *,
    factors: int | None = None,
    seed: int = 0,
) -> Split:
    """Fit linear BGT, then train its maps with a hidden layer beside them.

    Args:
        statistics: Statistics of the vectors.
        held_out: Rows that choose the number of factors, and the best epoch.
        rows: Rows to train on.
        factors: Units of the shared part; by default as many as linear BGT chooses.
        seed: Seed of the initial weights and of the order of rows.

    Returns:
        The split. The shared parts of a language have a mean of 0 over `rows`. The private part is the residual of a
        least-squares prediction from the shared part. `about` adds `contrast` to that of linear BGT: the held-out loss
        before training and after each epoch.
    """
    start = linear.bgt(statistics, held_out, factors=factors)
    train, valid = tensors(rows), tensors(held_out)
    # the root mean square length of all languages' vectors, to three digits: 1 if an encoder scales them to 1
    squares = [np.trace(statistics.covariances[lang]) + np.square(of).sum() for lang, of in statistics.means.items()]
    scale = float(f"{np.sqrt(np.mean(squares)):.3g}")
    with torch.random.fork_rng(devices=[]), usual_defaults():
        torch.manual_seed(seed)
        covariances = statistics.covariances
        readers = nn.ModuleDict({lang: Reader(of, covariances[lang], scale) for lang, of in start.maps.items()})
        steps = [(part, ids) for _ in range(EPOCHS) for part in range(len(train)) for ids in batches(train[part])]
        optimizer = torch.optim.Adam(readers.parameters(), LEARNING_RATE)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, len(steps))
        losses, best = [held_out_loss(readers, valid)], deepcopy(readers.state_dict())
        for step, (part, ids) in enumerate(steps, 1):
            langs, columns = train[part]
            loss = contrast(readers, langs, [column[ids] for column in columns])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            if step % (len(steps) // EPOCHS) == 0:
                losses.append(held_out_loss(readers, valid))
                if losses[-1] == min(losses):
                    best = deepcopy(readers.state_dict())
    readers.load_state_dict(best)
    maps = {
        lang: as_map(
            readers[lang],
            [column for langs, columns in train for each, column in zip(langs, columns, strict=True) if each == lang],
            scale,
        )
        for lang in start.maps
    }
    return Split("neural", maps, {**start.about, "contrast": losses})


def tensors(rows: Sequence[HeldOut]) -> list[tuple[Sequence[str], list[Tensor]]]:
    """Convert rows to float32 tensors."""
    return [(langs, [torch.from_numpy(column).float() for column in columns]) for langs, columns in rows]


def batches(rows: tuple[Sequence[str], list[Tensor]]) -> list[Tensor]:
    """Return the row numbers in random order, in batches of about `BATCH`."""
    count = len(rows[1][0])
    return list(torch.randperm(count).chunk(max(1, round(count / BATCH))))


def contrast(readers: nn.ModuleDict, langs: Sequence[str], columns: Sequence[Tensor]) -> Tensor:
    """Return the mean cross-entropy, in nats, of finding a row in a batch, for each two columns, in both directions."""
    shared = [nn.functional.normalize(readers[lang](column)) for lang, column in zip(langs, columns, strict=True)]
    rows = torch.arange(len(columns[0]))
    losses = []
    for left, right in combinations(shared, 2):
        logits = left @ right.T / TEMPERATURE
        losses += [nn.functional.cross_entropy(logits, rows), nn.functional.cross_entropy(logits.T, rows)]
    return torch.stack(losses).mean()


@torch.no_grad()
def held_out_loss(readers: nn.ModuleDict, rows: Sequence[tuple[Sequence[str], list[Tensor]]]) -> float:
    """Return the contrast of the first `BATCH` rows of each file, averaged over files."""
    parts = [contrast(readers, langs, [column[:BATCH] for column in columns]) for langs, columns in rows]
    return float(torch.stack(parts).mean())


@torch.no_grad()
def as_map(reader: nn.Module, columns: Sequence[Tensor], scale: float) -> Map:
    """Convert a trained reader to arrays, so that the shared parts of `columns` have mean 0."""
    parts = [part for column in columns for part in column.split(4 * BATCH)]
    weights = {name: value.double().numpy() for name, value in reader.state_dict().items()}
    mean = sum(reader(part).double().sum(0).numpy() for part in parts) / sum(map(len, parts))
    gram, crosses = np.zeros((len(mean), len(mean))), np.zeros((len(mean), len(weights["offset"])))
    for part in parts:
        shared = reader(part).double().numpy() - mean
        gram += shared.T @ shared
        crosses += shared.T @ (part.double().numpy() - weights["offset"])
    ridge = RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
    back = np.linalg.solve(gram + ridge, crosses).T
    hidden = (weights["up.weight"] / scale, weights["up.bias"], weights["down.weight"])
    return Map(weights["offset"], weights["read"] / scale, back, -mean, hidden)

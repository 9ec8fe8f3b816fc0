"""A probe with one hidden layer, as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bgt_core.vectors.linear_probe import STRENGTHS, FittedStrength, Layers, Probe, Seed
from probes.classifiers.senteval import Stack, forward


class MLPProbe(Probe):
    """Linear, sigmoid, linear; Adam on minibatches, and each strength stops once dev stops improving."""

    def __init__(
        self,
        hidden: int = 50,
        strengths: Sequence[float] = STRENGTHS[2:],
        learning_rate: float = 3e-3,
        batch_size: int = 128,
        patience: int = 5,
        max_epochs: int = 200,
        random_state: Seed = 0,
    ):
        self.hidden = hidden
        self.strengths = strengths
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.patience = patience  # epochs without a better dev loss until training ends
        self.max_epochs = max_epochs  # a strength that has not stopped by then has not converged
        self.random_state = random_state

    def _train(
        self, train: tuple[Tensor, Tensor], dev: tuple[Tensor, Tensor], strengths: Sequence[float], seed: int
    ) -> list[FittedStrength]:
        vectors, labels = train[0], train[1].numpy()
        penalties = [1 / (strength * len(labels)) for strength in strengths]
        stack = Stack([vectors.shape[1], self.hidden, len(self.classes_)], penalties, seed, self.learning_rate)
        order = np.random.default_rng(seed)
        best: dict[int, tuple[float, int, Layers]] = {}  # strength -> its least loss, the epoch, the layers then
        running = list(range(len(strengths)))  # running[i] is the strength of network i of the stack
        for epoch in range(self.max_epochs):
            stack.train(vectors, labels, order.permutation(len(labels)), self.batch_size)
            scores = forward(stack.parameters, dev[0])  # (S, K, N)
            targets = dev[1].expand(len(running), -1)  # (S, N)
            losses = torch.nn.functional.cross_entropy(scores, targets, reduction="none").mean(1)
            for network, (strength, loss) in enumerate(zip(running, losses.tolist(), strict=True)):
                if strength not in best or loss < best[strength][0]:
                    best[strength] = loss, epoch, _layers([part[network] for part in stack.parameters])
            survivors = [i for i, strength in enumerate(running) if epoch - best[strength][1] < self.patience]
            if len(survivors) < len(running):
                running = [running[network] for network in survivors]
                if not running:
                    break
                stack.keep(survivors)
        return [FittedStrength(best[strength][2], strength not in running) for strength in range(len(strengths))]


def _layers(parameters: Sequence[Tensor]) -> Layers:
    """Weight (out, in), bias (out, 1), ... -> copies as `Layers`."""
    arrays = [part.double().numpy() for part in parameters]
    return [(weight.T, bias[:, 0]) for weight, bias in zip(arrays[::2], arrays[1::2], strict=True)]

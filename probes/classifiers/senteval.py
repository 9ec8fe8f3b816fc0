"""SentEval's probing classifier with SentEval's protocol; classifiers with different penalties are trained together.

SentEval (Conneau & Kiela, 2018; `SplitClassifier`) trains one classifier per penalty, one after another. All
classifiers have the same seed, so they start from the same weights and see the same minibatches. Here they are trained
together as a stack: one matrix product serves all classifiers, and the gradient is computed without autograd. Each
classifier has its own early stopping, and leaves the stack when it stops. The protocol:

- Vectors are used unchanged, in float32, without centring or scaling.
- With `hidden=0`, SentEval's default, a classifier is softmax regression; otherwise it has a linear layer, a sigmoid,
  and a linear layer. Classes are the sorted labels of train.
- Weights and biases are initialised as in `torch.nn.Linear`, with the seed. Each pass over train has a new random
  order, drawn from NumPy's legacy generator with the same seed.
- The loss is the mean cross-entropy of minibatches of 64; the last minibatch of a pass may be smaller. Adam has its
  default settings; the penalty times the parameter is added to the gradient, also for biases.
- Dev is scored after every 4 passes. If the score is a new best score, the weights are kept; otherwise it counts as a
  failure. The sixth failure ends the training, even if there were new best scores in between.
- Training also ends after more than 200 passes. As there are 4 passes between scores, the maximum is 204.
- The penalties are 1e-5, 1e-4, 1e-3 and 1e-2. The penalty with the best dev accuracy wins, or the first if several are
  equal; accuracies are in percent, rounded to two decimals.
- SentEval then trains the winner again with the same seed. The weights would be the same, so this step is left out.

docs/differences.md lists the faults of the original that are not copied, and all differences from it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn
from torch.optim.adam import adam

from bgt_core.errors import DataError

Split = tuple[np.ndarray, Sequence[object]]  # vectors (N, D) and their N labels
Parameters = list[Tensor]  # for each layer: the weights (S, out, in) and biases (S, out, 1) of S networks

LANES = 16  # rows are padded to a multiple of 16 floats, as 1,025 to 1,040; rows of 1,024 cause cache conflicts


@dataclass(frozen=True)
class SentEval:
    """The settings of SentEval's protocol. Users of SentEval set only `hidden` and `seed`."""

    hidden: int = 0  # number of units of the hidden layer; 0 for no hidden layer
    penalties: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2)  # L2 penalties, each for a classifier of its own
    batch_size: int = 64
    epoch_size: int = 4  # passes over the training items between two evaluations on the dev items
    tenacity: int = 5  # number of evaluations without a new best that are tolerated; the next ends training
    max_epoch: int = 200  # training ends after more passes over the training items than this
    seed: int = 1111


@dataclass(frozen=True, eq=False)
class SplitResult:
    """The result of `split_classify`; accuracies are in percent with two decimals, as in SentEval."""

    penalty: float  # the penalty whose classifier has the best dev accuracy
    dev_accuracy: float
    test_accuracy: float
    dev_accuracies: tuple[float, ...]  # best dev accuracy of each penalty
    epochs: tuple[int, ...]  # number of passes over the training items by each classifier, one per penalty
    predicted: np.ndarray  # (N,) predicted labels of the test items


@dataclass
class Candidate:
    """One of the classifiers that are trained together: its L2 penalty, and the state of its early stopping."""

    penalty: float
    most_correct: int = -1  # highest number of correct dev items so far
    best_parameters: Parameters = field(default_factory=list)
    failures: int = 0
    epochs: int = 0


@threadpool_limits.wrap(limits=1)  # threads do not make small products faster, and they change the rounding of sums
@torch.inference_mode()
def split_classify(train: Split, dev: Split, test: Split, protocol: SentEval | None = None) -> SplitResult:
    """Train on `train`, use `dev` for early stopping and to choose the penalty, and test on `test`; deterministic.

    Every label must occur in train. Raises DataError for vectors with NaN or infinity.
    """
    protocol = protocol or SentEval()
    classes, width = np.unique(np.asarray(train[1])), np.shape(train[0])[-1]
    vectors, labels = _checked("train", train, classes)
    dev_vectors, dev_labels = map(torch.tensor, _checked("dev", dev, classes))
    test_vectors, test_labels = _checked("test", test, classes)

    train_vectors = torch.from_numpy(vectors if vectors.flags.writeable else vectors.copy())
    sizes = [width, protocol.hidden, len(classes)] if protocol.hidden else [width, len(classes)]
    stack = Stack(sizes, protocol.penalties, protocol.seed)
    order = np.random.RandomState(protocol.seed)
    candidates = [Candidate(penalty) for penalty in protocol.penalties]
    running, epochs = candidates, 0  # running[i] is the classifier that network i of the stack trains
    while running and epochs <= protocol.max_epoch:
        for _ in range(protocol.epoch_size):
            stack.train(train_vectors, labels, order.permutation(len(labels)), protocol.batch_size)
        epochs += protocol.epoch_size
        correct = (_predict(stack.parameters, dev_vectors) == dev_labels).sum(1).tolist()
        for network, (candidate, count) in enumerate(zip(running, correct, strict=True)):
            candidate.epochs = epochs
            if count > candidate.most_correct:
                candidate.most_correct = count
                candidate.best_parameters = [part[[network]] for part in stack.parameters]
            else:
                candidate.failures += 1
        survivors = [network for network, candidate in enumerate(running) if candidate.failures <= protocol.tenacity]
        if len(survivors) < len(running):
            stack.keep(survivors)
            running = [running[network] for network in survivors]

    accuracies = [_percent(candidate.most_correct, len(dev_labels)) for candidate in candidates]
    winner = candidates[accuracies.index(max(accuracies))]
    predicted = _predict(winner.best_parameters, torch.tensor(test_vectors))[0].numpy()
    return SplitResult(
        penalty=winner.penalty,
        dev_accuracy=max(accuracies),
        test_accuracy=_percent(int((predicted == test_labels).sum()), len(predicted)),
        dev_accuracies=tuple(accuracies),
        epochs=tuple(candidate.epochs for candidate in candidates),
        predicted=classes[predicted],
    )


class Stack:
    """S networks with equal shapes and initial weights but different L2 penalties, and their optimiser states (Adam).

    A bias is the weight of an extra unit that is always 1. So each layer is one matrix, and its gradient is one matrix.
    """

    def __init__(self, sizes: Sequence[int], penalties: Sequence[float], seed: int, learning_rate: float = 1e-3):
        self.learning_rate = learning_rate
        self.steps = [torch.zeros(()) for _ in sizes[1:]]  # the step counter of each layer, which `adam` increments
        generator = torch.Generator().manual_seed(seed)
        values = []
        for depth, (inputs, outputs) in enumerate(pairwise(sizes)):
            weight, bias = torch.empty(outputs, inputs), torch.empty(outputs, 1)
            nn.init.kaiming_uniform_(weight, a=math.sqrt(5), generator=generator)  # the initialisation of nn.Linear
            nn.init.uniform_(bias, -1 / math.sqrt(inputs), 1 / math.sqrt(inputs), generator=generator)
            columns = 0 if depth else -(inputs + 1) % LANES
            rows = int(depth < len(sizes) - 2)  # a row of zeros; the output that it computes is replaced by 1
            layer = nn.functional.pad(torch.cat([weight, bias], 1), (0, columns, 0, rows))
            values.append(layer.repeat(len(penalties), 1, 1))
        self.sizes = sizes
        means, squares = ([torch.zeros_like(layer) for layer in values] for _ in range(2))
        self._set_state(values, means, squares, torch.tensor(penalties)[:, None, None])

    def _set_state(self, values: list[Tensor], means: list[Tensor], squares: list[Tensor], penalties: Tensor) -> None:
        """Set the weights of each layer (S, out, in), Adam's two moments for them, and the penalties (S, 1, 1)."""
        self.values, self.means, self.squares, self.penalties = values, means, squares, penalties
        # these arrays are reused, because allocating them in every step makes training up to a quarter slower
        self.gradients = [torch.empty_like(layer) for layer in values]
        self.parameters = []
        for weights, (inputs, outputs) in zip(values, pairwise(self.sizes), strict=True):
            self.parameters += [weights[:, :outputs, :inputs], weights[:, :outputs, inputs : inputs + 1]]

    def keep(self, networks: list[int]) -> None:
        """Keep only the networks with these indices, and stop training the others."""
        values, means, squares = ([part[networks] for part in row] for row in (self.values, self.means, self.squares))
        self._set_state(values, means, squares, self.penalties[networks])

    def train(self, vectors: Tensor, labels: np.ndarray, order: np.ndarray, batch_size: int) -> None:
        """Train all networks for one pass over vectors (N, D) and class indices (N,), in the order of rows `order`."""
        whole = len(order) - len(order) % batch_size  # rows in full minibatches; the last minibatch may be smaller
        for batches in (order[:whole].reshape(-1, batch_size), order[whole:].reshape(1, -1)):
            if batches.size:
                batch = torch.zeros(batches.shape[1], self.values[0].shape[2])
                items = batch[:, : vectors.shape[1]]
                batch[:, vectors.shape[1]] = 1
                targets = torch.from_numpy(self._targets(labels[batches]))
                for rows, right in zip(torch.from_numpy(batches), targets, strict=True):
                    torch.index_select(vectors, 0, rows, out=items)
                    self._update(batch, right)

    def _targets(self, labels: np.ndarray) -> np.ndarray:
        """Return the indices of the true classes' logits in the flattened logits (S, C, B) of each of M minibatches, as
        (M, S * B). `labels` (M, B) are the true classes."""
        batches, items = labels.shape
        networks = np.arange(len(self.penalties))[:, None]
        return ((networks * self.sizes[-1] + labels[:, None]) * items + np.arange(items)).reshape(batches, -1)

    def _update(self, batch: Tensor, targets: Tensor) -> None:
        """Take an Adam step on a minibatch (B, in). `targets` (S * B,) are the indices of the true classes' logits in
        the flattened logits (S, C, B)."""
        first, *others = self.values
        signals = [torch.mm(first.flatten(0, 1), batch.T).unflatten(0, first.shape[:2])]
        for weights in others:
            signals[-1].sigmoid_()[:, -1] = 1
            signals.append(torch.bmm(weights, signals[-1]))
        gradient = signals.pop().softmax(1)  # (S, C, B): the gradient is the softmax minus the one-hot labels
        gradient.view(-1).index_add_(0, targets, torch.full(targets.shape, -1.0))
        for weights, change in zip(self.values, self.gradients, strict=True):
            torch.mul(weights, self.penalties, out=change)
        share, (first_change, *changes) = 1 / len(batch), self.gradients
        for weights, change, signal in zip(reversed(others), reversed(changes), reversed(signals), strict=True):
            change.baddbmm_(gradient, signal.mT, alpha=share)
            gradient = torch.bmm(weights.mT, gradient).mul_(signal)
            gradient.addcmul_(gradient, signal, value=-1)  # the derivative of a sigmoid is signal (1 - signal)
        first_change.flatten(0, 1).addmm_(gradient.flatten(0, 1), batch, alpha=share)
        # torch.optim.Adam calls this function too; the class itself takes longer than the update of a small network
        adam(
            self.values, self.gradients, self.means, self.squares, [], self.steps, lr=self.learning_rate,
            beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0, amsgrad=False, maximize=False, fused=True,
        )  # fmt: skip


def forward(parameters: Parameters, vectors: Tensor) -> Tensor:
    """Return the logits (S, C, N) that S networks compute from vectors (N, D)."""
    weight, bias = parameters[:2]
    signal = torch.mm(weight.flatten(0, 1), vectors.T).unflatten(0, weight.shape[:2]).add_(bias)
    for weight, bias in zip(parameters[2::2], parameters[3::2], strict=True):
        signal = torch.baddbmm(bias, weight, signal.sigmoid_())
    return signal


def _predict(parameters: Parameters, vectors: Tensor) -> Tensor:
    """Predict the class indices (S, N) of vectors (N, D) with each of S networks."""
    return forward(parameters, vectors).argmax(1)


def _percent(count: int, items: int) -> float:
    return round(100 * (count / items), 2)


def _checked(name: str, split: Split, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return float32 vectors (N, D) and class indices (N,). Raises DataError for vectors with NaN or infinity."""
    vectors = np.asarray(split[0], np.float32)
    # NaN or infinity in the vectors makes their sum non-finite. A float32 sum can also overflow, so the float64 sum
    # decides.
    with np.errstate(over="ignore"):
        finite = math.isfinite(vectors.sum()) or math.isfinite(vectors.sum(dtype=np.float64))
    if not finite:
        raise DataError(f"The {name} vectors contain NaN or infinity; fix the model, or leave out those items.")
    return vectors, np.searchsorted(classes, np.asarray(split[1]))

"""Split labelled sentences, train and test probes on them, and measure accuracy, V-information and selectivity.

V-information (Xu et al., 2020): I_V(R -> Y) = H_V(Y) - H_V(Y | R). This is the number of bits that the vectors R save
when the test labels Y are coded with the probabilities of the best probe of a family V. Without vectors, the best probe
predicts the label frequencies of the training items. Pointwise V-information (Ethayarajh et al., 2022) is the same
quantity for one item. On held-out items, the estimate can be negative, if the probe predicts worse than the label
frequencies.

A control task (Hewitt & Liang, 2019) has the same inputs, but labels that can only be memorised. Selectivity is the
accuracy on the task minus the accuracy on the control task. Hewitt and Liang give each word type a random label. A
random label for each sentence would not work, because no test sentence occurs in training. So here each sentence has a
key that other sentences share, and each key gets a random label. The key is the rarest of the sentence's frequent
tokens. (The first token would be a poor key, because a fifth of French sentences may share the label of "le". For
subject number with 2,000 test items, the interval of selectivity was 17 points wide with first tokens, and is 4 points
wide with rare tokens.)
"""

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.columns import split_langs
from bgt_core.errors import DataError, UsageError, check_least
from bgt_core.vectors.linear_probe import STRENGTHS, Layers, LinearProbe, Probe, Seed
from probes.classifiers.senteval import Stack, forward
from probes.data.load import label_sentences
from probes.measures.significance import MIN_RESAMPLES, RESAMPLES, bootstrap
from probes.task import MIN_ITEMS, SPLITS, Items, ProbeTask, common, in_one_split, some, split_tokens, with_copies

MAX_ITEMS = 10_000
FOLDS = 10  # of ten folds, one is for testing, one for choosing the L2 penalty, and eight are for training

Cut = tuple[np.ndarray, np.ndarray, np.ndarray]  # indices of the train, dev and test items
ProbeFactory = Callable[[int], ClassifierMixin]  # a function that makes a new probe from a seed
Vectors: TypeAlias = np.ndarray | csr_matrix  # vectors (N, D), dense or sparse

FREQUENT = 2_000  # number of frequent tokens that a control task can use as keys of sentences
MIN_RECURRING = 30  # minimum number of dev and of test items whose key (see `keys`) also occurs in training
LEARNING_RATE, BATCH_SIZE = 3e-3, 128  # hyperparameters of the training of an MLP
PATIENCE = 5  # an MLP's training ends after this number of epochs without a lower dev loss


@dataclass(frozen=True)
class ProbeConfig:
    """The options of the probes and of the optional measures. With the defaults, a probe is trained in seconds.

    Raises UsageError for a value out of range:

        >>> ProbeConfig(seeds=3, control=False)  # doctest: +ELLIPSIS
        ProbeConfig(probe='linear', seeds=3, ...)
        >>> ProbeConfig(seeds=11)
        Traceback (most recent call last):
        bgt_core.errors.UsageError: seeds 11: choose 1 to 10; each seed tests on another tenth of the items.
    """

    probe: str = "linear"  # "linear", or for example "mlp50", an MLP with 50 hidden units
    seeds: int = 5  # number of probes, 1 to 10
    seed: int = 0  # seed of the random labels, splits and resamples
    max_items: int | None = None  # maximum number of items; None for 10,000, or for all items with SentEval's protocol
    baselines: bool = True  # whether to measure baselines that do not use the encoder
    control: bool = True  # whether to measure selectivity, with a control task
    resamples: int = RESAMPLES  # number of resamples of the test items
    senteval: bool = False  # SentEval's protocol (`probes.classifiers.senteval`): one seed, accuracy only

    def __post_init__(self) -> None:
        hidden_units(self.probe)
        if not 1 <= self.seeds <= FOLDS:
            raise UsageError(
                f"{self.seeds}: choose 1 to {FOLDS}; each seed tests on another tenth of the items.", parameter="seeds"
            )
        check_least(MIN_ITEMS, max_items=self.max_items)
        check_least(MIN_RESAMPLES, resamples=self.resamples)


def hidden_units(probe: str) -> int:
    """Return the number of hidden units: 0 for "linear", 50 for "mlp50". Raises UsageError for another name."""
    if probe == "linear":
        return 0
    if probe.startswith("mlp") and probe[3:].isdecimal() and int(probe[3:]):
        return int(probe[3:])
    raise UsageError(f"{probe}: choose linear, or mlp50 for 50 hidden units.", parameter="probe")


@dataclass(frozen=True, eq=False)
class Study:
    """N labelled items in one language, divided into train, dev and test items for each seed of the probe."""

    task: str
    lang: str
    items: Items
    names: list[str]  # the labels in alphabetical order
    labels: np.ndarray  # (N,) indices into `names`
    cuts: list[Cut]
    left_out: int  # number of items left out because of a rare label or `max_items`

    @property
    def tested(self) -> np.ndarray:
        """A mask (S, N): whether the probe of each of S seeds is tested on each of N items."""
        return np.stack([np.isin(np.arange(len(self.labels)), test) for _, _, test in self.cuts])


def prepare(task: ProbeTask, sentences: Sequence[str] | Items | None, *, lang: str, config: ProbeConfig) -> Study:
    """Label sentences (by default the built-in sentences; `Items` keep their labels), and split them for each probe.

    The items are shuffled, because their order determines the minibatches; with SentEval's protocol, they stay in
    order. Raises UsageError if the task is not defined for the language, and DataError for too few items or an empty
    split.
    """
    task.check(lang)
    if not isinstance(sentences, Items):
        sentences = label_sentences(task, sentences, lang, seed=config.seed).items
    limit = config.max_items or (sys.maxsize if config.senteval else MAX_ITEMS)
    items, left_out = select(sentences, limit, config.seed, in_order=config.senteval)
    names, labels = np.unique(items.labels, return_inverse=True)
    if len(labels) < MIN_ITEMS or len(names) < 2:
        kinds = f"the label {some(names)} alone" if len(names) == 1 else f"{len(names)} labels"
        counts = f"{len(labels)} items with {kinds}"
        raise DataError(f"Task '{task.name}' got {counts}; it needs {MIN_ITEMS} items with 2 labels: add items.")
    cuts = cuts_of(items, 1 if config.senteval else config.seeds, config.seed)
    for name, rows in zip(SPLITS, cuts[0], strict=True):
        if not len(rows):
            raise DataError(f"Task '{task.name}' has no {name} items: give some, or items without splits.")
    parts = [("train", train) for train, _, _ in cuts] + [("test", np.concatenate([test for *_, test in cuts]))]
    for part, numbers in parts:
        if len(present := np.unique(labels[numbers])) < 2:
            only = names[present[0]]
            raise DataError(
                f"Task '{task.name}' has no {part} items of {some(set(names) - {only})}, only of {some([only])}: give "
                f"{part} items of each label, more seeds, or items without splits."
            )
    return Study(task.name, lang, items, names.tolist(), labels, cuts, left_out)


def select(items: Items, limit: int, seed: int, in_order: bool = False) -> tuple[Items, int]:
    """Draw at most `limit` items, all items of a group or none of them. Also return how many items are left out.

    Items whose label is too rare to be learnt are left out. Copies of a sentence form one group. The items are
    shuffled, and each group is in one split. With `in_order`, items stay in their order and in their splits.
    """
    joined = with_copies(items)
    learnable = common(joined if in_order else in_one_split(joined))
    rows: dict[int, list[int]] = {}  # group number -> indices of its items
    for row, group in enumerate(learnable.groups):
        rows.setdefault(group, []).append(row)
    order = list(rows)
    Random(seed).shuffle(order)
    chosen: list[int] = []
    for group in order:
        if len(chosen) + len(rows[group]) > limit:
            break
        chosen += rows[group]
    return learnable.take(sorted(chosen) if in_order else chosen), len(items.labels) - len(chosen)


def cuts_of(items: Items, seeds: int, seed: int) -> list[Cut]:
    """Divide items into train, dev and test for each of at most 10 probe seeds; the items of a group stay together.

    Without fixed splits, groups are shuffled once and divided into ten folds; the probe of seed k is tested on fold k,
    and fold k + 1 is its dev set. So no item is tested twice. With fixed splits and several seeds, each seed omits a
    different tenth of the groups from train, because otherwise all seeds would lead to the same optimal probe.
    """
    if items.splits is None:
        order = list(dict.fromkeys(items.groups))
        Random(seed).shuffle(order)
        fold_of = {group: number % FOLDS for number, group in enumerate(order)}
        fold = np.array([fold_of[group] for group in items.groups])
        tests = [(test, (test + 1) % FOLDS) for test in range(seeds)]
        return [
            (np.flatnonzero((fold != test) & (fold != dev)), np.flatnonzero(fold == dev), np.flatnonzero(fold == test))
            for test, dev in tests
        ]
    names, groups = np.array(items.splits), np.array(items.groups)
    train, dev, test = (np.flatnonzero(names == name) for name in SPLITS)
    if seeds == 1:
        return [(train, dev, test)]
    dealt = np.random.default_rng(seed).permutation(np.unique(groups[train]))
    return [(train[~np.isin(groups[train], dealt[k::FOLDS])], dev, test) for k in range(seeds)]


@dataclass(frozen=True, eq=False)
class Measured:
    """Predictions for N items from one latent or baseline. Arrays are (E, S, N): E encoder seeds and S probe seeds."""

    predicted: np.ndarray  # int32, -1 for items outside a seed's test split
    bits: np.ndarray  # float32, -log2 of the probability of the true label; NaN for items outside a seed's test split
    saved: np.ndarray  # float32, pointwise V-information in bits
    right: np.ndarray  # bool, False for items outside a seed's test split
    dev: float  # accuracy on the dev items, averaged over seeds
    unconverged: int  # how many of the E * S probes did not converge


class MLPProbe(Probe):
    """An MLP with one sigmoid layer, trained by Adam with several L2 penalties, each with its own early stopping."""

    def __init__(
        self,
        hidden: int = 50,
        strengths: Sequence[float] = STRENGTHS[2:],
        max_epochs: int = 200,
        random_state: Seed = 0,
    ):
        self.hidden = hidden
        self.strengths = strengths
        self.max_epochs = max_epochs  # a network that has not stopped by this epoch counts as not converged
        self.random_state = random_state

    def _train(
        self, train: tuple[Tensor, Tensor], dev: tuple[Tensor, Tensor], strengths: Sequence[float], seed: int
    ) -> list[tuple[Layers, bool]]:
        vectors, labels = train[0], train[1].numpy()
        penalties = [1 / (strength * len(labels)) for strength in strengths]
        stack = Stack([vectors.shape[1], self.hidden, len(self.classes_)], penalties, seed, LEARNING_RATE)
        order = np.random.default_rng(seed)
        best: dict[int, tuple[float, int, Layers]] = {}  # penalty index -> its lowest loss, with epoch and layers
        running = list(range(len(strengths)))  # running[i] is the index of the penalty with which network i is trained
        for epoch in range(self.max_epochs):
            stack.train(vectors, labels, order.permutation(len(labels)), BATCH_SIZE)
            scores = forward(stack.parameters, dev[0])  # (S, K, N)
            targets = dev[1].expand(len(running), -1)  # (S, N)
            losses = torch.nn.functional.cross_entropy(scores, targets, reduction="none").mean(1)
            for network, (strength, loss) in enumerate(zip(running, losses.tolist(), strict=True)):
                if strength not in best or loss < best[strength][0]:
                    best[strength] = loss, epoch, _layers([part[network] for part in stack.parameters])
            survivors = [i for i, strength in enumerate(running) if epoch - best[strength][1] < PATIENCE]
            if len(survivors) < len(running):
                running = [running[network] for network in survivors]
                if not running:
                    break
                stack.keep(survivors)
        return [(best[strength][2], strength not in running) for strength in range(len(strengths))]


def _layers(parameters: Sequence[Tensor]) -> Layers:
    """Convert a list that alternates between weights (out, in) and biases (out, 1) to `Layers`."""
    arrays = [part.double().numpy() for part in parameters]
    return [(weight.T, bias[:, 0]) for weight, bias in zip(arrays[::2], arrays[1::2], strict=True)]


def probe_factory(probe: str) -> ProbeFactory:
    """Return a function that makes a probe from a seed, for "linear" or a name like "mlp50"; else raise UsageError."""
    hidden = hidden_units(probe)
    if hidden:
        return lambda seed: MLPProbe(hidden, random_state=seed)
    return lambda seed: LinearProbe(random_state=seed)


def embed_items(encoder: SentenceEncoder, study: Study, latent: str) -> np.ndarray:
    """Embed the sentences of a study, (N, D). If the labels are languages, each sentence is in its own language."""
    sentences = study.items.sentences
    if len(split_langs(study.lang)) == 1:
        return encoder.embed(sentences, lang=study.lang, latent=latent)
    vectors: dict[int, np.ndarray] = {}  # index of an item -> its vector
    for label, lang in enumerate(study.names):
        rows = np.flatnonzero(study.labels == label)
        vectors |= zip(rows, encoder.embed([sentences[row] for row in rows], lang=lang, latent=latent), strict=True)
    return np.stack([vectors[row] for row in range(len(sentences))])


def measure(make: ProbeFactory, inputs: Sequence[Vectors], labels: np.ndarray, cuts: Sequence[Cut]) -> Measured:
    """Fit and test a probe for each encoder's vectors (N, D) and each of `cuts`; `labels` (N,) are class indices."""
    shape, classes = (len(inputs), len(cuts), len(labels)), int(labels.max()) + 1
    predicted, coded = np.full(shape, -1, np.int32), np.full(shape, np.nan, np.float32)
    saved, dev_accuracy, unconverged = coded.copy(), [], 0
    for encoder, vectors in enumerate(inputs):
        for seed, (train, dev, test) in enumerate(cuts):
            probe = make(seed)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", ConvergenceWarning)
                probe.fit(vectors[train], labels[train], (vectors[dev], labels[dev]))
            unconverged += any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
            dev_accuracy.append(np.mean(probe.predict(vectors[dev]) == labels[dev]))
            logs = probe.predict_log_proba(vectors[test])
            tested = encoder, seed, test
            predicted[tested] = probe.classes_[logs.argmax(1)]
            coded[tested] = bits(logs, probe.classes_, labels[test], classes, len(train))
            saved[tested] = share_bits(labels[train], labels[test], classes) - coded[tested]
    return Measured(predicted, coded, saved, predicted == labels, float(np.mean(dev_accuracy)), unconverged)


def bits(
    log_probabilities: np.ndarray, known: np.ndarray, labels: np.ndarray, classes: int, trained: int
) -> np.ndarray:
    """Return -log2 q(y) of each item's label y, (N,), from the natural log-probabilities (N, K') of the `known` labels.

    If some of the K `classes` do not occur among the n `trained` items, q is smoothed to (n q + 1) / (n + K), so that
    no label costs infinitely many bits.
    """
    columns = np.searchsorted(known, labels).clip(max=len(known) - 1)
    seen = known[columns] == labels
    logs = np.where(seen, log_probabilities[np.arange(len(labels)), columns], -np.inf)
    if len(known) < classes:
        logs = np.logaddexp(np.log(trained) + logs, 0.0) - np.log(trained + classes)
    return -logs / np.log(2)


def share_bits(trained: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """Return -log2 of the frequency of each item's label among the `trained` labels, (N,); the mean is H_V(Y)."""
    known, counts = np.unique(trained, return_counts=True)
    logs = np.log(counts / len(trained))
    return bits(np.broadcast_to(logs, (len(labels), len(known))), known, labels, classes, len(trained))


def keys(sentences: Sequence[str]) -> list[str]:
    """Return each sentence's key for a control task: its rarest token among the 2,000 most frequent tokens."""
    tokens = [split_tokens(sentence.lower()) for sentence in sentences]
    common = dict(Counter(token for words in tokens for token in set(words)).most_common(FREQUENT))
    return [
        min((token for token in words if token in common), key=lambda token: (common[token], token), default="")
        for words in tokens
    ]


def control_labels(
    names: Sequence[str], labels: np.ndarray, train: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw a random label for each key of a control task. Return each item's label and whether it is tested, (N,) each.

    Items are not tested if their key is not among the training items, because their label can't be memorised.
    """
    kinds, kind = np.unique(names, return_inverse=True)
    drawn = np.random.default_rng(seed).choice(labels, len(kinds))
    return drawn[kind], np.isin(kind, kind[train])


def selectivity(study: Study, inputs: Sequence[Vectors], task: Measured, config: ProbeConfig) -> dict[str, Any]:
    """Fit the same probes to the control task, with new labels for each probe seed, and compare with the task itself.

    Returns fields of `ProbeScore`, computed on the same test items for both tasks. Returns an empty dict if fewer than
    30 dev items or fewer than 30 test items have a key that occurs in train, or if all train items get the same label.
    """
    make, names = probe_factory(config.probe), keys(study.items.sentences)
    right = np.zeros_like(task.right)
    tested = np.zeros_like(study.tested)
    for seed, (train, dev, test) in enumerate(study.cuts):
        drawn, known = control_labels(names, study.labels, train, config.seed + seed)
        cut = train, dev[known[dev]], test[known[test]]
        if len(np.unique(drawn[train])) < 2 or min(map(len, cut)) < MIN_RECURRING:
            return {}
        tested[seed, cut[2]] = True
        right[:, seed] = measure(lambda _, seed=seed: make(seed), inputs, drawn, [cut]).right[:, 0]  # type: ignore[misc]
    own, control = bootstrap([task.right, right], tested, study.items.groups, config.resamples, config.seed)
    low, high = (own - control).interval()
    return {
        "control": control.mean,
        "selectivity": 100 * (own - control).mean,
        "selectivity_low": 100 * low,
        "selectivity_high": 100 * high,
    }

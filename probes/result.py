"""The data types of a result: scores and differences."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa

SCHEMA = "bgt-probe/6"  # version of the classes below, and of the files and the JSON of `bgt-probe`
LEVEL = 0.95  # confidence level of every interval
MAJORITY = "majority"  # the baseline that always predicts the most frequent label
TRANSLATION = "semantic, translation"  # the semantic latent of each sentence's translation


def is_baseline(predictor: str, latents: Sequence[str]) -> bool:
    """Return whether a predictor is a baseline or a reference, and not the model itself."""
    return predictor not in latents and predictor != TRANSLATION


@dataclass(frozen=True)
class ProbeScore:
    """The score of one latent or baseline; accuracies are fractions of the test items."""

    task: str
    lang: str
    latent: str  # semantic, language, or the name of a baseline
    n_train: int  # number of training items of a probe, mean over seeds
    n_test: int  # number of different test items of all seeds
    classes: int
    accuracy: float
    ci_low: float  # Wilson's interval of the accuracy, for new sentences and the same probes
    ci_high: float
    sd: float  # standard deviation of the accuracy over probe seeds; 0 for one seed
    note: str = ""
    probe: str = "linear"
    encoders: int = 1  # number of encoders; a reference can have several, such as three untrained models
    encoder_sd: float = 0.0  # standard deviation over these encoders of the accuracy, a mean over probes
    boot_low: float | None = None  # bootstrap interval, for new sentences, new probes and, if several, new encoders
    boot_high: float | None = None
    information: float | None = None  # V-information in bits per item
    selectivity: float | None = None  # accuracy minus accuracy on the control task, for the same items, in points
    selectivity_low: float | None = None
    selectivity_high: float | None = None
    control: float | None = None  # accuracy on the control task


@dataclass(frozen=True)
class Difference:
    """Accuracy of the first predictor minus that of the second on the same test items, in points (-100 to 100)."""

    task: str
    lang: str
    first: str
    second: str
    points: float
    ci_low: float  # paired interval, for new sentences, new probes and, if several, new encoders
    ci_high: float
    p: float  # two-sided, from the same standard error as the interval
    adjusted_p: float | None = None  # Holm's p over the differences of a table; see `significance.correct`


@dataclass(frozen=True)
class ProbeResult:
    """The result of one task in one language."""

    task: str
    lang: str
    seeds: int  # number of probe seeds
    seed: int  # the first of them
    rows: list[ProbeScore]
    difference: Difference | None  # between the first two latents
    left_out: int  # number of items left out because of a rare label or `max_items`
    resamples: int = 2_000  # number of resamples of the test items
    over_baseline: list[Difference] = field(default_factory=list)  # each latent minus the best baseline
    over_majority: list[Difference] = field(default_factory=list)  # each latent minus the majority
    warnings: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)  # every label, sorted
    # a row for each test of an item, with the columns of `probes.results.store.PREDICTIONS`
    predictions: pa.Table = field(default=None, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without the predictions."""
        plain = asdict(replace(self, predictions=None))
        del plain["predictions"]
        return plain

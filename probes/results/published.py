"""The paper's probing results: accuracies in percent (Wieting et al. 2020, table 3), for models of OpenSubtitles.

For each model of English and another language: its semantic latent, its English language latent, and BilingualTrans, on
English sentences; gender is probed on sentences of the other language, from that language's own latent. The paper does
not describe how the probes were trained, and gives no intervals.
"""

from __future__ import annotations

from typing import NamedTuple

from bgt_core.contracts import LANGUAGE, SEMANTIC
from probes.tasks import PAPER

TRANSLATION = "bilingual-trans"
SYSTEMS = (TRANSLATION, SEMANTIC, LANGUAGE)
TABLE: dict[str, tuple[tuple[float, ...], ...]] = {  # other language -> a row for each of SYSTEMS
    "fr": (
        (78.0, 76.5, 28.2, 65.9, 80.2, 74.0, 56.9, 88.3, 53.0),
        (84.6, 80.9, 29.7, 70.5, 77.4, 73.0, 60.7, 87.9, 52.6),
        (75.2, 72.0, 28.0, 63.6, 65.4, 80.2, 65.3, 92.2, 56.5),
    ),
    "es": (
        (84.5, 82.1, 29.7, 68.5, 79.2, 77.7, 63.4, 90.1, 54.3),
        (85.7, 83.6, 32.5, 71.0, 77.3, 76.7, 63.1, 89.9, 52.6),
        (75.7, 73.7, 29.1, 63.9, 63.3, 80.2, 64.2, 92.7, 54.7),
    ),
    "ar": (
        (77.6, 74.5, 28.1, 67.0, 77.5, 72.3, 57.5, 89.0),
        (81.9, 80.8, 32.1, 71.7, 71.9, 73.3, 61.8, 88.5),
        (76.2, 73.1, 28.4, 60.7, 71.2, 79.8, 63.4, 92.4),
    ),
    "tr": (
        (78.5, 74.9, 28.1, 60.2, 78.4, 72.1, 54.8, 87.3),
        (81.7, 80.2, 30.6, 66.0, 75.2, 72.4, 59.3, 86.7),
        (77.3, 74.4, 28.3, 63.1, 67.1, 79.7, 67.0, 92.5),
    ),
    "ja": (
        (66.4, 64.6, 25.4, 54.1, 76.0, 67.6, 53.8, 87.8),
        (68.0, 66.8, 27.5, 58.9, 70.1, 68.7, 52.9, 86.6),
        (77.6, 76.4, 28.0, 64.6, 70.0, 80.4, 62.8, 92.0),
    ),
}
STS: dict[str, tuple[float, float, float]] = {  # average of 2012-2016, Pearson x 100, in the order of SYSTEMS
    "fr": (71.2, 72.4, 56.8),
    "es": (70.5, 72.1, 55.8),
    "ar": (70.2, 70.8, 58.9),
    "tr": (70.7, 72.3, 57.8),
    "ja": (71.0, 71.9, 60.6),
}


class Published(NamedTuple):
    """A cell of the table."""

    semantic: float
    language: float

    @property
    def gap(self) -> float:
        """Semantic minus language, in points."""
        return self.semantic - self.language


def published_sts(other: str) -> Published | None:
    """The paper's scores of its model of English and `other` on English STS; None if it has none."""
    return Published(*STS[other][1:]) if other in STS else None


def published(other: str, task: str, lang: str) -> Published | None:
    """The paper's scores of its model of English and `other` on this task in `lang`; None if it has none."""
    where = other if task == "gender" else "en"
    if other not in TABLE or task not in PAPER or lang != where:
        return None
    column = PAPER.index(task)
    _, semantic, language = TABLE[other]
    return Published(semantic[column], language[column]) if column < len(semantic) else None

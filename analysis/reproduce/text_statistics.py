"""How the translations of a table differ from their references, beside the paper's numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from analysis.reproduce.paraphrases import TRANSLATED, SelectedPairs
from analysis.reproduce.runner import Workspace
from bgt_core.adapters.reference import ReferenceProbability
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.evaluation.backtranslation import Statistic, compare
from bgt_core.evaluation.contrasts import FAILS, HOLDS, NOT_SEPARABLE
from bgt_core.files import write_text
from bgt_core.run.plan import SETTINGS
from bgt_core.tables import Estimate

PUBLISHED = {  # Table 9: reference less translation, all data
    "unigram entropy": 0.46,
    "trigram entropy": 0.74,
    "unigram repetition": -2.80,
    "trigram repetition": -2.26,
}
PUBLISHED_RHO = {  # Table 10: Spearman's rho x 100 with P(reference)
    "unigram repetition": -35.1,
    "trigram repetition": -18.4,
    "average IDF": 27.8,
    "words": -34.0,
}
SIGNS = {"unigram repetition": -1, "trigram repetition": -1, "average IDF": 1}  # as in the paper

Row = dict[str, Any]


def table_statistics(workspace: Workspace) -> list[Row]:
    """Those of the random pairs of each table of back-translations."""
    tables = [data for data in workspace.datasets.values() if isinstance(data, SelectedPairs) and data.is_random]
    translated = [data for data in tables if data.table.columns == TRANSLATED]
    return [row for data in translated for row in text_statistics(data, workspace.out / "data", workspace.device)]


def text_statistics(data: SelectedPairs, out: Path, device: str) -> list[Row]:
    """One row per statistic of these pairs, kept in `out`; none where they are not selected yet.

    With the classifier's correlations where that table has a classifier.
    """
    pairs, classifier = data.path(out), data.classifier_folder(out)
    if not pairs.exists():
        return []
    trained = (classifier / SETTINGS).exists() and any(classifier.glob("step-*"))
    path = pairs.with_name(pairs.name.replace(".tsv.zst", f"-statistics{'-classified' * trained}.json"))
    if not path.exists():
        models = {"classifier": ReferenceProbability.load(classifier, device)} if trained else {}
        references, translations = zip(*read_pairs(pairs, ("a", "b"), Skipped()), strict=True)
        comparison = compare(references, translations, models=models)
        rows = [statistic_row(data.name, comparison.pairs, statistic) for statistic in comparison.statistics]
        write_text(path, json.dumps(rows))
    return json.loads(path.read_text(encoding="utf-8"))


def statistic_row(table: str, pairs: int, statistic: Statistic) -> Row:
    """A row as it is stored."""
    row: Row = {
        "table": table,
        "pairs": pairs,
        "statistic": statistic.name,
        "unit": statistic.unit,
        "reference": statistic.reference,
        "translation": statistic.translation,
        "published": PUBLISHED.get(statistic.name),
        "rho_published": PUBLISHED_RHO.get(statistic.name),
    }
    if isinstance(statistic.difference, Estimate):
        value, low, high, _ = statistic.difference
        row |= {"difference": value, "ci_low": low, "ci_high": high}
        if sign := SIGNS.get(statistic.name):
            row["verdict"] = verdict(*sorted((sign * low, sign * high)))
    else:
        row["difference"] = statistic.difference
    if rho := statistic.correlation:
        row |= {"rho": rho.value, "rho_low": rho.low, "rho_high": rho.high}
    return row


def verdict(low: float, high: float) -> str:
    """Of a claim that something is above 0, by its interval."""
    return HOLDS if low > 0 else FAILS if high < 0 else NOT_SEPARABLE

"""Semantic textual similarity: files -> pairs -> similarities -> scores and comparisons of systems.

`evaluate` goes the whole way; `read_sets`, `sts` and `compare` are its steps.
"""

from bgt_core.evaluation.comparison import PairwiseDifference
from bgt_core.evaluation.sts.bench import evaluate
from bgt_core.evaluation.sts.compare import compare
from bgt_core.evaluation.sts.files import read_sets
from bgt_core.evaluation.sts.parquet import read_scores, write_scores
from bgt_core.evaluation.sts.score import ScoreKey, StsScores, StsSet, sts
from bgt_core.evaluation.sts.table import StsTable

__all__ = [
    "PairwiseDifference",
    "ScoreKey",
    "StsScores",
    "StsSet",
    "StsTable",
    "compare",
    "evaluate",
    "read_scores",
    "read_sets",
    "sts",
    "write_scores",
]

"""Do two sentences mean the same? Scores of labelled pairs: accuracy, F1, the ROC curve and the area under it.

file -> `read_labelled` -> each system's score of every pair -> `evaluate`: measures, intervals, curves, differences
"""

from bgt_core.evaluation.pairs.bench import evaluate
from bgt_core.evaluation.pairs.files import COLUMNS, LabelledPairs, read_labelled
from bgt_core.evaluation.pairs.table import PairsTable, RocCurve

__all__ = ["COLUMNS", "LabelledPairs", "PairsTable", "RocCurve", "evaluate", "read_labelled"]

"""Syntactic evaluation of any encoder: is the nearest neighbour of a sentence built as it is? (Chen et al. 2019, VGVAE)

    files -> `read_treebank` -> `pair_up`: queries and candidates by length -> `evaluate`: neighbours by each latent,
    three measures of their parses, intervals and differences

A language or syntactic latent should find what is built alike, a semantic one need not.
"""

from bgt_core.evaluation.syntax.pairing import LENGTHS, Pairing, pair_up
from bgt_core.evaluation.syntax.score import evaluate
from bgt_core.evaluation.syntax.sentences import Treebank, read_treebank
from bgt_core.evaluation.syntax.table import SyntaxTable

__all__ = ["LENGTHS", "Pairing", "SyntaxTable", "Treebank", "evaluate", "pair_up", "read_treebank"]

"""A folder of paraphrases that people wrote and of parsed sentences, which the vMF-Gaussian VAE is compared on.

    FOLDER/paraphrase/en.NAME.tsv.xz   two sentences of one meaning; all files together, but lists of words (ppdb)
    FOLDER/trees/en.NAME.ptb.xz        bracketed trees, or en.NAME.conllu.xz, as `bgt evaluate syntax` reads them
    FOLDER/...                         STS and STS Benchmark's dev set as in `datasets`

Sentences that are measured on are not trained on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from analysis.reproduce.datasets import Dataset, content_hash, optional_set, read_years
from analysis.reproduce.measure import nonempty_latents
from analysis.reproduce.paraphrases import COLUMNS
from analysis.reproduce.shares import Shares
from bgt_core.data.clean import CleaningRules
from bgt_core.data.manifest import facts
from bgt_core.data.pairfile import SUFFIXES
from bgt_core.embedder import Embedder
from bgt_core.errors import NotFound
from bgt_core.evaluation.sts.score import StsSet
from bgt_core.evaluation.syntax.neighbours import neighbour_counts
from bgt_core.evaluation.syntax.pairing import Pairing, pair_up
from bgt_core.evaluation.syntax.sentences import read_treebank
from bgt_core.evaluation.systems import System

LANG = "en"
QUERIES = 2_000  # parsed sentences whose neighbours are looked for
WORDS_ONLY = "ppdb"  # begins the name of a table of words and phrases


@dataclass(frozen=True)
class ParsedDataset(Dataset):
    """Random paraphrases of all files; a system is measured by STS and by the syntax of what its latents find."""

    trees: Sequence[Path]
    most: int  # pairs

    @property
    def name(self) -> str:
        """Of its files, beside those of other data."""
        return f"{LANG}-paraphrases"

    @property
    def evaluation_sets(self) -> Sequence[StsSet]:
        """Without Hard STS, which this paper does not know."""
        return self.sets

    @property
    def rules(self) -> CleaningRules:
        """As for translations, of a sample."""
        return replace(super().rules, max_pairs=self.most)

    def evaluated_sentences(self) -> set[str]:
        """Those of STS, and the parsed ones that are compared."""
        pairing = paired(tuple(self.trees))
        return super().evaluated_sentences() | {each.text for each in (*pairing.queries, *pairing.candidates)}

    def shares(self, embedder: Embedder) -> Shares:
        """Of parsed sentences and their nearest neighbours: how alike they are built."""
        pairing = paired(tuple(self.trees))
        return {
            latent: neighbour_counts(System(latent, embedder, latent), pairing, LANG)
            for latent in nonempty_latents(embedder)
        }


@cache
def paired(trees: tuple[Path, ...]) -> Pairing:
    """Queries and candidates of `bgt evaluate syntax --limit 2000`; read once, which takes as long as measuring."""
    return pair_up(read_treebank(trees, LANG), limit=QUERIES)


def read_parsed(folder: Path, most: int) -> ParsedDataset:
    """What `folder` has; a training has `most` pairs at most.

    Raises NotFound where the folder, its paraphrases, its trees or an STS year are missing, and DataError for files
    that can't be read.
    """
    if not folder.is_dir():
        raise NotFound(f"{folder}: no such folder.")
    sources = [
        path
        for path in sorted(folder.glob(f"paraphrase/{LANG}.*"))
        if path.name.endswith(SUFFIXES[:-1]) and not path.name.startswith(f"{LANG}.{WORDS_ONLY}")
    ]
    if not sources:
        raise NotFound(f"{folder}: no paraphrases; expected paraphrase/{LANG}.NAME.tsv.xz or such.")
    trees = sorted(folder.glob(f"trees/{LANG}.*"))
    if not trees:
        raise NotFound(f"{folder}: no parsed sentences; expected trees/{LANG}.NAME.ptb.xz or {LANG}.NAME.conllu.xz.")
    sets = [*read_years(folder), *optional_set(folder, "stsb-dev")]
    parts = [content_hash(sources, sets, {}), *(facts(path)["sha256"] for path in trees), str(most), str(QUERIES)]
    sha256 = hashlib.sha256(" ".join(parts).encode()).hexdigest()
    return ParsedDataset(COLUMNS, sources, sets, {}, sha256, trees, most)

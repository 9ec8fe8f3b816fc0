"""A folder of data: the training and test data of each pair of languages.

    FOLDER/parallel/en-fr.*         translations: TSV (.gz .xz .zst) or Parquet, English first
    FOLDER/retrieval/en-fr.*.tsv    translations to be found; may be absent
    FOLDER/...                      STS 2012-2016, STS Benchmark's dev set and SemEval-2017 as `bgt evaluate sts` reads
                                    them: any of them, at least one year

Pairs with a sentence that is measured on are never trained on. Cleaned pairs and tokenizers lie in OUT/data and are
shared by all trainings with the same settings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from analysis.reproduce import measure
from analysis.reproduce.measure import Scores
from bgt_core.contracts import SEMANTIC
from bgt_core.data.clean import CleaningRules, clean
from bgt_core.data.columns import Source
from bgt_core.data.manifest import facts
from bgt_core.data.parallel import TABLES, Skipped, read_pairs
from bgt_core.embedder import Embedder
from bgt_core.errors import NotFound
from bgt_core.evaluation.sts_files import StsSet, read_sets, walk, year_files
from bgt_core.files import atomic_file, write_text
from bgt_core.recipes import Recipe
from bgt_core.training.prepare import train_tokenizer

Say = Callable[[str], None]
Langs = tuple[str, ...]

RULES = CleaningRules(1, 1_000, max_ratio=9.0, unit="characters")  # suitable for every language
HASHED = {"least": RULES.min_length, "most": RULES.max_length, "max_ratio": RULES.max_ratio, "unit": RULES.unit}
HASHED |= {"max_pairs": RULES.max_pairs, "seed": RULES.seed}  # the younger rules are not set
WITHOUT = ("2016", "2017")  # years of STS Benchmark: other test sets


@dataclass(frozen=True)
class Dataset:
    """The training and test data of one pair of languages."""

    langs: Langs
    sources: Sequence[Path]
    sets: Sequence[StsSet]  # the years, then the others
    translations: dict[str, tuple[Sequence[str], Sequence[str]]]  # to be found, by the name of their file
    sha256: str  # hash of all contents
    hard: ClassVar[bool] = True  # whether Hard STS is measured

    @property
    def name(self) -> str:
        """The beginning of its files' names."""
        return "-".join(self.langs)

    @property
    def rules(self) -> CleaningRules:
        """The rules by which pairs are kept."""
        return RULES

    def measured(self, embedder: Embedder, resamples: int) -> Scores:
        """All scores of a trained system."""
        scores = measure.sts(embedder, self.sets, self.hard, resamples)
        both = measure.translations(embedder, self.translations, self.langs, resamples)
        return scores | {SEMANTIC: scores.get(SEMANTIC, {}) | both}

    def pairs(self, out: Path, say: Say, device: str) -> Source:
        """The training file, made in `out` if it is absent."""
        path = out / f"{self.name}-{self.sha256[:10]}.tsv.zst"
        if not path.exists():
            say(f"{self.name}: cleaning {len(self.sources)} files of translations")
            clean(self.sources, self.langs, path, self.rules, exclude=[self.evaluated(out)])
        return Source(path, tuple(column.partition(":")[0] for column in self.langs))

    def text(self, out: Path, say: Say, device: str) -> Source:
        """The text that the tokenizer is trained on, likewise."""
        return self.pairs(out, say, device)

    def evaluated(self, out: Path) -> Path:
        """A file of every test sentence, once, in order."""
        path = out / f"{self.name}-evaluated.txt"
        write_text(path, "\n".join(sorted(self.evaluated_sentences())) + "\n")
        return path

    def evaluated_sentences(self) -> set[str]:
        """Every test sentence."""
        sentences = {text for data in self.sets for side in (data.left, data.right) for text in side}
        return sentences | {text for sides in self.translations.values() for side in sides for text in side}

    def tokenizer(self, recipe: Recipe, out: Path, say: Say, device: str) -> Path:
        """The tokenizer of a recipe, trained in `out` if it is absent."""
        text = self.text(out, say, device)
        settings = recipe.data.vocab_size, recipe.data.lowercase, recipe.data.character_coverage
        path = out / f"{text.path.name.partition('.tsv')[0]}-{'-'.join(map(str, settings))}.model"
        if not path.exists():
            say(f"{self.name}: training a tokenizer of {recipe.data.vocab_size:,} tokens")
            with atomic_file(path) as partial:
                train_tokenizer(recipe, [text], strict=False).save(partial)
        return path


def read_dataset(folder: Path, langs: Langs) -> Dataset:
    """The data in `folder` for two languages.

    Raises NotFound where the folder, its translations or an STS year are missing, and DataError for files that can't be
    read.
    """
    if not folder.is_dir():
        raise NotFound(f"{folder}: no such folder.")
    pair = "-".join(langs)
    sources = sorted(path for path in folder.glob(f"parallel/{pair}.*") if path.name.endswith(TABLES))
    if not sources:
        raise NotFound(f"{folder}: no translations of {pair}; expected parallel/{pair}.NAME.tsv.xz or such.")
    sets = read_years(folder)
    tracks = dict.fromkeys(f"sts17-{left}-{right}" for left in langs for right in langs)
    for name in ("stsb-dev", *tracks):
        sets += optional_set(folder, name)
    sets = list({str(data): data for data in sets}.values())  # a track has two names
    translations: dict[str, tuple[Sequence[str], Sequence[str]]] = {}
    for path in sorted(folder.glob(f"retrieval/{pair}.*.tsv")):
        left, right = zip(*read_pairs(path, langs, Skipped(), strict=True), strict=True)
        translations[path.name.removesuffix(".tsv")] = list(left), list(right)
    return Dataset(langs, sources, sets, translations, content_hash(sources, sets, translations))


def read_years(folder: Path) -> list[StsSet]:
    """Read the sets of all STS years; NotFound if the folder has none."""
    years = sorted(year_files(dict(walk(folder))))
    if not years:
        raise NotFound(f"{folder}: no STS year; expected sts/2012/NAME.tsv, or SemEval's own files.")
    return read_sets(folder, years)


def optional_set(folder: Path, name: str) -> list[StsSet]:
    """The sets of that name; empty if they are absent."""
    try:
        return read_sets(folder, [name], without=WITHOUT if name.startswith("stsb") else ())
    except NotFound:
        return []


def content_hash(sources: Sequence[Path], sets: Sequence[StsSet], translations: Mapping[str, object]) -> str:
    """SHA-256 of the training and test data, wherever the files lie."""
    sts = [
        [str(data), *map(list, (data.left, data.right, data.gold)), data.left_lang, data.right_lang] for data in sets
    ]
    parts = [sorted(facts(path)["sha256"] for path in sources), HASHED, translations, *sts]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(json.dumps(part, sort_keys=True).encode())
    return digest.hexdigest()

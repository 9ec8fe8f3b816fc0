"""A folder of data: the training and test data of each pair of languages.

    FOLDER/parallel/en-fr.*         translations: TSV (.gz .xz .zst) or Parquet, English first
    FOLDER/retrieval/en-fr.*.tsv    translations to be found; may be absent
    FOLDER/...                      STS 2012-2016, STS Benchmark's dev set and SemEval-2017 as `bgt evaluate sts` reads
                                    them: any of them, at least one year

Pairs with a sentence that is measured on are never trained on. Cleaned pairs, tokenizers and token stores lie in
OUT/data and are shared by all trainings with the same settings.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from analysis.reproduce.shares import Shares
from bgt_core.data import store
from bgt_core.data.clean import CleaningRules, clean
from bgt_core.data.columns import Source
from bgt_core.data.manifest import facts
from bgt_core.data.parallel import TABLES, Skipped, read_pairs
from bgt_core.data.text import Tokenizer
from bgt_core.embedder import Embedder
from bgt_core.errors import NotFound
from bgt_core.evaluation.sts_files import StsSet, read_sets, walk, year_files
from bgt_core.evaluation.tasks.sts import hard_splits
from bgt_core.files import PARTIAL, atomic_file, file_lock, remove, write_text, writing
from bgt_core.recipes import Recipe
from bgt_core.training.prepare import train_tokenizer

Say = Callable[[str], None]

Langs = tuple[str, ...]

RULES = CleaningRules(1, 1_000, max_ratio=9.0, unit="characters")  # suitable for every language
HASHED = {"least": RULES.min_length, "most": RULES.max_length, "max_ratio": RULES.max_ratio, "unit": RULES.unit}
HASHED |= {"max_pairs": RULES.max_pairs, "seed": RULES.seed}  # the younger rules are not set
SPLIT_SEED = 1  # all seeds of a system are trained on the same pairs and validated on the same others
WITHOUT = ("2016", "2017")  # years of STS Benchmark: other test sets


@dataclass(frozen=True)
class Dataset:
    """The training and test data of one pair of languages."""

    langs: tuple[str, ...]
    sources: Sequence[Path]
    sets: Sequence[StsSet]  # the years, then the others
    translations: dict[str, tuple[Sequence[str], Sequence[str]]]  # to be found, by the name of their file
    sha256: str  # hash of all contents

    @property
    def name(self) -> str:
        """The beginning of its files' names."""
        return "-".join(self.langs)

    @cached_property
    def evaluation_sets(self) -> Sequence[StsSet]:
        """All sets, Hard STS among them."""
        return [*self.sets, *hard_splits([data for data in self.sets if data.year.isdigit()])]

    @property
    def rules(self) -> CleaningRules:
        """The rules by which pairs are kept."""
        return RULES

    def shares(self, embedder: Embedder) -> Shares:
        """Further measures of a trained system, by latent; empty here."""
        return {}

    def pair_scores(self, embedder: Embedder) -> Mapping[str, np.ndarray]:
        """Labels and scores of labelled pairs, (N,) each, as in `pair_scores`; empty here."""
        return {}

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
        sentences = self.evaluated_sentences()
        path = out / f"{self.name}-evaluated.txt"
        write_text(path, "\n".join(sorted(sentences)) + "\n")
        return path

    def evaluated_sentences(self) -> set[str]:
        """Every test sentence."""
        sentences = {text for data in self.sets for side in (data.left, data.right) for text in side}
        return sentences | {text for sides in self.translations.values() for side in sides for text in side}


@dataclass(frozen=True)
class TrainingData:
    """The files that a training reads."""

    pairs: Source
    tokenizer: Path
    corpus: Path


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
    files = sorted(folder.glob(f"retrieval/{pair}.*.tsv"))
    translations: dict[str, tuple[Sequence[str], Sequence[str]]] = {
        path.name.removesuffix(".tsv"): columns(path, langs) for path in files
    }
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


def columns(path: Path, langs: Langs) -> tuple[list[str], list[str]]:
    """The two sides of a file of translations."""
    left, right = zip(*read_pairs(path, langs, Skipped(), strict=True), strict=True)
    return list(left), list(right)


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


def prepare(
    dataset: Dataset,
    recipe: Recipe,
    out: Path,
    say: Say,
    device: str = "auto",
    tokenizer: Path | None = None,
) -> TrainingData:
    """The pairs, tokenizer and token store for a recipe, made in `out` if they are absent; `tokenizer` is that of
    what it starts from.

    Of several processes one makes them and the others wait. Raises DataError for text that can't be used.
    """
    given = [facts(tokenizer)["sha256"]] if tokenizer else []
    settings = json.dumps([dataset.sha256, asdict(recipe.data), SPLIT_SEED, *given])
    folder = out / f"{dataset.name}-{hashlib.sha256(settings.encode()).hexdigest()[:10]}"
    with file_lock(out / f"{dataset.name}.lock", wait=True):
        for leftover in folder.glob(f"*{PARTIAL}"):  # left by a killed process
            remove(leftover)
        files = TrainingData(dataset.pairs(out, say, device), folder / "tokenizer.model", folder / "store")
        if tokenizer:
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy(tokenizer, files.tokenizer)
        elif not files.tokenizer.exists():
            say(f"{dataset.name}: training a tokenizer of {recipe.data.vocab_size:,} tokens")
            trained = train_tokenizer(recipe, [dataset.text(out, say, device)], strict=False)
            with atomic_file(files.tokenizer) as partial:
                trained.save(partial)
        store.prepare(
            [files.pairs],
            recipe.data.columns,
            Tokenizer.load(files.tokenizer),
            files.corpus,
            min_tokens=recipe.data.min_tokens,
            max_tokens=recipe.data.max_tokens,
            valid_pairs=recipe.data.valid_pairs,
            seed=SPLIT_SEED,
        )
    return files

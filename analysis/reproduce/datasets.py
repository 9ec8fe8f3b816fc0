"""A folder of data: what the systems of a comparison are trained and measured on.

    FOLDER/parallel/en-fr.*            translations: TSV (.gz .xz .zst) or Parquet, English first
    FOLDER/retrieval/en-fr.*.tsv       translations to be found; may be absent
    FOLDER/paraphrase/en.NAME.tsv.xz   `vgvae`: two sentences of one meaning; all files but lists of words (ppdb)
    FOLDER/trees/en.NAME.ptb.xz        `vgvae`: trees as `bgt evaluate syntax` reads them, or en.NAME.conllu.xz
    FOLDER/quora/train.tsv.xz          `var-siamese`: label, 1 or 0, and two questions: what is trained on
    FOLDER/quora/dev.tsv.xz            likewise: what is measured on
    FOLDER/...                         STS 2012-2016, STS Benchmark's dev set and SemEval-2017, as `bgt evaluate sts`
                                       reads them: any of them, at least one year

`paraphrases` reads what `backtranslation` selects from. Pairs with a sentence that is measured on are never trained on.
Cleaned pairs and tokenizers lie in OUT/data and are shared by all trainings with the same settings.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from analysis.reproduce import measure
from analysis.reproduce.comparisons import ExperimentSpec
from analysis.reproduce.measure import Scores
from bgt_core.contracts import SEMANTIC
from bgt_core.data.clean import CleaningRules, clean
from bgt_core.data.columns import Source
from bgt_core.data.manifest import facts
from bgt_core.data.parallel import TABLES, Skipped, read_pairs
from bgt_core.embedder import Embedder
from bgt_core.errors import NotFound
from bgt_core.evaluation.sts_files import StsSet, read_sets, sts_files
from bgt_core.evaluation.tasks.pairs import LabelledPairs, read_labelled
from bgt_core.evaluation.tasks.syntax import Pairing, pair_up, read_treebank
from bgt_core.files import atomic_file, write_text
from bgt_core.recipes import Recipe
from bgt_core.training.prepare import train_tokenizer

Langs = tuple[str, ...]

RULES = CleaningRules(1, 1_000, max_ratio=9.0, unit="characters")  # suitable for every language
HASHED = {"least": RULES.min_length, "most": RULES.max_length, "max_ratio": RULES.max_ratio, "unit": RULES.unit}
HASHED |= {"max_pairs": RULES.max_pairs, "seed": RULES.seed}  # the younger rules are not set
WITHOUT = ("2016", "2017")  # years of STS Benchmark: other test sets
LABELLED = ("gold:label", "a:en", "b:en")
PARAPHRASES, LANG = ("a:en", "b:en"), "en"  # columns of two sentences of one language
QUERIES = 2_000  # parsed sentences whose neighbours are looked for
WORDS_ONLY = "ppdb"  # begins the name of a table of words and phrases
SEED = 1  # seed of the choice of labelled rows; a smaller share is a subset of a larger one


@dataclass(frozen=True)
class Dataset:
    """Pairs to train on, and what a trained system is measured by."""

    name: str  # the beginning of its files' names
    langs: Langs
    sources: Sequence[Path]
    sets: Sequence[StsSet]  # the years, then the others
    translations: dict[str, tuple[Sequence[str], Sequence[str]]]  # to be found, by the name of their file
    sha256: str  # hash of all contents
    hard: bool = True  # whether Hard STS is measured; BGT's paper alone knows it
    rules: CleaningRules = RULES  # by which pairs are kept
    trees: tuple[Path, ...] = ()  # sentences whose syntax is compared with that of their neighbours

    def measured(self, embedder: Embedder, resamples: int) -> Scores:
        """All scores of a trained system: STS, translations found and written; syntax, by latent and between them."""
        scores = measure.sts(embedder, self.sets, self.hard, resamples)
        semantic = measure.translations(embedder, self.translations, self.langs, resamples)
        if self.trees:
            for latent, of_latent in measure.syntax(embedder, paired(self.trees), LANG, resamples).items():
                scores[latent] = scores.get(latent, {}) | of_latent
            semantic = measure.gaps(scores)
        return scores | {SEMANTIC: scores.get(SEMANTIC, {}) | semantic}

    def pairs(self, out: Path, device: str) -> Source:
        """The training file, made in `out` if it is absent."""
        path = out / f"{self.name}-{self.sha256[:10]}.tsv.zst"
        if not path.exists():
            say(f"{self.name}: cleaning {len(self.sources)} files of pairs")
            clean(self.sources, self.langs, path, self.rules, exclude=[self.evaluated(out)])
        return Source(path, tuple(column.partition(":")[0] for column in self.langs))

    def text(self, out: Path, device: str) -> Source:
        """The text that the tokenizer is trained on, likewise."""
        return self.pairs(out, device)

    def evaluated(self, out: Path) -> Path:
        """A file of every test sentence, once, in order."""
        sentences = {text for data in self.sets for side in (data.left, data.right) for text in side}
        sentences |= {text for sides in self.translations.values() for side in sides for text in side}
        if self.trees:
            pairing = paired(self.trees)
            sentences |= {each.text for group in pairing.groups for side in group for each in side}
        path = out / f"{self.name}-evaluated.txt"
        write_text(path, "\n".join(sorted(sentences)) + "\n")
        return path

    def tokenizer(self, recipe: Recipe, out: Path, device: str) -> Path:
        """The tokenizer of a recipe, trained in `out` if it is absent."""
        text = self.text(out, device)
        settings = recipe.data.vocab_size, recipe.data.lowercase, recipe.data.character_coverage
        path = out / f"{text.path.name.partition('.tsv')[0]}-{'-'.join(map(str, settings))}.model"
        if not path.exists():
            say(f"{self.name}: training a tokenizer of {recipe.data.vocab_size:,} tokens")
            with atomic_file(path) as partial:
                train_tokenizer(recipe, [text], strict=False).save(partial)
        return path


def say(line: str) -> None:
    """Tell the terminal what happens."""
    print(line, file=sys.stderr, flush=True)


@cache
def paired(trees: tuple[Path, ...]) -> Pairing:
    """Queries and candidates of `bgt evaluate syntax --limit 2000`; read once, which takes as long as measuring."""
    return pair_up(read_treebank(trees, LANG), limit=QUERIES)


def read_translations(folder: Path, langs: Langs) -> Dataset:
    """The data in `folder` for two languages.

    Raises NotFound where the folder, its translations or an STS year are missing, and DataError for files that can't be
    read.
    """
    pair = "-".join(langs)
    sources = tables_in(folder, f"parallel/{pair}.*", "translations of " + pair, f"parallel/{pair}.NAME.tsv.xz or such")
    tracks = dict.fromkeys(f"sts17-{left}-{right}" for left in langs for right in langs)
    sets = read_sts(folder, "stsb-dev", *tracks)
    sets = list({str(data): data for data in sets}.values())  # a track has two names
    translations: dict[str, tuple[Sequence[str], Sequence[str]]] = {}
    for path in sorted(folder.glob(f"retrieval/{pair}.*.tsv")):
        left, right = zip(*read_pairs(path, langs, Skipped(), strict=True), strict=True)
        translations[path.name.removesuffix(".tsv")] = list(left), list(right)
    return Dataset(pair, langs, sources, sets, translations, content_hash(sources, sets, translations))


def read_parsed(folder: Path, most: int) -> Dataset:
    """Random paraphrases of all files in `folder`, at most so many, and parsed sentences. Raises as above."""
    sources = tables_in(folder, f"paraphrase/{LANG}.*", "paraphrases", f"paraphrase/{LANG}.NAME.tsv.xz or such")
    sources = [path for path in sources if f".{WORDS_ONLY}" not in path.name and path.suffix != ".parquet"]
    trees = sorted(folder.glob(f"trees/{LANG}.*"))
    if not trees:
        raise NotFound(f"{folder}: no parsed sentences; expected trees/{LANG}.NAME.ptb.xz or {LANG}.NAME.conllu.xz.")
    sets = read_sts(folder, "stsb-dev")
    parts = [content_hash(sources, sets, {}), *(facts(path)["sha256"] for path in trees), str(most), str(QUERIES)]
    sha256 = hashlib.sha256(" ".join(parts).encode()).hexdigest()
    return Dataset(
        f"{LANG}-paraphrases", PARAPHRASES, sources, sets, {}, sha256, False, replace(RULES, max_pairs=most),
        tuple(trees),
    )  # fmt: skip


def tables_in(folder: Path, pattern: str, kind: str, expected: str) -> list[Path]:
    """The tables that match a pattern. Raises NotFound where the folder is missing or has none."""
    if not folder.is_dir():
        raise NotFound(f"{folder}: no such folder.")
    paths = sorted(path for path in folder.glob(pattern) if path.name.endswith((*TABLES, ".parquet")))
    if not paths:
        raise NotFound(f"{folder}: no {kind}; expected {expected}.")
    return paths


def read_sts(folder: Path, *others: str) -> list[StsSet]:
    """The sets of all STS years, and of the others that the folder has; NotFound without a year."""
    years = sorted({file.set for file in sts_files(folder) if file.set.isdigit()})
    if not years:
        raise NotFound(f"{folder}: no STS year; expected sts/2012/NAME.tsv, or SemEval's own files.")
    return read_sets(folder, years) + [data for name in others for data in optional_set(folder, name)]


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


@dataclass(frozen=True, kw_only=True)
class LabelledQuestions(Dataset):
    """The training rows of one stage with one share of labels, and the test pairs.

    A first stage reads all rows, and takes those outside its share of labels for no duplicates, so that their questions
    are repeated and never reformulated; a second stage reads the rows of its share. All have one tokenizer.
    """

    train: LabelledPairs
    test: LabelledPairs
    share: float  # of the training rows whose labels are known
    all_rows: bool  # the others too, as no duplicates

    @cached_property
    def labelled(self) -> LabelledPairs:
        """The rows whose labels are known, in their order."""
        count = round(self.share * len(self.train))
        rows = np.sort(np.random.default_rng(SEED).permutation(len(self.train))[:count])
        left, right = ([side[row] for row in rows] for side in (self.train.left, self.train.right))
        return LabelledPairs(f"{100 * self.share:g}% of {self.train.name}", self.train.labels[rows], left, right)

    @cached_property
    def rows(self) -> list[str]:
        """What is trained on: lines of a label and two questions."""
        known = lines(self.labelled)
        if not self.all_rows:
            return known
        kept = set(known)
        return [line if line in kept else "0" + line[1:] for line in lines(self.train)]

    def pairs(self, out: Path, device: str) -> Source:
        """As they are given: nothing is cleaned away."""
        return written(out / f"{self.name}-{self.sha256[:10]}.tsv", self.rows)

    def text(self, out: Path, device: str) -> Source:
        """All questions, whatever the share of labels."""
        return written(out / f"{self.name}-text.tsv", lines(self.train))

    def measured(self, embedder: Embedder, resamples: int) -> Scores:
        """Of the test pairs."""
        return {SEMANTIC: measure.pairs(embedder, self.labelled, self.test, resamples)}


def lines(pairs: LabelledPairs) -> list[str]:
    """Label and both questions of each pair, between tabs."""
    rows = zip(pairs.labels, pairs.left, pairs.right, strict=True)
    return [f"{int(label)}\t{left}\t{right}" for label, left, right in rows]


def written(path: Path, rows: Sequence[str]) -> Source:
    """A file of these rows, made where it is missing."""
    if not path.exists():
        write_text(path, "\n".join(rows) + "\n")
    return Source(path, tuple(column.partition(":")[0] for column in LABELLED))


def read_questions(folder: Path) -> Callable[[ExperimentSpec], LabelledQuestions]:
    """The data of a system by its share of labels and its stage.

    Raises NotFound where a file is missing, DataError for one that can't be read.
    """
    sources = []
    for name in ("train", "dev"):
        files = sorted(folder.glob(f"quora/{name}.tsv*"))
        if not files:
            raise NotFound(f"{folder}: no labelled questions; expected quora/{name}.tsv.xz.")
        sources.append(files[0])
    train, test = map(read_labelled, sources)

    def dataset(system: ExperimentSpec) -> LabelledQuestions:
        all_rows = system.recipe != "var-siamese"  # those of a first stage
        parts = [*(facts(path)["sha256"] for path in sources), str(system.share), str(all_rows), str(SEED)]
        sha256 = hashlib.sha256(" ".join(parts).encode()).hexdigest()
        return LabelledQuestions(
            "questions", LABELLED, sources, [], {}, sha256,
            train=train, test=test, share=system.share, all_rows=all_rows,
        )  # fmt: skip

    return dataset

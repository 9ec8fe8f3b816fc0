"""Read the training and test data of the comparisons. analysis/reproduce.md names the files of the data folder; two
comparisons need more:

    FOLDER/paraphrase/en.NAME.tsv.xz   for `vgvae`: pairs of paraphrases; files of words (ppdb) are skipped
    FOLDER/trees/en.NAME.ptb.xz        for `vgvae`: trees as for `bgt evaluate syntax`, or en.NAME.conllu.xz
    FOLDER/quora/{train,dev}.tsv.xz    for `var-siamese`: rows with a label, 1 or 0, and two questions

Cleaned pairs and tokenizers are written to OUT/data. Trainings with the same data settings share these files.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from analysis.reproduce import measure
from analysis.reproduce.comparisons import ExperimentSpec
from analysis.reproduce.measure import Scores, Translations
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
from bgt_core.training.setup import train_tokenizer

Langs = tuple[str, ...]

RULES = CleaningRules(1, 1_000, max_ratio=9.0, unit="characters")  # limits of sentence length that suit all languages
HASHED = {"least": RULES.min_length, "most": RULES.max_length, "max_ratio": RULES.max_ratio, "unit": RULES.unit}
# Only these rules are part of `content_hash`, so that a rule that is added to `CleaningRules` does not change the hash.
HASHED |= {"max_pairs": RULES.max_pairs, "seed": RULES.seed}
WITHOUT = ("2016", "2017")  # rows of these years are left out of STS Benchmark, because they are in the test sets
LABELLED = ("gold:label", "a:en", "b:en")
PARAPHRASES, LANG = ("a:en", "b:en"), "en"  # the two columns of paraphrases are in one language
QUERIES = 2_000  # number of parsed sentences whose nearest neighbours are searched
WORDS_ONLY = "ppdb"  # tables with this prefix contain words and phrases but no sentences
SEED = 1  # seed for choosing labelled rows; a larger share contains the rows of every smaller share


@dataclass(frozen=True)
class Dataset:
    """The training pairs and the test data with which a system is trained and measured."""

    name: str  # prefix of the names of the dataset's files
    langs: Langs
    sources: Sequence[Path]
    sets: Sequence[StsSet]  # the data sets of SemEval's STS tasks by year, then other STS sets
    translations: Translations  # test sets for translation retrieval
    sha256: str  # hash of the training and test data
    hard: bool = True  # whether to measure Hard STS, which only BGT's paper reports
    rules: CleaningRules = RULES  # rules for cleaning the training pairs
    trees: tuple[Path, ...] = ()  # files of parsed sentences, to compare the syntax of nearest neighbours

    def measured(self, embedder: Embedder, resamples: int) -> Scores:
        """Measure each latent of a model by STS, retrieval and syntax, and the differences between latents."""
        scores = measure.sts(embedder, self.sets, self.hard, resamples)
        semantic = measure.translations(embedder, self.translations, self.langs, resamples)
        if self.trees:
            for latent, of_latent in measure.syntax(embedder, paired(self.trees), LANG, resamples).items():
                scores[latent] = scores.get(latent, {}) | of_latent
            semantic = measure.gaps(scores)
        return scores | {SEMANTIC: scores.get(SEMANTIC, {}) | semantic}

    def pairs(self, out: Path, device: str) -> Source:
        """Return the file of training pairs; create it in `out` if it is missing."""
        path = out / f"{self.name}-{self.sha256[:10]}.tsv.zst"
        if not path.exists():
            say(f"{self.name}: cleaning {len(self.sources)} files of pairs")
            clean(self.sources, self.langs, path, self.rules, exclude=[self.evaluated(out)])
        return Source(path, tuple(column.partition(":")[0] for column in self.langs))

    def text(self, out: Path, device: str) -> Source:
        """Return the file to train the tokenizer on; create it in `out` if it is missing."""
        return self.pairs(out, device)

    def evaluated(self, out: Path) -> Path:
        """Write all test sentences to a file, sorted and without duplicates; return the file's path."""
        sides = [side for data in self.sets for side in (data.left, data.right)]
        sides += [side for pair in self.translations.values() for side in pair]
        parsed = [side for group in paired(self.trees).groups for side in group] if self.trees else []
        sentences = {text for side in sides for text in side} | {each.text for side in parsed for each in side}
        path = out / f"{self.name}-evaluated.txt"
        write_text(path, "\n".join(sorted(sentences)) + "\n")
        return path

    def tokenizer(self, recipe: Recipe, out: Path, device: str) -> Path:
        """Return the path of a recipe's tokenizer; train it in `out` if it is missing."""
        text = self.text(out, device)
        settings = recipe.data.vocab_size, recipe.data.lowercase, recipe.data.character_coverage
        path = out / f"{text.path.name.partition('.tsv')[0]}-{'-'.join(map(str, settings))}.model"
        if not path.exists():
            say(f"{self.name}: training a tokenizer of {recipe.data.vocab_size:,} tokens")
            with atomic_file(path) as partial:
                train_tokenizer(recipe, [text], strict=False).save(partial)
        return path


def say(line: str) -> None:
    """Print a line that shows the progress to stderr."""
    print(line, file=sys.stderr, flush=True)


@cache
def paired(trees: tuple[Path, ...]) -> Pairing:
    """Return the queries, and the sentences among which `bgt evaluate syntax --limit 2000` finds their neighbours.
    The result is cached, because reading the trees is slow."""
    return pair_up(read_treebank(trees, LANG), limit=QUERIES)


def read_translations(folder: Path, langs: Langs) -> Dataset:
    """Read translations and STS data for two languages. Raises NotFound if one of them is missing."""
    pair = "-".join(langs)
    sources = tables_in(folder, f"parallel/{pair}.*", "translations of " + pair, f"parallel/{pair}.NAME.tsv.xz")
    sets = read_sts(folder, "stsb-dev", *(f"sts17-{left}-{right}" for left in langs for right in langs))
    sets = list({str(data): data for data in sets}.values())  # "sts17-en-fr" and "sts17-fr-en" name the same set
    translations: Translations = {}
    for path in sorted(folder.glob(f"retrieval/{pair}.*.tsv")):
        left, right = zip(*read_pairs(path, langs, Skipped(), strict=True), strict=True)
        translations[path.name.removesuffix(".tsv")] = list(left), list(right)
    return Dataset(pair, langs, sources, sets, translations, content_hash(sources, sets, translations))


def read_parsed(folder: Path, most: int) -> Dataset:
    """Read at most `most` random paraphrases, and all parsed sentences. Raises NotFound if one of them is missing."""
    sources = tables_in(folder, f"paraphrase/{LANG}.*", "paraphrases", f"paraphrase/{LANG}.NAME.tsv.xz")
    sources = [path for path in sources if f".{WORDS_ONLY}" not in path.name and path.suffix != ".parquet"]
    trees = sorted(folder.glob(f"trees/{LANG}.*"))
    if not trees:
        raise NotFound(f"{folder}: no parsed sentences; add trees/{LANG}.NAME.ptb.xz or trees/{LANG}.NAME.conllu.xz.")
    sets = read_sts(folder, "stsb-dev")
    parts = [content_hash(sources, sets, {}), *(facts(path)["sha256"] for path in trees), str(most), str(QUERIES)]
    sha256 = hashlib.sha256(" ".join(parts).encode()).hexdigest()
    return Dataset(
        f"{LANG}-paraphrases", PARAPHRASES, sources, sets, {}, sha256, False, replace(RULES, max_pairs=most),
        tuple(trees),
    )  # fmt: skip


def tables_in(folder: Path, pattern: str, kind: str, expected: str) -> list[Path]:
    """Return the paths of the tables in a folder that match a pattern. Raises NotFound if there are none."""
    if not folder.is_dir():
        raise NotFound(f"{folder}: no such folder; pass the folder that contains the data.")
    paths = sorted(path for path in folder.glob(pattern) if path.name.endswith((*TABLES, ".parquet")))
    if not paths:
        raise NotFound(f"{folder}: no {kind}; add a table such as {expected}.")
    return paths


def read_sts(folder: Path, *others: str) -> list[StsSet]:
    """Read the data sets of all STS years in the folder, and the sets named in `others` that the folder contains.
    Raises NotFound if the folder contains no STS year."""
    years = sorted({file.set for file in sts_files(folder) if file.set.isdigit()})
    if not years:
        raise NotFound(f"{folder}: no STS year; add at least one, as sts/2012/NAME.tsv or as SemEval's own files.")
    sets = read_sets(folder, years)
    for name in others:
        with suppress(NotFound):
            sets += read_sets(folder, [name], without=WITHOUT if name.startswith("stsb") else ())
    return sets


def content_hash(sources: Sequence[Path], sets: Sequence[StsSet], translations: Mapping[str, object]) -> str:
    """Hash the contents of the training and test data with SHA-256. The paths of the files do not change the hash."""
    columns = [[list(column) for column in (data.left, data.right, data.gold)] for data in sets]
    sts = [[str(data), *own, data.left_lang, data.right_lang] for data, own in zip(sets, columns, strict=True)]
    parts = [sorted(facts(path)["sha256"] for path in sources), HASHED, translations, *sts]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(json.dumps(part, sort_keys=True).encode())
    return digest.hexdigest()


@dataclass(frozen=True, kw_only=True)
class LabelledQuestions(Dataset):
    """Question pairs to train a stage of `var-siamese`, and test pairs. Only some training pairs have labels.

    The first stage is trained on all rows. It treats rows without a label as non-duplicates, so the VAE reconstructs
    their questions. The second stage is trained only on rows with labels. Both stages use the same tokenizer.
    """

    train: LabelledPairs
    test: LabelledPairs
    share: float  # fraction of the training rows whose labels are used; other rows count as unlabelled
    all_rows: bool  # whether to include the rows without a label, as non-duplicates

    @cached_property
    def labelled(self) -> LabelledPairs:
        """The training rows whose labels are used, in the order of the file."""
        count = round(self.share * len(self.train))
        rows = np.sort(np.random.default_rng(SEED).permutation(len(self.train))[:count])
        left, right = ([side[row] for row in rows] for side in (self.train.left, self.train.right))
        return LabelledPairs(f"{100 * self.share:g}% of {self.train.name}", self.train.labels[rows], left, right)

    def pairs(self, out: Path, device: str) -> Source:
        """Return the training file; write it if it is missing. Its rows are not cleaned."""
        rows = lines(self.labelled)
        if self.all_rows:
            known = set(rows)
            rows = [line if line in known else "0" + line[1:] for line in lines(self.train)]
        return written(out / f"{self.name}-{self.sha256[:10]}.tsv", rows)

    def text(self, out: Path, device: str) -> Source:
        """Return the file of all questions, so that the tokenizer does not depend on the share of labels."""
        return written(out / f"{self.name}-text.tsv", lines(self.train))

    def measured(self, embedder: Embedder, resamples: int) -> Scores:
        """Return the scores on the test pairs."""
        return {SEMANTIC: measure.pairs(embedder, self.labelled, self.test, resamples)}


def lines(pairs: LabelledPairs) -> list[str]:
    """Format each pair as a line with its label and both questions, separated by tabs."""
    rows = zip(pairs.labels, pairs.left, pairs.right, strict=True)
    return [f"{int(label)}\t{left}\t{right}" for label, left, right in rows]


def written(path: Path, rows: Sequence[str]) -> Source:
    """Return the file with these rows. Write it if it is missing."""
    if not path.exists():
        write_text(path, "\n".join(rows) + "\n")
    return Source(path, tuple(column.partition(":")[0] for column in LABELLED))


def read_questions(folder: Path) -> Callable[[ExperimentSpec], LabelledQuestions]:
    """Read Quora's pairs. Return a function from a system to its data, which depend on the system's training stage and
    share of labels. Raises NotFound if a file is missing."""
    sources = [file for name in ("train", "dev") for file in sorted(folder.glob(f"quora/{name}.tsv*"))[:1]]
    if len(sources) < 2:
        raise NotFound(f"{folder}: no labelled questions; add quora/train.tsv.xz and quora/dev.tsv.xz.")
    train, test = map(read_labelled, sources)

    def dataset(system: ExperimentSpec) -> LabelledQuestions:
        all_rows = system.recipe != "var-siamese"  # var-siamese is the second stage, which needs labels
        parts = [*(facts(path)["sha256"] for path in sources), str(system.share), str(all_rows), str(SEED)]
        sha256 = hashlib.sha256(" ".join(parts).encode()).hexdigest()
        return LabelledQuestions(
            "questions", LABELLED, sources, [], {}, sha256,
            train=train, test=test, share=system.share, all_rows=all_rows,
        )  # fmt: skip

    return dataset

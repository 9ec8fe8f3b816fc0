"""A folder of data: what a pair of languages is trained on, and what its systems are measured on.

    FOLDER/parallel/en-fr.*         translations: TSV (.gz .xz .zst) or Parquet, English first
    FOLDER/retrieval/en-fr.*.tsv    translations to be found; may be absent
    FOLDER/...                      STS 2012-2016, STS Benchmark's dev set and SemEval-2017 as `bgt sts` reads them:
                                    what is there of them, at least one year

Pairs with a sentence that is measured on are never trained on. What is made of it lies in OUT/data and is shared by all
cells of the same settings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from bgt_core import run
from bgt_core.data import store
from bgt_core.data.clean import CleaningRules, clean
from bgt_core.data.manifest import facts
from bgt_core.data.pairfile import SUFFIXES
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.data.text import Tokenizer
from bgt_core.errors import NotFound
from bgt_core.evaluation.sts.files import read_sets, walk, year_files
from bgt_core.evaluation.sts.hard import hard_splits
from bgt_core.evaluation.sts.score import StsSet
from bgt_core.recipes import Recipe
from bgt_core.reproduce.locks import locked

Langs = tuple[str, str]

RULES = CleaningRules(least=1, most=1_000, max_ratio=9.0, unit="characters")  # of characters, which every language has
SPLIT_SEED = 1  # all seeds of a system are trained on the same pairs and validated on the same others
WITHOUT = ("2016", "2017")  # years of STS Benchmark: other test sets


@dataclass(frozen=True)
class Material:
    """Of one pair of languages."""

    langs: Langs
    sources: Sequence[Path]
    sets: Sequence[StsSet]  # the years, then the others
    translations: Mapping[str, tuple[Sequence[str], Sequence[str]]]  # to be found, by the name of their file
    sha256: str  # of the content of all this

    @cached_property
    def measured(self) -> list[StsSet]:
        """All sets, Hard STS among them."""
        return [*self.sets, *hard_splits([data for data in self.sets if data.year.isdigit()])]


@dataclass(frozen=True)
class Prepared:
    """What a cell is trained from."""

    pairs: Path
    tokenizer: Path
    corpus: Path


def read(folder: Path, langs: Langs) -> Material:
    """What `folder` has for two languages. BgtError where that is too little (exit code 3), or can't be read."""
    if not folder.is_dir():
        raise NotFound(f"--data {folder}: no such folder.")
    pair = "-".join(langs)
    sources = sorted(path for path in folder.glob(f"parallel/{pair}.*") if path.name.endswith(SUFFIXES))
    if not sources:
        raise NotFound(f"--data {folder}: no translations of {pair}; expected parallel/{pair}.NAME.tsv.xz or such.")
    years = sorted(year_files(dict(walk(folder))))
    if not years:
        raise NotFound(f"--data {folder}: no STS year; expected sts/2012/NAME.tsv, or SemEval's own files.")
    sets = read_sets(folder, years)
    kinds = dict.fromkeys(f"{one}-{two}" for one in langs for two in langs)
    for name in ("stsb-dev", *(f"sts17-{kind}" for kind in kinds)):
        sets += there(folder, name)
    sets = list({str(data): data for data in sets}.values())  # a track has two names
    found = sorted(folder.glob(f"retrieval/{pair}.*.tsv"))
    translations = {path.name.removesuffix(".tsv"): columns(path, langs) for path in found}
    return Material(langs, sources, sets, translations, content(sources, sets, translations))


def there(folder: Path, name: str) -> list[StsSet]:
    """The sets of that name, none where they are absent."""
    try:
        return read_sets(folder, [name], without=WITHOUT if name.startswith("stsb") else ())
    except NotFound:
        return []


def columns(path: Path, langs: Langs) -> tuple[list[str], list[str]]:
    left, right = zip(*read_pairs(path, langs, Skipped(), strict=True), strict=True)
    return list(left), list(right)


def content(sources: Sequence[Path], sets: Sequence[StsSet], translations: Mapping[str, object]) -> str:
    """SHA-256 of what is trained and measured on, wherever it lies."""
    found = hashlib.sha256()
    parts = [sorted(facts(path)["sha256"] for path in sources), asdict(RULES), translations]
    parts += [
        [str(data), *map(list, (data.left, data.right, data.gold)), data.left_lang, data.right_lang] for data in sets
    ]
    for part in parts:
        found.update(json.dumps(part, sort_keys=True).encode())
    return found.hexdigest()


def prepared(material: Material, recipe: Recipe, out: Path, say: Callable[[str], None], workers: int) -> Prepared:
    """The pairs, tokenizer and token store in `out` for a recipe, made where they are not there yet.

    Of several processes one makes them and the others wait. BgtError for text that can't be used.
    """
    pair = "-".join(material.langs)
    fingerprint = json.dumps([material.sha256, asdict(recipe.data), SPLIT_SEED])
    folder = out / f"{pair}-{hashlib.sha256(fingerprint.encode()).hexdigest()[:10]}"
    found = Prepared(out / f"{pair}-{material.sha256[:10]}.tsv.zst", folder / "tokenizer.model", folder / "store")
    out.mkdir(parents=True, exist_ok=True)
    with locked(out / f"{pair}.lock", wait=True):
        if not found.pairs.exists():
            say(f"{pair}: cleaning {len(material.sources)} files of translations")
            evaluated = out / f"{pair}-evaluated.txt"
            evaluated.write_text("\n".join(sentences(material)) + "\n", encoding="utf-8")
            clean(material.sources, material.langs, found.pairs, RULES, exclude=[evaluated])
        if not found.tokenizer.exists():
            say(f"{pair}: training a tokenizer of {recipe.data.vocab_size:,} pieces")
            folder.mkdir(exist_ok=True)
            made = run.train_tokenizer(recipe, [found.pairs], strict=False)
            partial = folder / "tokenizer.model.partial"
            made.save(partial)
            partial.replace(found.tokenizer)
        store.prepare(
            [found.pairs],
            material.langs,
            Tokenizer.load(found.tokenizer),
            found.corpus,
            min_pieces=recipe.data.min_pieces,
            max_pieces=recipe.data.max_pieces,
            valid_pairs=recipe.data.valid_pairs,
            seed=SPLIT_SEED,
            workers=workers,
        )
    return found


def sentences(material: Material) -> list[str]:
    """Every sentence that is measured on, once."""
    found = [text for data in material.sets for side in (data.left, data.right) for text in side]
    found += [text for sides in material.translations.values() for side in sides for text in side]
    return sorted(set(found))

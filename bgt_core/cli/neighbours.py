"""`bgt mine` and `bgt retrieve-similar`: commands that search for nearest neighbours."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from bgt_core import PRETRAINED
from bgt_core.cli import options
from bgt_core.errors import NotFound, UsageError

if TYPE_CHECKING:
    from bgt_core.contracts import SentenceEncoder
    from bgt_core.neighbours.questions import StoreCard


def mine(
    left: Annotated[Path, Argument(metavar="A", help="Input file, one sentence per line (.gz, .xz, .zst too).")],
    right: Annotated[Path, Argument(metavar="B", help="Input file in another language, one sentence per line.")],
    out: Annotated[
        Path,
        Option(help="Output TSV, best pairs first: score, line number in A, line number in B, and both sentences."),
    ],
    langs: Annotated[str | None, Option(help="Languages of A and B, as in en,fr.")] = None,
    vectors: Annotated[
        tuple[Path, Path] | None,
        Option(metavar="A.npy B.npy", help="Instead of --langs: vectors that `bgt embed` made of A and B."),
    ] = None,
    k: Annotated[
        int, Option("--k", help="Number of nearest neighbours of each sentence; --margin uses their mean cosine.")
    ] = 4,
    margin: Annotated[
        str,
        Option(
            help="Score of a pair: ratio (its cosine divided by the mean cosine of the nearest neighbours), distance "
            "(its cosine minus this mean), or absolute (its cosine)."
        ),
    ] = "ratio",
    threshold: Annotated[float, Option(help="Minimum score of a pair.", show_default="keep all")] = -math.inf,
    index: Annotated[
        str, Option(help="Kind of search: exact, or approximate, which is faster for 100,000 lines or more.")
    ] = "exact",
    recall: Annotated[
        float, Option(help="Share of the nearest neighbours that an approximate search must find.")
    ] = 0.95,
    gold: Annotated[
        Path | None,
        Option(help="Known translations, to compute precision and recall: line number in A, tab, line number in B."),
    ] = None,
    model: options.EncoderOption = str(PRETRAINED),
    device: options.DeviceOption = "auto",
) -> None:
    """Find translations in two texts.

    Each sentence is compared with its nearest neighbours in the other text. The score of a sentence pair compares the
    cosine of the two sentences with the mean cosine of each sentence and its nearest neighbours.
    """
    from bgt_core.neighbours import bitext

    bitext.check(k, margin, index, recall, threshold)
    if (langs is None) == (vectors is None):
        raise UsageError("is needed, unless --vectors is given; give exactly one of them.", parameter="langs")
    if out.is_dir() or not out.parent.is_dir():
        raise UsageError(f"{out}: expected a file in a folder that exists.", parameter="out")
    texts = bitext.read_sentences(left), bitext.read_sentences(right)
    known = bitext.read_gold(gold, *texts) if gold else None
    rows = [bitext.read_vectors(path, text) for path, text in zip(vectors, texts, strict=True)] if vectors else None
    with options.rows_bar(out.name) as report:
        mined = bitext.mine(
            *(rows or texts), encoder=None if rows else options.open_encoder(model, device=device), langs=langs, k=k,
            margin=margin, threshold=threshold, index=index, recall=recall, report=report,
        )  # fmt: skip
    bitext.write_pairs(out, mined.pairs, *texts)
    sizes = " x ".join(f"{size:,}" for size in mined.sizes)
    print(f"{out}: {len(mined.pairs.scores):,} pairs of {sizes} different sentences; {mined.plan}", file=sys.stderr)
    if known:
        from bgt_core.tables import show

        table = []
        for kept in mined.against(*known):
            name, digits = ("--threshold", "g") if kept.rule == "threshold" else (kept.rule, ".3f")
            values = " ".join(format(value, digits) for value in kept.thresholds)
            shares = (f"{100 * share:.1f}" for share in (kept.precision, kept.recall, kept.f1))
            table.append([name, values, str(kept.kept), *shares])
        show(["kept", "threshold", "pairs", "precision %", "recall %", "F1 %"], table)


def retrieve_similar(
    store: Annotated[Path, Argument(metavar="STORE", help="A folder of stored questions, as made by --build.")],
    questions: Annotated[list[str] | None, Argument(metavar="QUESTION...", help="New questions.")] = None,
    file: Annotated[
        Path | None, Option(metavar="FILE", help="New questions, one per line (.gz, .xz, .zst too); - reads stdin.")
    ] = None,
    source: Annotated[
        Path | None,
        Option(
            "--build",
            metavar="FILE",
            help="Make the store first, from the questions in this file, one per line. Repeated questions are dropped.",
        ),
    ] = None,
    dev: Annotated[
        Path | None, Option(metavar="FILE", help="Labelled pairs, on which --build calibrates the probabilities.")
    ] = None,
    columns: Annotated[str, Option(help="Columns of --dev; _ skips a column.")] = "label,a,b",
    lang: Annotated[str, Option(help="Language of the questions, for --build.")] = "en",
    k: Annotated[int, Option("--top", help="Number of stored questions to print for each new question.")] = 10,
    model: Annotated[
        str | None, Option(help=f"{options.ENCODER}.", show_default="the store's; with --build, the shipped model")
    ] = None,
    as_json: options.JsonOption = False,
    device: options.DeviceOption = "auto",
    precision: options.PrecisionOption = "auto",
) -> None:
    """Find stored questions with the same meaning as a new question, and estimate the probability of the same meaning.

    A model of the recipe var-siamese ranks the stored questions by this probability, other encoders by cosine.
    """
    from bgt_core.data.textfile import text_lines
    from bgt_core.neighbours.questions import QuestionStore, StoreCard, build
    from bgt_core.tables import show

    texts = list(questions or [])
    if file:
        texts += [line for _, line in text_lines(file, sentences=True) if line.strip()]
    if not texts and not source:
        raise UsageError("is needed: give a question in quotes, or a --file of questions.", parameter="questions")
    if source:
        from bgt_core.evaluation.tasks.pairs import read_labelled
        from bgt_core.files import check_absent

        check_absent(store, "store")
        labelled = read_labelled(dev, columns.split(",")) if dev else None
        model = model or str(PRETRAINED)
        encoder = options.open_encoder(model, device=device, precision=precision)
        with options.rows_bar(store.name) as report:
            card = build(source, store, encoder, model=model, lang=lang, dev=labelled, report=report)
        print(f"{store}: {about(card)}", file=sys.stderr)
    else:
        card = StoreCard.load(store)
        encoder = encoder_of(store, card, model, device, precision)
    if not texts:
        return
    opened = QuestionStore.open(store, encoder)
    results = opened.query(texts, k=k)
    if as_json:
        queries = [
            {"query": text, "hits": [hit._asdict() for hit in hits]} for text, hits in zip(texts, results, strict=True)
        ]
        options.print_json("bgt-retrieve-similar/1", {"store": str(store), "by": card.by, "queries": queries})
        return
    measure = "W2" if card.by == "probability" else "cosine"
    rows = [
        [
            text,
            hit.question,
            *([] if hit.probability is None else [f"{hit.probability:.4f}"]),
            f"{hit.cosine if hit.w2 is None else hit.w2:.4f}",
        ]
        for text, hits in zip(texts, results, strict=True)
        for hit in hits
    ]
    show(["query", "question", *(["probability"] if card.calibration else []), measure], rows, text=2)


def about(card: StoreCard) -> str:
    """Describe a store of questions: the number of questions, and how probabilities are computed."""
    probabilities = "no probabilities; --dev makes them from labelled pairs"
    if scaling := card.calibration:
        probabilities = "uncalibrated probabilities of the model; --dev calibrates them"
        if card.calibrated_on:
            scaled = f"slope {scaling.slope:.3g}, offset {scaling.offset:.3g}"
            probabilities = f"probabilities calibrated on {card.calibrated_on} ({scaled})"
    return f"{card.questions:,} questions, ranked by {card.by}; {probabilities}"


def encoder_of(store: Path, card: StoreCard, model: str | None, device: str, precision: str) -> SentenceEncoder:
    """Open the encoder that made a store of questions: `model`, or if it is None, the encoder that the store names."""
    if not (spec := model or card.model):
        raise UsageError(f"is needed: {store} does not name the model that made it.", parameter="model")
    try:
        return options.open_encoder(spec, device=device, precision=precision)
    except NotFound as error:
        if model:
            raise
        lost = f"is needed: {store} was made with {spec}, which was not found ({error})"
        raise NotFound(lost, parameter="model") from None

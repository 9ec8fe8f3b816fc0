"""`bgt retrieve-similar`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bgt_core import PRETRAINED
from bgt_core.cli import options
from bgt_core.errors import NotFound, UsageError

if TYPE_CHECKING:
    from bgt_core.contracts import SentenceEncoder
    from bgt_core.neighbours.questions import StoreCard


def retrieve_similar(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="A folder of stored questions.")],
    questions: Annotated[list[str] | None, typer.Argument(metavar="QUESTION...", help="New questions.")] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="New questions, one per line (.gz, .xz, .zst too); - is stdin.")
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--build", metavar="FILE", help="Make the store first, of these questions, one per line; copies count once."
        ),
    ] = None,
    dev: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Labelled pairs, for --build to calibrate probabilities on.")
    ] = None,
    columns: Annotated[str, typer.Option(help="Columns of --dev; _ is a column to skip.")] = "label,a,b",
    lang: Annotated[str, typer.Option(help="Language of the questions, for --build.")] = "en",
    k: Annotated[int, typer.Option("--top", help="Number of stored questions to show for each.")] = 10,
    model: Annotated[
        str | None, typer.Option(help=f"{options.ENCODER}.", show_default="the store's, or the one that ships")
    ] = None,
    as_json: options.JsonOption = False,
    device: options.DeviceOption = "auto",
    precision: options.PrecisionOption = "auto",
) -> None:
    """Find the stored questions that mean the same as a new one, with the probability that they do.

    A trained var-siamese ranks by that probability, any other encoder by cosine.
    """
    from bgt_core.data.textfile import text_lines
    from bgt_core.neighbours.questions import QuestionStore, StoreCard, build
    from bgt_core.tables import show

    texts = list(questions or [])
    if file:
        texts += [line for _, line in text_lines(file, sentences=True) if line.strip()]
    if not texts and not source:
        raise UsageError("is needed, in quotes; or --file, with one question per line.", parameter="questions")
    if source:
        from bgt_core.evaluation.tasks.pairs import read_labelled
        from bgt_core.files import check_absent

        check_absent(store, "store")
        labelled = read_labelled(dev, columns.split(",")) if dev else None
        model = model or str(PRETRAINED)
        encoder = options.open_encoder(model, device, precision)
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
    rows = [  # columns that the store has no values for are left out
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
    """Describe a store: its number of questions, and the source of its probabilities."""
    probabilities = "no probabilities; --dev makes them from labelled pairs"
    if scaling := card.calibration:
        probabilities = "probabilities as the model gives them; --dev calibrates them"
        if card.calibrated_on:
            scaled = f"slope {scaling.slope:.3g}, offset {scaling.offset:.3g}"
            probabilities = f"probabilities calibrated on {card.calibrated_on} ({scaled})"
    return f"{card.questions:,} questions by {card.by}; {probabilities}"


def encoder_of(store: Path, card: StoreCard, model: str | None, device: str, precision: str) -> SentenceEncoder:
    """Open the encoder that made a store, by its stored name, or by `model`, for example if it has moved."""
    if not (spec := model or card.model):
        raise UsageError(f"is needed: {store} does not name the model that made it.", parameter="model")
    try:
        return options.open_encoder(spec, device, precision)
    except NotFound as error:
        if model:
            raise
        lost = f"is needed: {store} was made with {spec}, which is not found ({error})"
        raise NotFound(lost, parameter="model") from None

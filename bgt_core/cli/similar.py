"""`bgt retrieve-similar`: build, query."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bgt_core import PRETRAINED
from bgt_core.cli import options
from bgt_core.cli.errors import Command
from bgt_core.cli.options import open_encoder
from bgt_core.errors import NotFound, UsageError

if TYPE_CHECKING:
    from bgt_core.neighbours.questions import Hit, QuestionStore

app = typer.Typer(no_args_is_help=True, help="Find the stored questions that mean the same as a new one.")


@app.command(cls=Command)
def build(
    source: Annotated[
        Path, typer.Argument(metavar="QUESTIONS", help="One question per line (.gz, .xz, .zst too); copies count once.")
    ],
    out: Annotated[Path, typer.Option(metavar="STORE", help="Output folder for the store.")],
    model: options.EncoderOption = str(PRETRAINED),
    dev: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Labelled pairs to calibrate probabilities on.")
    ] = None,
    columns: Annotated[str, typer.Option(help="Columns of --dev; _ is a column to skip.")] = "label,a,b",
    lang: options.LangOption = "en",
    device: options.DeviceOption = "auto",
    precision: options.PrecisionOption = "auto",
) -> None:
    """Embed questions once, for `query`. A build that was stopped continues when it is started again.

    A trained var-siamese ranks by the probability that two questions mean the same, any other encoder by cosine.
    """
    from bgt_core.cli.options import rows_bar
    from bgt_core.evaluation.tasks.pairs import read_labelled
    from bgt_core.neighbours.questions import build as build_store

    labelled = read_labelled(dev, columns.split(",")) if dev else None
    encoder = open_encoder(model, device, precision)
    with rows_bar(out.name) as report:
        card = build_store(
            source,
            out,
            encoder,
            model=model,
            lang=lang,
            dev=labelled,
            report=report,
        )
    about = [f"{card.questions:,} questions by {card.by}"]
    if card.calibration and card.calibrated_on:
        scaled = f"slope {card.calibration.slope:.3g}, offset {card.calibration.offset:.3g}"
        about.append(f"probabilities calibrated on {card.calibrated_on} ({scaled})")
    elif card.calibration:
        about.append("probabilities as the model gives them; --dev calibrates them")
    else:
        about.append("no probabilities; --dev makes them from labelled pairs")
    print(f"{out}: {'; '.join(about)}", file=sys.stderr)


@app.command(cls=Command)
def query(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The store that `build` made.")],
    questions: Annotated[list[str] | None, typer.Argument(metavar="QUESTION...")] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Questions, one per line (.gz, .xz, .zst too); - reads stdin.")
    ] = None,
    k: Annotated[int, typer.Option("--top", help="Number of stored questions to show for each.")] = 10,
    shortlist: Annotated[int, typer.Option(help="Number of questions nearest by W2 that the model then ranks.")] = 500,
    exact: Annotated[bool, typer.Option("--exact", help="Let the model rank every question; slow.")] = False,
    model: Annotated[
        str | None,
        typer.Option(
            help="A checkpoint or run folder, or as in `build`: the store's model, if it has moved.",
            show_default="the store's",
        ),
    ] = None,
    as_json: options.JsonOption = False,
    device: options.DeviceOption = "auto",
    precision: options.PrecisionOption = "auto",
) -> None:
    """Find the stored questions most similar to each of these, with the probability that both mean the same."""
    from bgt_core.data.textfile import text_lines
    from bgt_core.neighbours.questions import QuestionStore, StoreCard

    texts = list(questions or [])
    if file:
        texts += [line for _, line in text_lines(file, sentences=True) if line.strip()]
    if not texts:
        raise UsageError("is needed, in quotes; or --file, with one question per line.", parameter="questions")
    card = StoreCard.load(store)
    if not (spec := model or card.model):
        raise UsageError(f"is needed: {store} does not name the model that made it.", parameter="model")
    try:
        encoder = open_encoder(spec, device, precision)
    except NotFound as error:
        if model:
            raise
        raise NotFound(
            f"is needed: {store} was made with {spec}, which is not found ({error})", parameter="model"
        ) from None
    opened = QuestionStore.open(store, encoder)
    results = opened.query(texts, k=k, shortlist=None if exact else shortlist)
    if as_json:
        queries = [
            {"query": text, "hits": [hit._asdict() for hit in hits]} for text, hits in zip(texts, results, strict=True)
        ]
        document = {"schema": "bgt-retrieve-similar/1", "store": str(store), "by": card.by, "queries": queries}
        print(json.dumps(document, indent=2, ensure_ascii=False))
        return
    show_hits(opened, texts, results)


def show_hits(store: QuestionStore, texts: list[str], results: list[list[Hit]]) -> None:
    """A row for each stored question; columns that the store has no values for are left out."""
    from bgt_core.tables import show

    siamese = store.card.by == "probability"
    head = ["query", "question", *(["probability"] if store.card.calibration else []), "W2" if siamese else "cosine"]
    rows = [
        [
            text,
            hit.question,
            *([f"{hit.probability:.4f}"] if hit.probability is not None else []),
            f"{hit.w2 if hit.w2 is not None else hit.cosine:.4f}",
        ]
        for text, hits in zip(texts, results, strict=True)
        for hit in hits
    ]
    show(head, rows, text=2)

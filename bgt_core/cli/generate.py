"""`bgt generate`: the meaning of a sentence, or of vectors, in the style of another sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from bgt_core import PRETRAINED
from bgt_core.cli import options
from bgt_core.errors import UsageError
from bgt_core.generation.options import DEFAULT_SEARCH, SETTINGS, Sample, search_of

if TYPE_CHECKING:
    from bgt_core.embedder import Embedder


def generate(
    source: Annotated[
        str | None, typer.Option(help="Sentence that gives the meaning, in any language of the model.")
    ] = None,
    vectors: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Instead of --source: semantic vectors, .npy; each gives a line of text. For a writer: vectors of its "
            "encoder.",
        ),
    ] = None,
    style: Annotated[
        str | None,
        typer.Option(
            help="Sentence that gives the style.", show_default="none: the language latent is the mean of its prior"
        ),
    ] = None,
    lang: Annotated[
        str | None, typer.Option(help="Language of the style and of the output.", show_default="the model's first")
    ] = None,
    source_lang: Annotated[
        str | None, typer.Option(help="Language of the source.", show_default="that of the style")
    ] = None,
    beam: options.BeamOption = DEFAULT_SEARCH.size,
    max_length: Annotated[int, typer.Option(help="Maximum length, in tokens.")] = 60,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help=f"A setting of the search: {', '.join(SETTINGS)}. temperature, top_p or seed draw at random instead "
            "of searching. May be repeated.",
        ),
    ] = None,
    n_best: Annotated[int, typer.Option(min=1, help="Number of texts to print, the best first.")] = 1,
    rerank: Annotated[
        bool | None,
        typer.Option(
            "--rerank/--no-rerank",
            help="Embed every text of the beam, and rank them by how close they are to the given latents, not by "
            "likelihood.",
            show_default="yes with --source and --style, except for a writer",
        ),
    ] = None,
    corrections: Annotated[
        int,
        typer.Option(
            min=0,
            help="Rounds in which a writer that was trained with drafts writes again from the best text so far; all "
            "texts are ranked as by --rerank.",
        ),
    ] = 0,
    model: options.ModelOption = PRETRAINED,
    device: options.DeviceOption = "auto",
) -> None:
    """Generate text with the meaning of one sentence and the style of another, or text from vectors."""
    from bgt_core.capabilities import VectorModel
    from bgt_core.data.columns import known_lang
    from bgt_core.generation.generate import candidates, exchanged, from_vectors
    from bgt_core.generation.search import generative
    from bgt_core.vectors.convert import matrix, read_npy

    if (source is None) == (vectors is None):
        raise UsageError("or --vectors is needed, and only one of them.", parameter="source")
    for name, text in (("source", source), ("style", style)):
        if text is not None and not text.strip():
            raise UsageError("is empty; give a sentence.", parameter=name)
    search, seed = search_of(beam, settings or ())
    if n_best > 1 and (isinstance(search, Sample) or n_best > beam):
        rule = f"{n_best}: must be at most --beam ({beam}), and works with a beam only."
        raise UsageError(rule, parameter="n_best")
    bgt = cast("Embedder", options.open_encoder(str(model), device))
    writes_vectors = isinstance(generative(bgt), VectorModel)
    lang = known_lang(bgt.langs[0] if lang is None else lang, bgt.langs, "this model")
    source_lang = lang if source_lang is None else known_lang(source_lang, bgt.langs, "this model", "source_lang")
    if source is not None and style is not None and not writes_vectors:
        latents = exchanged(bgt, [source], [style], lang, source_lang)
        ranked = candidates(
            bgt, latents, lang=lang, search=search, rerank=rerank is not False, corrections=corrections, seed=seed,
            max_length=max_length,
        )  # fmt: skip
        texts = [[candidate.text for candidate in of_row] for of_row in ranked]
    else:
        width = ("N", bgt.width(lang))
        given = (
            matrix(read_npy(vectors), str(vectors), width) if vectors else bgt.embed([str(source)], lang=source_lang)
        )
        texts = from_vectors(
            bgt, given, lang=lang, style=style, search=search, rerank=bool(rerank), corrections=corrections, seed=seed,
            max_length=max_length,
        )  # fmt: skip
    if not writes_vectors:  # another encoder reads the source of a writer
        read = [text for text in (source, style) if text is not None]
        options.note_unread(bgt.tokenizer.unread(bgt.tokenizer.encode(read)), len(read))
    for of_row in texts:
        print(*of_row[:n_best], sep="\n")

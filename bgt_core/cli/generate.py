"""`bgt generate`: generate text with the meaning of a sentence or a vector, and the style of another sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from typer import Option

from bgt_core import PRETRAINED
from bgt_core.cli import options
from bgt_core.errors import UsageError, check_least
from bgt_core.generation.options import DEFAULT_SEARCH, SETTINGS, Sample, search_of
from bgt_core.startup import importing

if TYPE_CHECKING:
    from bgt_core.embedder import Embedder


def generate(
    source: Annotated[
        str | None, Option(help="Sentence that provides the meaning, in any language of the model.")
    ] = None,
    vectors: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Instead of --source: an .npy file of semantic vectors; one text is generated for each vector. A "
            "model of the recipe writer needs vectors of its encoder.",
        ),
    ] = None,
    style: Annotated[
        str | None,
        Option(
            help="Sentence that provides the style.", show_default="none: the language latent is the mean of its prior"
        ),
    ] = None,
    lang: Annotated[
        str | None, Option(help="Language of the style and of the output.", show_default="the model's first")
    ] = None,
    source_lang: Annotated[
        str | None, Option(help="Language of the source.", show_default="the language of the style")
    ] = None,
    beam: options.BeamOption = DEFAULT_SEARCH.size,
    max_length: Annotated[int, Option(help="Maximum length of the text, in tokens.")] = 60,
    settings: Annotated[
        list[str] | None,
        Option(
            "--set",
            metavar="NAME=VALUE",
            help=f"A setting of the search: {', '.join(SETTINGS)}. With temperature, top_p or seed, the text is drawn "
            "at random instead of by beam search. May be repeated.",
        ),
    ] = None,
    n_best: Annotated[int, Option(help="Number of texts to print, the best first.")] = 1,
    rerank: Annotated[
        bool | None,
        Option(
            "--rerank/--no-rerank",
            help="Embed every text of the beam, and rank the texts by their similarity to the given latents, not by "
            "likelihood alone.",
            show_default="yes with --source and --style, except for a writer",
        ),
    ] = None,
    corrections: Annotated[
        int,
        Option(
            help="Number of correction rounds, for a writer that was trained to correct drafts. In each round, the "
            "writer generates new texts from the best text so far; all texts are ranked as by --rerank.",
        ),
    ] = 0,
    model: options.ModelOption = PRETRAINED,
    device: options.DeviceOption = "auto",
) -> None:
    """Generate text with the meaning of one sentence and the style of another, or text from vectors."""
    with importing():
        from bgt_core.contracts import VectorModel
        from bgt_core.data.columns import known_lang
        from bgt_core.generation.generate import candidates, exchanged, from_vectors
        from bgt_core.generation.search import generative
        from bgt_core.vectors.arrays import matrix, read_npy

    if (source is None) == (vectors is None):
        raise UsageError("is needed, unless --vectors is given; give exactly one of them.", parameter="source")
    for name, text in (("source", source), ("style", style)):
        if text is not None and not text.strip():
            raise UsageError("is empty: give a sentence.", parameter=name)
    search, seed = search_of(beam, settings or ())
    check_least(1, n_best=n_best)
    if n_best > 1 and (isinstance(search, Sample) or n_best > beam):
        rule = f"{n_best}: can't exceed --beam ({beam}), and must be 1 if a setting draws the text at random."
        raise UsageError(rule, parameter="n_best")
    bgt = cast("Embedder", options.open_encoder(str(model), device=device))
    writes_vectors = isinstance(generative(bgt), VectorModel)
    lang = known_lang(bgt.langs[0] if lang is None else lang, bgt.langs, "this model")
    source_lang = lang if source_lang is None else known_lang(source_lang, bgt.langs, "this model", "source_lang")
    how: dict[str, Any] = {
        "lang": lang, "search": search, "corrections": corrections, "seed": seed, "max_length": max_length,
    }  # fmt: skip
    if source is not None and style is not None and not writes_vectors:
        latents = exchanged(bgt, [source], [style], lang, source_lang)
        ranked = candidates(bgt, latents, rerank=rerank is not False, **how)
        texts = [[candidate.text for candidate in of_row] for of_row in ranked]
    else:
        width = ("N", bgt.width(lang))
        given = (
            matrix(read_npy(vectors), str(vectors), width) if vectors else bgt.embed([str(source)], lang=source_lang)
        )
        texts = from_vectors(bgt, given, style=style, rerank=bool(rerank), **how)
    if not writes_vectors:  # a writer gets the source as a vector of another encoder, not as tokens
        read = [text for text in (source, style) if text is not None]
        options.note_unknown(bgt.tokenizer.count_unknown(bgt.tokenizer.encode(read)), len(read))
    for of_row in texts:
        print(*of_row[:n_best], sep="\n")

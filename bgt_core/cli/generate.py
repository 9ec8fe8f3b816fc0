"""`bgt generate`: the meaning of one sentence in the style of another."""

from __future__ import annotations

from typing import Annotated

import typer

from bgt_core import PRETRAINED
from bgt_core.cli import options
from bgt_core.cli.options import load
from bgt_core.errors import UsageError
from bgt_core.generation.options import DEFAULT_SEARCH, Beam, Sample


def generate(
    source: Annotated[str, typer.Option(help="Sentence that gives the meaning, in any language of the model.")],
    style: Annotated[str, typer.Option(help="Sentence that gives the style.")],
    lang: Annotated[
        str | None,
        typer.Option(help="Language of the style and of the output.", show_default="the model's first"),
    ] = None,
    source_lang: Annotated[
        str | None, typer.Option("--source-lang", help="Language of the source.", show_default="that of the style")
    ] = None,
    beam: options.BeamOption = DEFAULT_SEARCH.size,
    sample: Annotated[bool, typer.Option("--sample", help="Draw at random instead of searching.")] = False,
    temperature: Annotated[float, typer.Option(help="Temperature of --sample.")] = 1.0,
    top_p: Annotated[float, typer.Option(help="Share of the probability that --sample draws from.")] = 1.0,
    seed: options.SeedOption = 0,
    max_length: Annotated[int, typer.Option(help="Maximum length, in tokens.")] = 60,
    no_repeat_ngram: options.NgramOption = DEFAULT_SEARCH.no_repeat_ngram,
    max_run: options.MaxRunOption = DEFAULT_SEARCH.max_run,
    length_penalty: options.LengthPenaltyOption = DEFAULT_SEARCH.length_penalty,
    n_best: Annotated[int, typer.Option(min=1, help="Number of texts to print, the best first.")] = 1,
    rerank: Annotated[
        bool,
        typer.Option(help="Rank the texts by how close their latents are to the given ones, not by likelihood."),
    ] = True,
    model: options.ModelOption = PRETRAINED,
    device: options.DeviceOption = "auto",
) -> None:
    """Write the meaning of one sentence in the style of another."""
    from bgt_core.generation.generate import candidates, exchanged

    for name, text in (("source", source), ("style", style)):
        if not text.strip():
            raise UsageError("is empty; give a sentence.", parameter=name)
    if n_best > 1 and (sample or n_best > beam):
        rule = f"{n_best}: must be at most --beam ({beam}), and works without --sample only."
        raise UsageError(rule, parameter="n_best")
    rules = no_repeat_ngram, max_run
    bgt = load(model, device)
    lang = lang or bgt.langs[0]
    latents = exchanged(bgt, [source], [style], lang, source_lang or lang)
    search = Sample(temperature, top_p, *rules) if sample else Beam(beam, *rules, length_penalty)
    (ranked,) = candidates(bgt, latents, lang=lang, search=search, rerank=rerank, seed=seed, max_length=max_length)
    for candidate in ranked[:n_best]:
        print(candidate.text)

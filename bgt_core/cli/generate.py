"""`bgt generate`: one sentence written anew in the manner of another."""

from __future__ import annotations

from typing import Annotated

import typer

from bgt_core import PRETRAINED
from bgt_core.cli.options import DeviceOption, LengthPenaltyOption, MaxRunOption, ModelOption, NgramOption, load
from bgt_core.errors import UsageError


def generate(
    source: Annotated[str, typer.Option(help="The sentence whose meaning is kept, in any language of the model.")],
    style: Annotated[str, typer.Option(help="The sentence whose manner is taken.")],
    lang: Annotated[
        str | None,
        typer.Option(help="Language of the style, and of what is written.", show_default="the model's first"),
    ] = None,
    source_lang: Annotated[
        str | None, typer.Option("--source-lang", help="Language of the source.", show_default="that of the style")
    ] = None,
    beam: Annotated[int, typer.Option(help="Hypotheses kept; 1 is greedy.")] = 5,
    sample: Annotated[bool, typer.Option("--sample", help="Draw at random instead of searching.")] = False,
    temperature: Annotated[float, typer.Option(help="With --sample.")] = 1.0,
    top_p: Annotated[float, typer.Option(help="With --sample.")] = 1.0,
    seed: Annotated[int, typer.Option(help="With --sample.")] = 0,
    max_length: Annotated[int, typer.Option(help="At most that many pieces.")] = 60,
    no_repeat_ngram: NgramOption = 3,
    max_run: MaxRunOption = 1,
    length_penalty: LengthPenaltyOption = 1.0,
    model: ModelOption = PRETRAINED,
    device: DeviceOption = "auto",
) -> None:
    """Write the meaning of one sentence in the manner of another."""
    from bgt_core.generation.options import Beam, Sample
    from bgt_core.generation.search import transfer

    for name, text in (("--source", source), ("--style", style)):
        if not text.strip():
            raise UsageError(f"{name} is empty; give a sentence.")
    rules = no_repeat_ngram, max_run
    search = Sample(temperature, top_p, *rules) if sample else Beam(beam, *rules, length_penalty)
    bgt = load(model, device)
    written = transfer(
        bgt,
        [source],
        [style],
        lang=lang or bgt.langs[0],
        source_lang=source_lang,
        search=search,
        seed=seed,
        max_length=max_length,
    )
    print(written[0])

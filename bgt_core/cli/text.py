"""`bgt embed` and `bgt translate`: commands that run a model on each line of a text file."""

import sys
from itertools import islice
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from bgt_core import PRETRAINED
from bgt_core.cli import options

PORTION = 1_024  # number of lines that are translated together

SourceArgument = Annotated[
    Path, Argument(metavar="IN", help="Input file, one sentence per line (.gz, .xz, .zst too); - reads stdin.")
]


def embed(
    source: SourceArgument,
    out: Annotated[Path, Option(help="Output file, .npy or .safetensors.")],
    lang: Annotated[str, Option(help="Language of the sentences.")] = "en",
    latent: Annotated[str, Option(help="Latent of the model, such as semantic or language.")] = "semantic",
    model: options.EncoderOption = str(PRETRAINED),
    device: options.DeviceOption = "auto",
    precision: options.PrecisionOption = "auto",
    shard: options.ShardOption = None,
) -> None:
    """Embed sentences and write one vector for each line, in the order of the lines.

    If the output file is complete, nothing is computed. To split a long text among several processes, use --shard.
    """
    from bgt_core.bulk import check, embed_file

    numbers = options.parse_shard(shard)
    check(out)  # fail before the encoder is loaded, which takes long
    encoder = options.open_encoder(model, device=device, precision=precision)
    with options.rows_bar(out.name) as report:
        written = embed_file(encoder, source, out, lang=lang, latent=latent, shard=numbers, report=report)
    options.note_unknown(getattr(encoder, "unknown", 0), getattr(encoder, "embedded", 0))
    print(f"{written.path}: {written.rows} x {written.width} float32, {latent} latent", file=sys.stderr)


def translate(
    source: SourceArgument,
    model: options.TranslatorOption,
    into: Annotated[str | None, Option(help="Target language.", show_default="the model's first")] = None,
    beam: options.BeamOption = 5,
    max_length: options.MaxLengthOption = 100,
    device: options.DeviceOption = "auto",
    precision: options.WeightsOption = "auto",
) -> None:
    """Translate sentences and print one translation per line; an empty line stays empty."""
    from bgt_core.data.textfile import text_lines
    from bgt_core.encoders import load
    from bgt_core.generation.generate import BeamTranslator

    translator = BeamTranslator(load(model, device, precision), lang=into, beam=beam, max_length=max_length)
    lines = (line for _, line in text_lines(source, sentences=True))
    while portion := list(islice(lines, PORTION)):
        for best in translator.translate(portion):
            print(best[0].text if best else "")

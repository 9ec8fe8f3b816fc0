"""`bgt split`: divide an encoder's vectors into a part that translations share and the rest, and report the quality."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from bgt_core import PRETRAINED
from bgt_core.cli import options
from bgt_core.errors import UsageError, check_choice

if TYPE_CHECKING:
    from bgt_core.contracts import SentenceEncoder
    from bgt_core.data.columns import Source
    from bgt_core.data.parallel import Skipped
    from bgt_core.splitting import Split
    from bgt_core.splitting.gather import Data, Gathered


def split(
    data: Annotated[
        list[str],
        Argument(
            help="Data: rows of sentences with the same meaning, as TSV, Parquet, or X for the files X.en and X.fr. X "
            "can also stand for files of vectors, X.en.npy and X.fr.npy. Write en-fr=FILE to name the columns of "
            "one file; _ skips a column, as in en,fr,_=FILE."
        ),
    ],
    out: Annotated[Path, Option(help="Output folder, which must not exist.")],
    langs: Annotated[
        str | None,
        Option(
            help="Languages of the columns, as in en,fr; or names and languages, as in a:en,b:en for paraphrases.",
            show_default="those in en-fr=FILE",
        ),
    ] = None,
    model: Annotated[
        str | None,
        Option(
            help=f"{options.ENCODER}. For stored vectors: the encoder that made them.",
            show_default="the shipped model; none for stored vectors",
        ),
    ] = None,
    method: Annotated[
        str,
        Option(
            help="Method: bgt; neural, which is trained by gradient descent; or centring, shift, leace or subspace, "
            "which only remove the information about the language from the vectors."
        ),
    ] = "bgt",
    factors: Annotated[
        int | None,
        Option(help="Number of units in the shared part (bgt, neural).", show_default="chosen on held-out rows"),
    ] = None,
    report: Annotated[
        bool, Option("--report", help="Also measure all methods on held-out rows, and write report.md and report.json.")
    ] = False,
    sts_data: Annotated[Path | None, Option(help="A folder of STS files, for the report.", show_default="none")] = None,
    seed: options.SeedOption = 0,
    device: options.DeviceOption = "auto",
    precision: options.PrecisionOption = "auto",
) -> None:
    """Split an encoder's vectors into a part that sentences with the same meaning share, and the rest.

    Afterwards, `--model split:FOLDER` opens an encoder with these two parts as its latents, semantic and language.
    """
    from bgt_core.data.columns import parse_columns, parse_source, read_columns
    from bgt_core.data.parallel import Skipped, source_files
    from bgt_core.encoders import identity, with_kind
    from bgt_core.files import check_absent
    from bgt_core.splitting import METHODS, parts
    from bgt_core.splitting.fit import LEAST, TRAINED_ON, check_rows, check_settings, fit, verdict
    from bgt_core.splitting.gather import gather
    from bgt_core.tables import show

    check_choice(METHODS, method=method)
    if sts_data and not report:
        raise UsageError("is used only for the report: add --report.", parameter="sts_data")
    check_absent(out, "out")
    options.check_folder(out)
    named = parse_columns(langs.split(",")) if langs else {}
    sources = [parse_source(file, tuple(named)) for file in data]
    if not langs:
        named = {name: lang for each in sources for name, lang in parse_columns(read_columns(each.columns)).items()}
    skipped, text = Skipped(), [source for source in sources if not vector_files(source)]
    for source in text:
        source_files(source.path, source.columns, once=not report)  # fail early if a file is missing
    opened = [read(source, named, skipped) for source in sources]
    check_settings([each for each, _ in opened], method, factors)
    if report and len(text) < len(sources):
        raise UsageError("needs the sentences, not only vectors: leave --report out.", parameter="report")
    model = with_kind(model or (str(PRETRAINED) if text else ""))
    encoder = options.open_encoder(model, device=device, precision=precision) if model else None
    keep = max(TRAINED_ON.values()) if report else TRAINED_ON.get(method, 0)
    with options.rows_bar(out.name) as progress:
        gathered = gather(encoder, opened, keep=keep, seed=seed, report=progress)
    for example in skipped.examples:
        print(f"skipped {example}", file=sys.stderr)
    for source, each in zip(sources, gathered, strict=True):
        if each.total < LEAST:
            raise UsageError(f"{source.path} has {each.total} rows; at least {LEAST} are needed.")
    check_rows(method, gathered, ", ".join(dict.fromkeys(str(source.path) for source in sources)), "--method")
    fitted = fit(gathered, method, factors)
    parts.save(out, parts.StoredSplit(fitted, model, identity(encoder) if encoder else ""))
    print(
        f"{out}: {fitted.shared_width} shared units of {fitted.width}, by {method} from {fitted.about['rows']:,} rows"
    )
    rows = [
        [part, *("" if value is None else f"{100 * value:.1f}" for value in values.values())]
        for part, values in fitted.about["scores"].items()
    ]
    show([f"of {fitted.about['held_out_rows']:,} held-out rows", "found %", "in the pool %", "language told %"], rows)
    print(verdict(fitted.about["scores"]))
    if encoder is None:
        print("The encoder of the stored vectors is unknown. Give it by --model, so that split:FOLDER can be opened.")
    elif report:
        write_reports(out, encoder, model, fitted, sources, gathered, sts_data, seed)


def vector_files(source: Source) -> list[Path]:
    """Return the vector files of a data source: NAME.en.npy and NAME.fr.npy for NAME; [] if one of them is missing."""
    from bgt_core.data.columns import read_columns

    paths = [Path(f"{source.path}.{name}.npy") for name in read_columns(source.columns)]
    return paths if all(path.is_file() for path in paths) else []


def read(source: Source, languages: Mapping[str, str], skipped: Skipped) -> Data:
    """Open a data source: memory-mapped vectors if each of its columns has a vector file, else batches of sentences."""
    from bgt_core.data.columns import read_columns
    from bgt_core.data.parallel import read_pairs
    from bgt_core.splitting.gather import AT_ONCE
    from bgt_core.vectors.arrays import read_npy

    langs = [languages[name] for name in read_columns(source.columns)]
    if vectors := vector_files(source):
        return langs, [read_npy(path) for path in vectors]
    rows = read_pairs(source.path, source.columns, skipped)
    batches = iter(lambda: list(islice(rows, AT_ONCE)), [])
    return langs, (list(zip(*batch, strict=True)) for batch in batches)


def write_reports(
    out: Path,
    encoder: SentenceEncoder,
    model: str,
    fitted: Split,
    sources: Sequence[Source],
    gathered: Sequence[Gathered],
    sts_data: Path | None,
    seed: int,
) -> None:
    """Split the encoder's vectors by each method, and measure all splits on held-out sentences. Write one Markdown page
    and one JSON file for each combination of languages."""
    from bgt_core.data.parallel import Skipped, read_pairs
    from bgt_core.evaluation.split_report import report
    from bgt_core.files import write_json, write_text
    from bgt_core.splitting import METHODS
    from bgt_core.splitting.fit import check_settings, fit

    splits = {fitted.method: fitted}
    for other in METHODS:
        try:
            check_settings([each.langs for each in gathered], other, None)
            if other not in splits:
                splits[other] = fit(gathered, other)
        except UsageError as error:
            print(f"not in the report: {other}: {error}", file=sys.stderr)
    held_out: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for source, of in zip(sources, gathered, strict=True):
        numbers = set(of.held_out_rows.tolist())
        rows = enumerate(read_pairs(source.path, source.columns, Skipped()))
        held_out.setdefault(tuple(of.langs), []).extend(row for number, row in rows if number in numbers)
    for langs, lines in held_out.items():
        columns = list(zip(*lines, strict=True))
        with options.rows_bar("measuring") as progress:
            measured = report(encoder, model, splits, columns, langs, sts=sts_data, seed=seed, progress=progress)
        name = f"report-{'-'.join(langs)}" if len(held_out) > 1 else "report"
        write_text(out / f"{name}.md", measured.page)
        write_json(out / f"{name}.json", {title: result.as_dict() for title, result in measured.results.items()})
        print(out / f"{name}.md")
        sts_data = None  # STS scores do not depend on the data files, so only the first report measures them

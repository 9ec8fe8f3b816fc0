"""`bgt split`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bgt_core import PRETRAINED
from bgt_core.cli import options
from bgt_core.errors import UsageError


def split(
    pairs: Annotated[
        Path,
        typer.Argument(help="Sentences that mean the same, a column each: TSV, Parquet, or X for X.en and X.fr."),
    ],
    langs: Annotated[str, typer.Option(help="Languages of the columns, as in en,fr; en,en for paraphrases.")],
    out: Annotated[Path, typer.Option(help="Output folder, a new one.")],
    model: options.EncoderOption = str(PRETRAINED),
    method: Annotated[
        str,
        typer.Option(
            help="bgt, or neural, which is trained; or centring, shift, leace or subspace, which take out the language."
        ),
    ] = "bgt",
    factors: Annotated[
        int | None,
        typer.Option(
            min=1, help="Units of the shared part, for bgt and neural.", show_default="chosen on held-out rows"
        ),
    ] = None,
    report: Annotated[
        bool,
        typer.Option(
            "--report", help="Write report.md and report.json too: every method, measured on the held-out rows."
        ),
    ] = False,
    sts_data: Annotated[
        Path | None, typer.Option(help="A folder of STS files, for the report.", show_default="none")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many rows.", show_default="all")] = None,
    seed: options.SeedOption = 0,
    device: options.DeviceOption = "auto",
    precision: options.PrecisionOption = "auto",
) -> None:
    """Split an encoder's vectors into what sentences of one meaning share, and the rest.

    Afterwards `--model split:FOLDER` is an encoder with the latents semantic and language.
    """
    import sys
    from itertools import islice

    from bgt_core.cli.progress import rows_bar
    from bgt_core.data.parallel import Skipped, read_pairs
    from bgt_core.errors import check_choice
    from bgt_core.files import write_json, write_text
    from bgt_core.splitting import METHODS, store
    from bgt_core.splitting.fit import TRAINED_ON, check_settings, gather
    from bgt_core.tables import show

    check_choice(METHODS, method=method)
    names = langs.split(",")
    check_settings(names, method, factors)
    if sts_data and not report:
        raise UsageError("is for the report; add --report", parameter="sts_data")
    if out.exists():
        raise UsageError(f"{out}: already exists; choose a new folder", parameter="out")
    options.check_files({"out": out})
    skipped = Skipped()
    columns = list(zip(*islice(read_pairs(pairs, names, skipped), limit), strict=True)) or [() for _ in names]
    for example in skipped.examples:
        print(f"skipped {example}", file=sys.stderr)
    encoder = options.open_encoder(model, device, precision)
    keep = max(TRAINED_ON.values()) if report else TRAINED_ON.get(method, 0)
    with rows_bar(out.name) as progress:
        gathered = gather(encoder, columns, names, method, keep=keep, seed=seed, report=progress)
    fitted = gathered.fit(method, factors)
    store.save(out, store.StoredSplit(fitted, model, encoder.fingerprint))
    print(
        f"{out}: {fitted.shared_width} shared units of {fitted.width}, by {method} from {fitted.about['rows']:,} rows"
    )
    rows = [
        [part, *("" if value is None else f"{100 * value:.1f}" for value in values.values())]
        for part, values in fitted.about["scores"].items()
    ]
    show([f"of {fitted.about['held_out_rows']:,} held-out rows", "found %", "language told %"], rows)
    if report:
        from bgt_core.evaluation.split_report import report as measure

        splits = {method: fitted}
        for other in METHODS:
            try:
                check_settings(names, other, None)
                splits.setdefault(other, gathered.fit(other))
            except UsageError as error:
                print(f"not in the report: {other}: {error}", file=sys.stderr)
        held_out = [[column[row] for row in gathered.held_out_rows] for column in columns]
        measured = measure(encoder, model, splits, held_out, names, sts=sts_data, seed=seed)
        write_text(out / "report.md", measured.page)
        write_json(out / "report.json", measured.as_dict())
        print(out / "report.md")

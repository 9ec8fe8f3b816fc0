"""`bgt-probe` itself: its options, checked before a model is opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from bgt_core.cli import options
from bgt_core.cli.options import split_names
from bgt_core.errors import UsageError
from probes.cli.cache import CacheOption


def probe(
    context: typer.Context,
    lang: Annotated[
        list[str] | None,
        typer.Option(help="Language of the sentences; several as fr,en, or all.", show_default=False),
    ] = None,
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            "--task",
            help="Probing tasks, as a,b; groups: paper, surface, syntax, semantic, all; your own as "
            "python:MODULE:OBJECT.",
            show_default="all that need only sentences; with --data, all",
        ),
    ] = None,
    latents: Annotated[
        list[str] | None,
        typer.Option("--latent", help="Latents to probe, as a,b.", show_default="each that a model has"),
    ] = None,
    model: options.EncodersOption = None,
    encoder_seeds: Annotated[
        list[str] | None,
        typer.Option(help="The same model trained with other seeds, as a,b: scores are means over all."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Data: a folder with labelled files (SentEval's), treebanks or text; or one file, text "
            "with one sentence per line, or TSV (.gz .xz .zst).",
            show_default="the built-in sentences",
        ),
    ] = None,
    column: Annotated[int | None, typer.Option(help="Column of the sentences in a TSV, from 1.")] = None,
    split_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Assigns sentences to splits: lines of train, dev or test, a tab, the sentence."
        ),
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="First download SentEval's sets (English) into --data.")
    ] = False,
    probe: Annotated[
        str, typer.Option(help="Kind of probe: linear, or mlp50 for 50 hidden units; several as linear,mlp200.")
    ] = "linear",
    l2: Annotated[
        float | None,
        typer.Option(
            "--l2", help="L2 penalty on the sum of losses (scikit-learn's 1 / C).", show_default="chosen on dev"
        ),
    ] = None,
    max_items: Annotated[
        int | None, typer.Option(help="Maximum number of items of a task.", show_default="10,000; with --senteval all")
    ] = None,
    max_train: Annotated[
        int | None, typer.Option(help="Maximum number of training items; dev and test stay whole.")
    ] = None,
    seeds: Annotated[
        int, typer.Option(help="Number of probes trained, 1 to 10; without fixed splits each tests its own tenth.")
    ] = 5,
    seed: options.SeedOption = 0,
    level: options.LevelOption = 0.95,
    resamples: options.ResamplesOption = 2_000,
    correction: Annotated[
        str, typer.Option(help="Correction of the p-values of a table: holm, bonferroni, or none.")
    ] = "holm",
    baselines: Annotated[
        bool, typer.Option("--baselines/--no-baselines", help="Also measure baselines without the model.")
    ] = True,
    untrained: Annotated[
        bool,
        typer.Option("--untrained", help="Also probe three untrained models and the mean of their token vectors."),
    ] = False,
    control: Annotated[str, typer.Option(help="Key of the control task: rare, first, or none.")] = "rare",
    capacity: Annotated[
        bool, typer.Option("--capacity", help="Also measure accuracy on shuffled training labels.")
    ] = False,
    mdl: Annotated[bool, typer.Option("--mdl", help="Also measure the online codelength.")] = False,
    erase: Annotated[
        str | None, typer.Option(help="Also measure accuracy after erasing the property: leace or inlp.")
    ] = None,
    curve: Annotated[bool, typer.Option("--curve", help="Also measure learning curves.")] = False,
    senteval: Annotated[
        bool, typer.Option("--senteval", help="Follow SentEval's protocol: one seed, its classifier, accuracy only.")
    ] = False,
    difference: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="Also print the difference of two latents or baselines; of several models as MODEL or MODEL/LATENT.",
        ),
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="Exit with code 7 if this holds, as gender<0.52 or gender/semantic>0.6."),
    ] = None,
    csv: options.CsvOption = None,
    latex: options.LatexOption = None,
    parquet: options.ParquetOption = None,
    md: options.MdOption = None,
    predictions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the prediction of each item, as Parquet.")
    ] = None,
    as_json: options.JsonOption = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the cells, their size, and which results are kept; then stop.")
    ] = False,
    list_tasks: Annotated[bool, typer.Option("--list-tasks", help="Print the tasks and stop.")] = False,
    cache: CacheOption = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Neither read nor write the cache.")] = False,
    device: options.DeviceOption = "auto",
    precision: options.PrecisionOption = "auto",
) -> None:
    """Probe which properties of a sentence its latents hold: test accuracy with intervals, beside baselines.

    Results are kept: the same command prints the same result again, and continues where it was stopped.
    """
    if context.invoked_subcommand:
        return
    if list_tasks:
        from probes.cli.tasks import print_tasks

        print_tasks()
        return
    from probes.cli.fail_on import read_rules
    from probes.cli.measuring import download_senteval, measure, open_subjects, read_pair
    from probes.cli.output import Outputs
    from probes.cli.plan import plan
    from probes.grid import ALL, Grid
    from probes.measures.config import ProbeConfig
    from probes.results.cache import Cache

    langs, encoder_seeds, model = split_names(lang), split_names(encoder_seeds), model or []
    if not langs:
        raise UsageError("is needed, as in: bgt-probe --lang fr --task gender", parameter="lang")
    if single := "encoder_seeds" if encoder_seeds else "untrained" if untrained else "":
        if len(model) > 1:
            raise UsageError("is for a single --model.", parameter=single)
        if senteval:
            raise UsageError("is no part of SentEval's protocol; leave it or --senteval out.", parameter=single)
    if download and (not data or data.is_file() or not {"en", ALL} & set(langs)):
        raise UsageError(
            "gets SentEval's sets, which are English: give --lang en and --data FOLDER.", parameter="download"
        )
    tables = {"csv": csv, "latex": latex, "parquet": parquet, "md": md}
    outputs = Outputs(tables, predictions, as_json, correction)
    outputs.check()
    chosen = {each.name: context.params[each.name] for each in fields(ProbeConfig)}
    chosen["control"] = None if control == "none" else control
    configs = [ProbeConfig(**chosen | {"probe": kind}) for kind in split_names([probe])]
    kept = None if no_cache else Cache(cache) if cache else Cache()
    with way_out(), readable_twice(data) as source:
        grid = Grid((), split_names(tasks) or [ALL], langs, source, column, split_file, configs, senteval, kept)
        grid.check_tasks()
        rules = read_rules(fail_on or [], [task.name for task in grid.named()])
        if download and source and not dry_run:
            download_senteval(source)
        grid.check()
        subjects = open_subjects(model, split_names(latents), encoder_seeds, untrained, device, precision)
        pairs = [read_pair(text, subjects) for text in difference or []]
        grid = replace(grid, subjects=subjects)
        code = plan(grid, context, as_json) if dry_run else measure(grid, context, pairs, rules, outputs)
    raise typer.Exit(code)


@contextmanager
def readable_twice(data: Path | None) -> Iterator[Path | None]:
    """Yield a file that can be read for each task; a pipe, such as /dev/stdin, is first copied."""
    if data is None or not (data.is_fifo() or data.is_char_device()):
        yield data
        return
    with TemporaryDirectory(prefix="bgt-probe-") as folder, data.open("rb") as pipe:
        copy = Path(folder) / data.name
        copy.write_bytes(pipe.read())
        yield copy


@contextmanager
def way_out() -> Iterator[None]:
    """Note what to do if memory is too small."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        error.add_note("give --max-items or --max-train, or --device cpu; finished cells are kept")
        raise

"""Open encoders, measure cells, then write and print the results."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import typer

from bgt_core import PRETRAINED
from bgt_core.cli.errors import name_option
from bgt_core.cli.options import open_encoder, open_models, unnamed
from bgt_core.contracts import SentenceEncoder
from bgt_core.embedder import Embedder
from bgt_core.errors import BgtError, UsageError
from probes.cells import Subject
from probes.classifiers.baselines import BASELINES
from probes.cli import output
from probes.cli.fail_on import Rule, failing
from probes.grid import Grid, ProbeTable
from probes.results.compare import Side, compare_sides, corrected

FAILED, BROKEN, STOPPED = 5, 7, 130


def measure(
    grid: Grid,
    context: typer.Context,
    pairs: Sequence[tuple[Side, Side]],
    rules: Sequence[Rule],
    outputs: output.Outputs,
) -> int:
    """Measure, write and print; return the exit code."""
    table, stopped = ProbeTable(), False
    try:
        for label, outcome in grid.measure(say, skipped(context)):
            if isinstance(outcome, BgtError):
                say_failed(label, outcome, context)
            table.add(label, outcome)
    except KeyboardInterrupt:
        stopped = True
        kept = "; they are kept, and the same command continues from there" if grid.cache else ""
        print(f"bgt-probe: stopped after {len(table.cells)} results{kept}", file=sys.stderr)
    if not table.cells:
        if table.failures and not stopped:
            raise last(table.failures[0][1])
        return STOPPED
    cells = corrected(table.cells, outputs.correction)
    outputs.write(cells)
    outputs.show(cells, compare_sides(cells, pairs, outputs.correction), table.failures)
    if stopped:
        return STOPPED
    broken = failing(rules, cells)
    for line in broken:
        print(f"bgt-probe: {line}", file=sys.stderr)
    return BROKEN if broken else FAILED if table.failures else 0


def last(error: BgtError) -> BgtError:
    """The error that ends a command without any result: the first one, again, below all that was printed since."""
    return type(error)(f"{error.args[0]} So nothing could be measured.", parameter=error.parameter)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def skipped(context: typer.Context) -> Callable[[BgtError], None]:
    """Return a function that prints why a task is skipped, with the command's options in the message."""
    return lambda error: say(f"skipped: {name_option(error, context.command)}")


def say_failed(label: str, error: BgtError, context: typer.Context) -> None:
    """Print the error of one cell, with the command's options in it."""
    say(f"bgt-probe: {label}: {name_option(error, context.command)}")


def open_subjects(
    models: Sequence[str],
    latents: Sequence[str],
    encoder_seeds: Sequence[str],
    untrained: bool,
    device: str,
    precision: str,
) -> list[Subject]:
    """Open the encoders, each with the latents to probe."""
    specs = list(models) or [str(PRETRAINED)]
    opened = open_models(specs, device, precision)
    if len(opened) < len(specs):
        text = f"{', '.join(specs)}: two have the same name; give each its own as NAME=SPEC."
        raise UsageError(text, parameter="model")
    trainings = [open_encoder(spec, device, precision) for spec in encoder_seeds]
    references: Mapping[str, Sequence[SentenceEncoder]] = {}
    if untrained:
        from bgt_core.encoders.baseline import reference_encoders

        encoder = next(iter(opened.values()))
        if not isinstance(encoder, Embedder):
            raise UsageError(f"needs a BGT checkpoint; {specs[0]} is another encoder.", parameter="untrained")
        references = reference_encoders(encoder, Path(unnamed(specs[0])), device)
    subjects = []
    for name, encoder in opened.items():
        for latent in latents:
            if latent not in encoder.latents:
                text = f"'{latent}': {name} has no such latent; choose from {', '.join(encoder.latents)}."
                raise UsageError(text, parameter="latents")
        subjects.append(Subject(name, encoder, tuple(latents or encoder.latents), trainings, references))
    return subjects


def download_senteval(folder: Path) -> None:
    """Download SentEval's probing sets into that folder, if they are not there yet."""
    from bgt_core.cli.data import agree
    from bgt_core.cli.options import rows_bar
    from bgt_core.data.fetch import download
    from bgt_core.data.sources import choose

    with rows_bar("downloading") as report:
        download(choose("senteval-probing"), folder, agree=lambda offer: agree(offer, yes=True), report=report)


def read_pair(text: str, subjects: Sequence[Subject]) -> tuple[Side, Side]:
    """Read A,B of --difference; raise UsageError for an unknown name."""
    names = [part.strip() for part in text.split(",")]
    if len(names) != 2 or names[0] == names[1]:
        raise UsageError(f"{text}: expected two different names, as in semantic,language.", parameter="difference")
    return read_side(names[0], subjects), read_side(names[1], subjects)


def read_side(name: str, subjects: Sequence[Subject]) -> Side:
    """Find a latent or baseline of the only model; of several models, MODEL/LATENT, or MODEL for its first latent."""
    known: dict[str, Side] = {}
    for subject in subjects:
        predictors = [*subject.latents, *BASELINES, *subject.references]
        known |= {f"{subject.name}/{predictor}": Side(subject.name, predictor) for predictor in predictors}
        known[subject.name] = Side(subject.name, predictors[0])
        if len(subjects) == 1:
            known |= {predictor: Side(subject.name, predictor) for predictor in predictors}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean '{near[0]}'?" if near else f"Choose from {', '.join(known)}."
        raise UsageError(f"'{name}': unknown. {hint}", parameter="difference")
    return known[name]

"""From checked options to a table: encoders opened, cells measured, what was asked for written and printed."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bgt_core import PRETRAINED
from bgt_core.cli.errors import flags
from bgt_core.cli.options import open_encoder, open_models, unnamed
from bgt_core.contracts import LANGUAGE, SEMANTIC, SentenceEncoder
from bgt_core.embedder import Embedder
from bgt_core.errors import BgtError, UsageError
from probes.cells import Subject
from probes.classifiers.baselines import BASELINES
from probes.cli import output
from probes.cli.fail_on import failing
from probes.cli.options import FLAGS, CliOptions
from probes.grid import Grid, ProbeTable
from probes.results.cache import Cache
from probes.results.compare import Side, compare_sides, corrected

FAILED, BELOW, STOPPED = 5, 7, 130


def measure(options: CliOptions) -> int:
    """Measure, write, print; the exit code."""
    options.check()
    if options.download and options.data:
        download_senteval(options.data)
    grid = open_grid(options)
    pairs = [read_pair(text, grid.subjects) for text in options.compare]
    table, stopped = ProbeTable(), False
    try:
        for label, outcome in grid.measure(say):
            table.add(label, in_flags(label, outcome) if isinstance(outcome, BgtError) else outcome)
    except KeyboardInterrupt:
        stopped = True
        kept = "" if options.no_cache else "; what was measured is kept: the same command continues from there"
        print(f"bgt-probe: stopped after {len(table.cells)} results{kept}", file=sys.stderr)
    if not table.cells:
        if table.failures:
            raise type(table.failures[0][1])("nothing could be measured.")
        return STOPPED
    cells = corrected(table.cells, options.correction)
    output.write(options, cells)
    output.show_all(options, cells, compare_sides(cells, pairs, options.correction), table.failures)
    if stopped:
        return STOPPED
    broken = failing(options.rules, cells)
    for line in broken:
        print(f"bgt-probe: {line}", file=sys.stderr)
    return BELOW if broken else FAILED if table.failures else 0


def say(line: str) -> None:
    print(flags(line, FLAGS), file=sys.stderr, flush=True)


def in_flags(label: str, error: BgtError) -> BgtError:
    """The error of one cell, printed, and in terms of the command's options."""
    error.args = (flags(str(error), FLAGS),)
    print(f"bgt-probe: {label}: {error}", file=sys.stderr)
    return error


def open_grid(options: CliOptions) -> Grid:
    """All cells, their encoders opened."""
    cache = None if options.no_cache else Cache(options.cache_dir) if options.cache_dir else Cache()
    return Grid(
        open_subjects(options),
        options.tasks,
        options.langs,
        options.data,
        options.column,
        options.split_file,
        options.configs,
        options.paper,
        cache,
    )


def open_subjects(options: CliOptions) -> list[Subject]:
    """The encoders, each with the latents to probe."""
    specs = list(options.models) or [str(PRETRAINED)]
    opened = open_models(specs, options.device, options.precision)
    if len(opened) < len(specs):
        raise UsageError(f"--model {', '.join(specs)}: two have the same name; give each its own as NAME=SPEC.")
    encoder_seeds = [open_encoder(spec, options.device, options.precision) for spec in options.encoder_seeds]
    references: Mapping[str, Sequence[SentenceEncoder]] = {}
    if options.untrained:
        from bgt_core.adapters.baselines import reference_encoders

        encoder = next(iter(opened.values()))
        if not isinstance(encoder, Embedder):
            raise UsageError(f"--untrained: {specs[0]} is no checkpoint of ours.")
        references = reference_encoders(encoder, Path(unnamed(specs[0])), options.device)
    subjects = []
    for name, encoder in opened.items():
        latents = tuple(options.latents or encoder.latents)
        for latent in latents:
            if latent not in encoder.latents:
                raise UsageError(f"There is no latent '{latent}' in {name}; choose from {', '.join(encoder.latents)}.")
        subjects.append(Subject(name, encoder, latents, encoder_seeds, references))
    if options.report and not any({SEMANTIC, LANGUAGE} <= set(subject.latents) for subject in subjects):
        raise UsageError("--report compares the semantic with the language latent: probe both of a model of ours.")
    return subjects


def download_senteval(folder: Path) -> None:
    """SentEval's probing sets, into that folder; nothing moves where they are already."""
    from bgt_core.cli.data import agree
    from bgt_core.cli.progress import rows_bar
    from bgt_core.data import fetch

    with rows_bar("downloading") as report:
        request = fetch.Request.parse(fetch.source("senteval-probing"))
        fetch.download(request, folder, agree=lambda offer: agree(offer, yes=True), report=report)


def read_pair(text: str, subjects: Sequence[Subject]) -> tuple[Side, Side]:
    """A,B of --compare; UsageError for a name that there is not."""
    names = [part.strip() for part in text.split(",")]
    if len(names) != 2 or names[0] == names[1]:
        raise UsageError(f"--compare {text}: expected two different names, as in semantic,language.")
    return read_side(names[0], subjects), read_side(names[1], subjects)


def read_side(name: str, subjects: Sequence[Subject]) -> Side:
    """A latent or baseline of the one model; of several, MODEL/LATENT, or MODEL for its first."""
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
        raise UsageError(f"--compare: there is no '{name}'. {hint}")
    return known[name]

"""From checked wishes to cells: models opened, cells measured one after the other, the table looked at as a whole."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bgt_core import PRETRAINED
from bgt_core.cli.options import open_encoder, open_models, unnamed
from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.errors import BgtError, NotFound, UsageError, did_you_mean
from probes.cells import Model, material_of, measured, without_text
from probes.classifiers.baselines import BASELINES
from probes.cli.wishes import ALL, LANGS, CliOptions, Rule
from probes.measures.significance import correct
from probes.measures.study import ProbeConfig
from probes.result import Difference
from probes.results.cache import Cache, default_folder
from probes.results.compare import corrected, gap, has
from probes.results.store import Cell
from probes.task import Items, ProbeTask
from probes.tasks import TASKS


class Side(NamedTuple):
    """One side of --compare."""

    model: str
    predictor: str


class Place(NamedTuple):
    """A cell to be measured."""

    model: Model
    task: ProbeTask
    lang: str
    material: tuple[Items, dict]
    wish: ProbeConfig


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def open_all(wishes: CliOptions) -> list[Model]:
    """The encoders, each with the latents asked for."""
    specs = list(wishes.models) or [str(PRETRAINED)]
    opened = open_models(specs, wishes.device, wishes.precision)
    if len(opened) < len(specs):
        raise UsageError(f"--model {', '.join(specs)}: two have the same name; give each its own as NAME=SPEC.")
    seeds = tuple(open_encoder(spec, wishes.device, wishes.precision) for spec in wishes.encoder_seeds)
    others = None
    if wishes.untrained:
        from bgt_core.adapters.baselines import reference_encoders
        from bgt_core.embedder import Embedder

        first = next(iter(opened.values()))
        if not isinstance(first, Embedder):
            raise UsageError(f"--untrained: {specs[0]} is no checkpoint of ours.")
        others = reference_encoders(first, Path(unnamed(specs[0])), wishes.device)
    models = []
    for name, encoder in opened.items():
        latents = tuple(wishes.latents or encoder.latents)
        for latent in latents:
            if latent not in encoder.latents:
                raise UsageError(f"There is no latent '{latent}' in {name}; choose from {', '.join(encoder.latents)}.")
        models.append(Model(name, encoder, latents, seeds, others))
    if wishes.report and not any({SEMANTIC, LANGUAGE} <= set(model.latents) for model in models):
        raise UsageError("--report compares the semantic with the language latent: probe both of a model of ours.")
    return models


def places(wishes: CliOptions, models: Sequence[Model]) -> Iterator[tuple[str, str, bool]]:
    """(task, language, whether the user named it): those of groups only where they have a meaning and a source."""
    langs = list(wishes.langs)
    if ALL in langs:
        own = [model.encoder.langs for model in models if model.encoder.langs]
        langs = [lang for lang in (own[0] if own else LANGS) if all(lang in each for each in own)]
    for name in wishes.named + wishes.grouped:
        task, must = TASKS[name], name in wishes.named
        joined = "texts" in task.builds and not any("-" in lang for lang in langs)
        if joined and len(langs) < 2 and not must:
            continue
        for lang in ["-".join(langs)] if joined else langs:
            why = without_text(task, lang, wishes.data)
            if why and not (must and ALL not in wishes.langs):
                say(f"skipped: {why}")
            elif joined or "-" not in lang or "texts" in task.builds:
                yield name, lang, must


def each(
    wishes: CliOptions, models: Sequence[Model], do: Callable[[Place, Cache | None], Any]
) -> Iterator[tuple[str, Any]]:
    """What `do` makes of each place, or what is wrong with it; raises BgtError at once where all would be."""
    cache = None if wishes.no_cache else Cache(wishes.cache_dir or default_folder())
    for model in models:
        for lang in wishes.langs:
            if lang != ALL:
                model.check(lang)
    everything = list(places(wishes, models))
    told: set[str] = set()
    single = len(everything) * len(models) * len(wishes.probes) == 1
    for name, lang, must in everything:
        task = TASKS[name]
        try:
            material = material_of(task, lang, wishes.data, wishes.column, wishes.wish[0], wishes.split_file)
        except BgtError as error:
            if single:
                raise
            if isinstance(error, NotFound) and not must:
                say(f"skipped: {error}")
            else:
                yield f"{name} {lang}", error
            continue
        for note in (material[1].get("card") or {}).get("notes", ()):
            if note.startswith("passed over") and note not in told:
                told.add(note)
                say(note)
        for model in models:
            for wish in wishes.wish:
                try:
                    yield "", do(Place(model, task, lang, material, wish), cache)
                except BgtError as error:
                    if single:
                        raise
                    yield f"{name} {lang}, {model.name}", error


def measure_all(wishes: CliOptions, models: Sequence[Model]) -> Iterator[tuple[str, Cell | BgtError]]:
    """Each cell, or what is wrong with it."""
    return each(wishes, models, lambda place, cache: measured(*place, cache, say))


def get(folder: Path) -> None:
    """SentEval's probing sets, in that folder; nothing moves where they are already."""
    from bgt_core.cli.data import agree
    from bgt_core.cli.progress import rows_bar
    from bgt_core.data import fetch

    with rows_bar("downloading") as report:
        request = fetch.Request.parse(fetch.source("senteval-probing"))
        fetch.download(request, folder, agree=lambda offer: agree(offer, yes=True), report=report)


def compared(wanted: Sequence[str], models: Sequence[Model]) -> list[tuple[Side, Side]]:
    """The pairs of --compare A,B; BgtError for a name that there is not."""
    pairs = []
    for text in wanted:
        sides = [part.strip() for part in text.split(",")]
        if len(sides) != 2 or sides[0] == sides[1]:
            raise UsageError(f"--compare {text}: expected two different names, as in semantic,language.")
        pairs.append((side(sides[0], models), side(sides[1], models)))
    return pairs


def side(name: str, models: Sequence[Model]) -> Side:
    """A latent or baseline of the one model; of several, MODEL/LATENT, or MODEL for its first."""
    known = {}
    for model in models:
        predictors = [*model.latents, *BASELINES, *(model.others or {})]
        known |= {f"{model.name}/{predictor}": Side(model.name, predictor) for predictor in predictors}
        known[model.name] = Side(model.name, predictors[0])
        if len(models) == 1:
            known |= {predictor: Side(model.name, predictor) for predictor in predictors}
    if name not in known:
        hint = did_you_mean(name, known) or f" Choose from {', '.join(known)}."
        raise UsageError(f"--compare: there is no '{name}'.{hint}")
    return known[name]


def finished(
    cells: Sequence[Cell], pairs: Sequence[tuple[Side, Side]], correction: str
) -> tuple[list[Cell], list[Difference]]:
    """The cells with adjusted p and notes, and the differences asked for, corrected among themselves."""
    found = []
    for place in dict.fromkeys(cell.place for cell in cells):
        here = {cell.model: cell for cell in cells if cell.place == place}
        for first, second in pairs:
            left, right = here.get(first.model), here.get(second.model)
            if left and right and has(left, first.predictor) and has(right, second.predictor):
                names = (first.predictor, second.predictor)
                if first.model != second.model:
                    names = ("/".join(first), "/".join(second))
                found.append(gap(left, first.predictor, right, second.predictor, names))
    return corrected(cells, correction), correct(found, correction)


def broken(rules: Sequence[Rule], cells: Sequence[Cell]) -> list[str]:
    """Where the rules of --fail-on hold, in words."""
    lines = []
    for rule in rules:
        rows = [
            (cell, row)
            for cell in cells
            if cell.result.task == rule.task
            for row in cell.result.rows
            if row.latent == rule.latent or (rule.latent is None and row.latent in cell.trail["latents"])
        ]
        if not rows:
            raise UsageError(f"--fail-on: nothing was measured for '{'/'.join(filter(None, rule[:2]))}'.")
        for cell, row in rows:
            if (row.accuracy < rule.bound) if rule.below else (row.accuracy > rule.bound):
                how = "below" if rule.below else "above"
                where = f"{row.task} {row.lang}, {cell.model} {row.latent}"
                lines.append(f"{where}: {row.accuracy:.4f} is {how} {rule.bound:g}")
    return lines

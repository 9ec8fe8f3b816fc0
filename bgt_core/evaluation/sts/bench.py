"""Semantic textual similarity from beginning to end: what `bgt sts` does, in one call."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bgt_core.contracts import LANGUAGE, SentenceEncoder
from bgt_core.errors import BgtError, DataError, UsageError
from bgt_core.evaluation.sts import hard as hard_sts
from bgt_core.evaluation.sts.compare import aligned, check_settings, compare
from bgt_core.evaluation.sts.files import read_sets
from bgt_core.evaluation.sts.parquet import read_scores
from bgt_core.evaluation.sts.published import dataset_warnings
from bgt_core.evaluation.sts.score import StsScores, StsSet, sts
from bgt_core.evaluation.sts.table import StsTable

YEARS = ("2012", "2013", "2014", "2015", "2016")

System = SentenceEncoder | StsScores | Path


def evaluate(
    systems: SentenceEncoder | Mapping[str, System],
    data: Path | str | Sequence[StsSet] | None = None,
    *,
    sets: Sequence[str] = YEARS,
    lang: str = "en",
    stsb_without: Sequence[str] = (),
    latent: str | None = None,
    aggregates: Collection[str] = ("mean",),
    hard: bool = False,
    strict: bool = False,
    resamples: int = 2_000,
    level: float = 0.95,
    seed: int = 0,
) -> StsTable:
    """Scores of one encoder, or of several systems side by side, with intervals and differences.

        table = evaluate({"mine": bgt_core.load("runs/mine"), "shipped": bgt_core.load()}, "data/sts")

    A system is an encoder, scores that are known already (`StsScores`, of `StsTable.pairs`), or a .parquet file of them
    that `write_scores` made, of one system or several. `data` is a folder of STS files, of which `sets`, `lang` and
    `stsb_without` choose as in `read_sets`; or sets that were read before; or, where all scores are known, None: then
    systems are compared on all the sets they share. `latent` is that of the encoders, by default each they have that
    can score these sets. `aggregates` are of `AGGREGATES`; `hard` adds the splits of Hard STS; `strict` refuses sets
    that are not as published. `resamples`, `level` and `seed` are of the bootstrap: see `compare`.

    Raises UsageError for arguments that contradict one another and for languages and latents an encoder does not have,
    NotFound for absent files, DataError for damaged ones, for vectors that aren't finite and for sets that `strict`
    refuses.
    """
    check_settings(aggregates, resamples, level)
    named = systems if isinstance(systems, Mapping) else {"model": systems}
    known = known_scores(named)
    encoders = {name: system for name, system in named.items() if not isinstance(system, StsScores | Path)}
    if isinstance(data, str | Path):
        chosen = read_sets(Path(data), sets, lang=lang, without=stsb_without)
    elif data is not None:
        chosen = list(data)
    elif encoders:
        raise UsageError("`data`: say which folder the STS files are in.")
    else:
        chosen = shared_sets(known)
    warnings = dataset_warnings(chosen)
    if warnings and strict:
        raise DataError(" ".join(warnings))
    if hard:
        splits = hard_sts.hard_splits([data for data in chosen if data.year.isdigit()])
        chosen, warnings = [*chosen, *splits], [*warnings, hard_sts.note(splits)]
    scored = aligned(known, chosen)
    for name, scores in score(encoders, chosen, latent).items():
        if name in scored:
            raise UsageError(f"Two systems are called '{name}'; give one another name.")
        scored[name] = scores
    table = compare(scored, aggregates, resamples=resamples, level=level, seed=seed)
    return replace(table, warnings=warnings)


def known_scores(systems: Mapping[str, object]) -> dict[str, StsScores]:
    """The systems whose scores are known; those of a file of several have its name before their own."""
    known: dict[str, StsScores] = {}
    for name, system in systems.items():
        if isinstance(system, StsScores):
            known[name] = system
        elif isinstance(system, Path):
            stored = read_scores(system)
            known |= {f"{name} {each}" if len(stored) > 1 else name: scores for each, scores in stored.items()}
    return known


def shared_sets(systems: Mapping[str, StsScores]) -> list[StsSet]:
    """The sets that every system has scores of; DataError where there is none."""
    first, *others = systems.values()
    names = [set(map(str, scores.sets)) for scores in others]
    shared = [data for data in first.sets if all(str(data) in each for each in names)]
    if not shared:
        raise DataError(f"{', '.join(systems)}: no set that all of them are scored on.")
    return shared


def score(encoders: Mapping[str, SentenceEncoder], sets: Sequence[StsSet], latent: str | None) -> dict[str, StsScores]:
    """This latent, or each that can score these sets: language latents of two languages have no cosine."""
    across = any(data.left_lang != data.right_lang for data in sets)
    systems = {}
    for name, encoder in encoders.items():
        fitting = [each for each in encoder.latents if not (across and each == LANGUAGE)]
        for each in [latent] if latent else fitting:
            try:
                scores = sts(encoder, sets, latent=each)
            except BgtError as error:
                raise type(error)(f"{name}: {error}") from None
            systems[f"{name} {each}" if len(encoder.latents) > 1 else name] = scores
    return systems

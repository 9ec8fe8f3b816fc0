"""One cell of a table: an encoder on one task in one language, measured, or loaded from the cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bgt_core import __version__
from bgt_core.contracts import SentenceEncoder
from probes.dataset import Dataset, label_sentences
from probes.measures.config import ProbeConfig
from probes.probe import DEFAULT, Report, check, probeable, run, run_senteval_protocol, silent
from probes.results.cache import RESULTS, Cache, key, with_cache
from probes.results.store import Cell, cell_of, read_cell, write_cell
from probes.task import ProbeTask
from probes.tasks import find


@dataclass(frozen=True, eq=False)
class Subject:
    """An encoder to probe, with its name, its other trainings, and the references to compare it with."""

    name: str
    encoder: SentenceEncoder
    latents: Sequence[str] = ()  # those to probe; by default all that it has
    encoder_seeds: Sequence[SentenceEncoder] = ()  # the same model trained with other seeds
    references: Mapping[str, Sequence[SentenceEncoder]] = field(default_factory=dict)  # to beat, as in `probes.run`

    def latents_in(self, lang: str) -> list[str]:
        """The latents to probe in this language."""
        return probeable(self.latents or self.encoder.latents, lang)

    def check(self, lang: str) -> None:
        """Raise UsageError for a language or latent that it doesn't have."""
        for encoder in (self.encoder, *self.encoder_seeds):
            check(encoder, lang, self.latents_in(lang))


def measure_cell(
    encoder: SentenceEncoder,
    task: ProbeTask | str,
    sentences: Sequence[str] | Dataset | None = None,
    *,
    lang: str,
    name: str = "model",
    latents: Sequence[str] = (),
    encoder_seeds: Sequence[SentenceEncoder] = (),
    references: Mapping[str, Sequence[SentenceEncoder]] | None = None,
    config: ProbeConfig = DEFAULT,
    senteval: bool = False,
    cache: Cache | None = None,
    report: Report = silent,
) -> Cell:
    """Measure like `probes.run`, and return a cell: with predictions, and a trail of weights, data, code and day.

        cell = probes.measure_cell(bgt_core.load(), "length", lang="en", name="shipped", cache=probes.Cache())

    Args:
        sentences: as in `probes.run`, or a `Dataset` (`label_sentences`, `load_items`), which knows its source.
        name: the encoder's name in tables.
        senteval: whether to follow SentEval's protocol (`probes.run_senteval_protocol`).
        cache: stores vectors and cells; a stored cell is loaded. Nothing is stored for encoders without a
            fingerprint (their `fingerprint` is empty).

    The other parameters are those of `probes.run`, as are the errors; NotFound if the cache can't be written.
    """
    task = find(task) if isinstance(task, str) else task
    subject = Subject(name, encoder, latents, encoder_seeds, references or {})
    subject.check(lang)
    dataset = sentences if isinstance(sentences, Dataset) else label_sentences(task, sentences, lang, seed=config.seed)
    path = cell_path(cache, subject, task, dataset, lang=lang, config=config, senteval=senteval)
    if path and (kept := read_cell(path, name)):
        report(f"{task.name} {lang}: {name}, measured {kept.trail['measured']}")
        return kept
    if cache and path:
        cache.check()
    latents, cached = subject.latents_in(lang), with_cache(encoder, cache)
    options: dict[str, Any] = {"lang": lang, "latents": latents, "config": config, "report": report}
    if senteval:
        result = run_senteval_protocol(cached, task, dataset.items, **options)
    else:
        trainings = [with_cache(trained, cache) for trained in encoder_seeds]
        references = {
            other: [with_cache(each, cache) for each in several] for other, several in subject.references.items()
        }
        result = run(cached, task, dataset.items, encoder_seeds=trainings, references=references, **options)
    cell = cell_of(name, result, trail_of(subject, dataset, latents, "senteval" if senteval else config.probe))
    if cache and path:
        with cache.writing(path) as partial:
            write_cell(partial, cell)
    return cell


def trail_of(subject: Subject, dataset: Dataset, latents: Sequence[str], probe: str) -> dict[str, Any]:
    """The weights, data, code and day that a cell comes from."""
    return {
        **dataset.about,
        "fingerprint": subject.encoder.fingerprint or "unknown",
        "version": __version__,
        "measured": datetime.now(UTC).strftime("%Y-%m-%d"),
        "probe": probe,
        "langs": list(subject.encoder.langs),
        "latents": list(latents),
    }


def cell_path(
    cache: Cache | None,
    subject: Subject,
    task: ProbeTask,
    dataset: Dataset,
    *,
    lang: str,
    config: ProbeConfig,
    senteval: bool = False,
) -> Path | None:
    """The path of a stored cell; None without a cache, or for an encoder without a fingerprint."""
    references = [(name, len(several)) for name, several in subject.references.items()]
    encoders = [subject.encoder, *subject.encoder_seeds]
    encoders += [encoder for several in subject.references.values() for encoder in several]
    fingerprints = [encoder.fingerprint for encoder in encoders]
    if not cache or not all(fingerprints):
        return None
    name = key(
        task=task.name,
        lang=lang,
        latents=subject.latents_in(lang),
        fingerprints=fingerprints,
        references=references,
        dataset=dict(dataset.about),
        config=asdict(config),
        senteval=senteval,
    )
    return cache.path(RESULTS, name)

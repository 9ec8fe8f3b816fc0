"""The options of `bgt-probe`, checked before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bgt_core.cli.options import check_files
from bgt_core.errors import UsageError
from probes import grid
from probes.cli.fail_on import Rule, read_rules
from probes.grid import ALL
from probes.measures.config import ProbeConfig
from probes.measures.significance import check_correction

# parameters of the library whose options have other names
RENAMED = {
    "cache": "--cache-dir",
    "langs": "--lang",
    "latents": "--latent",
    "resamples": "--bootstrap",
    "senteval": "--paper",
    "tasks": "--task",
}
FLAGS = RENAMED | {
    name: f"--{name.replace('_', '-')}"
    for name in "ci column control correction data download encoder_seeds erase l2 lang max_items max_train probe seed "
    "seeds split_file task".split()
}
CONFIGURED = "max_items max_train seeds seed ci l2 baselines capacity mdl erase curve".split()  # named as the options

KEPT = "column download paper untrained correction as_json no_cache device precision".split()
TABLES = ("csv", "latex", "parquet", "md")  # ways of writing a table
PATHS = ("data", "split_file", "predictions", "report", "cache_dir", *TABLES)  # text, as long as typer has not read it


@dataclass(frozen=True)
class CliOptions:
    """The options, as lists where several may be given."""

    langs: Sequence[str]
    tasks: Sequence[str]
    latents: Sequence[str]  # none: each that a model has
    models: Sequence[str]
    encoder_seeds: Sequence[str]
    data: Path | None
    column: int | None
    split_file: Path | None
    download: bool
    probes: Sequence[str]
    config: ProbeConfig  # but for the probe
    paper: bool
    compare: Sequence[str]
    fail_on: Sequence[str]
    untrained: bool
    correction: str
    files: Mapping[str, Path | None]
    as_json: bool
    predictions: Path | None
    report: Path | None
    cache_dir: Path | None
    no_cache: bool
    device: str
    precision: str

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> CliOptions:
        """From the values of the command line, by the names of the parameters of `probe`."""
        paths: dict[str, Any] = {name: Path(values[name]) if values[name] else None for name in PATHS}
        return cls(
            langs=split(values["lang"]),
            tasks=split(values["task"]) or [ALL],
            latents=split([values["latent"] or ""]),
            models=values["model"] or [],
            encoder_seeds=split(values["encoder_seeds"]),
            probes=split([values["probe"]]),
            config=ProbeConfig(
                control=None if values["control"] == "none" else values["control"],
                resamples=values["bootstrap"],
                **{name: values[name] for name in CONFIGURED},
            ),
            compare=values["compare"] or [],
            fail_on=values["fail_on"] or [],
            files={name: paths.pop(name) for name in TABLES},
            **paths,
            **{name: values[name] for name in KEPT},
        )

    def check(self) -> None:
        """UsageError or NotFound for what can be refused without a model."""
        if not self.langs:
            raise UsageError("Say which language to probe, as in: bgt-probe --lang fr --task gender")
        grid.check_tasks(self.tasks, self.langs, self.data)
        check_files({**self.files, "predictions": self.predictions, "report": self.report}, self.as_json)
        check_correction(self.correction)
        if self.report and self.report.suffix != ".html":
            raise UsageError(f"--report {self.report}: name it .html; its table is written beside it as .tex.")
        if len(self.models) > 1 and (self.encoder_seeds or self.untrained):
            raise UsageError("--encoder-seeds and --untrained are of one --model; give one.")
        if self.download and (not self.data or self.data.is_file() or not {"en", ALL} & set(self.langs)):
            raise UsageError("--download gets SentEval's sets, which are English: give --lang en and --data FOLDER.")
        if self.download:
            grid.check_files(None, None, self.split_file)  # the data come
        else:
            grid.check_files(self.data, self.column, self.split_file)
        _ = self.configs, self.rules

    @property
    def configs(self) -> list[ProbeConfig]:
        """One for each kind of probe."""
        return [replace(self.config, probe=probe) for probe in self.probes]

    @property
    def rules(self) -> list[Rule]:
        """Of --fail-on."""
        return read_rules(self.fail_on)


@contextmanager
def readable_twice(options: CliOptions) -> Iterator[CliOptions]:
    """The options with --data as a file that can be read for each task; a pipe, such as /dev/stdin, is first copied."""
    if options.data is None or not (options.data.is_fifo() or options.data.is_char_device()):
        yield options
        return
    with TemporaryDirectory(prefix="bgt-probe-") as folder, options.data.open("rb") as pipe:
        copy = Path(folder) / options.data.name
        copy.write_bytes(pipe.read())
        yield replace(options, data=copy)


def split(values: Sequence[str] | None) -> list[str]:
    """ "a,b" and "c" -> each of them once."""
    return list(dict.fromkeys(part.strip() for value in values or [] for part in value.split(",") if part.strip()))

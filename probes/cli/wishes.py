"""What a user asked `bgt-probe` for, checked before anything is loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from bgt_core.cli.options import check_files
from bgt_core.errors import NotFound, UsageError
from probes.measures.significance import CORRECTIONS
from probes.measures.study import ProbeConfig
from probes.tasks import GROUPS, TASKS, find

ALL = "all"
LANGS = ("en", "fr", "es", "de", "tr", "ja", "ar")  # what "all" is for an encoder of any language
_RULE = re.compile(r"([\w-]+)(?:/([^<>]+))?([<>])(\d*\.?\d+)")


class Rule(NamedTuple):
    """Fails where a latent's accuracy is below (or above) `bound`; without a latent, where that of any is."""

    task: str
    latent: str | None
    below: bool
    bound: float


@dataclass(frozen=True)
class CliOptions:
    """The options, as lists; `asked` are the fields of `ProbeConfig` but for the probe."""

    langs: Sequence[str]
    tasks: Sequence[str]  # none: all that there are labels for
    latents: Sequence[str]  # none: each that a model has
    models: Sequence[str]
    encoder_seeds: Sequence[str]
    data: Path | None
    column: int | None
    split_file: Path | None
    download: bool
    probes: Sequence[str]
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
    asked: Mapping[str, Any]

    def check(self) -> None:
        """BgtError for what can be refused without a model."""
        if not self.langs:
            raise UsageError("Say which language to probe, as in: bgt-probe --lang fr --task gender")
        for name in self.named:
            for lang in self.langs:
                if lang != ALL:
                    TASKS[name].check(lang)
            if self.data is None and "text" not in TASKS[name].builds:
                TASKS[name].items([], next(iter(TASKS[name].langs), "en"))  # says what it needs
        check_files({**self.files, "predictions": self.predictions, "report": self.report}, self.as_json)
        if self.correction not in CORRECTIONS:
            raise UsageError(f"--correction {self.correction}: choose from {', '.join(CORRECTIONS)}.")
        if self.report and self.report.suffix != ".html":
            raise UsageError(f"--report {self.report}: name it .html; its table is written beside it as .tex.")
        if self.column is not None and self.data is None:
            raise UsageError("--column says which column of --data to read; give --data too.")
        if len(self.models) > 1 and (self.encoder_seeds or self.untrained):
            raise UsageError("--encoder-seeds and --untrained are of one --model; give one.")
        if self.download and (not self.data or self.data.is_file() or not {"en", ALL} & set(self.langs)):
            raise UsageError("--download gets SentEval's sets, which are English: give --lang en and --data FOLDER.")
        if self.data and not (self.data.exists() or self.download):
            raise NotFound(f"{self.data}: there is no such file or folder.")
        if self.split_file and not self.split_file.is_file():
            raise NotFound(f"--split-file {self.split_file}: there is no such file.")
        _ = self.wish, self.rules

    @property
    def wish(self) -> list[ProbeConfig]:
        """One for each kind of probe."""
        first = ProbeConfig(**self.asked)
        return [replace(first, probe=probe) for probe in self.probes]

    @property
    def named(self) -> list[str]:
        """Tasks named one by one: each must be measured in every language."""
        return list(dict.fromkeys(find(name).name for name in self.tasks if name not in GROUPS))

    @property
    def grouped(self) -> list[str]:
        """Tasks of groups, measured where they can be."""
        groups = [name for name in self.tasks if name in GROUPS]
        if not self.tasks:
            groups = [ALL]
        found = dict.fromkeys(task for group in groups for task in GROUPS[group])
        return [task for task in found if task not in self.named]

    @property
    def rules(self) -> list[Rule]:
        """Of --fail-on."""
        found = []
        for text in self.fail_on:
            match = _RULE.fullmatch(text.replace(" ", ""))
            if not match or not 0 <= float(match[4]) <= 1:
                raise UsageError(f"--fail-on {text}: expected TASK<SHARE or TASK/LATENT>SHARE, as in gender<0.52.")
            found.append(Rule(find(match[1]).name, match[2], match[3] == "<", float(match[4])))
        return found

"""Which trainings the tables ask for, at a scale, on a folder of data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from bgt_core.device import pick_device
from bgt_core.errors import UsageError
from bgt_core.reproduce import datasets, report, results, stored
from bgt_core.reproduce.cells import Cell, cell_of
from bgt_core.reproduce.locks import locked
from bgt_core.reproduce.runner import Place
from bgt_core.reproduce.samples import Bootstrap
from bgt_core.reproduce.tables import EVERY, SAVE_EVERY, SCALES, TABLES
from bgt_core.run import write_atomically


@dataclass(frozen=True)
class Plan:
    """Where trainings are kept, and those of each system of each table."""

    place: Place
    tables: Mapping[str, Mapping[str, Sequence[Cell]]]

    def chosen(self, only: str | None = None) -> list[Cell]:
        """Every training once, the lowest seeds first; with `only` those whose name, or whose system's, it matches.

        BgtError where that is none.
        """
        found = {
            cell.key: cell
            for systems in self.tables.values()
            for system, cells in systems.items()
            for cell in cells
            if only is None or any(fnmatchcase(name.lower(), only.lower()) for name in (system, cell.name))
        }
        if not found:
            said = ", ".join(dict.fromkeys(system for systems in self.tables.values() for system in systems))
            raise UsageError(f"--only {only}: no such system or training; systems are {said}.")
        return sorted(found.values(), key=lambda cell: cell.seed)

    def tables_of(self, cell: Cell) -> list[str]:
        """The tables that a training is in."""
        return [
            name
            for name, systems in self.tables.items()
            if cell.key in {one.key for cells in systems.values() for one in cells}
        ]

    def write(self, folder: Path, how: Bootstrap) -> None:
        """The results and the page of each table, from what is finished; one process at a time."""
        with locked(self.place.out / "results.lock", wait=True):
            for name, cells in self.tables.items():
                stored.write(folder, name, results.records(self.place, TABLES[name], cells, how))
                draw(folder, name)


def draw(folder: Path, name: str) -> None:
    """The page of a table, from its stored results."""
    write_atomically(folder / f"{name}.md", report.page(name, TABLES[name], stored.read(folder, name)))


def plan(
    names: Sequence[str],
    scale: str,
    data: Path,
    out: Path,
    *,
    seeds: Sequence[int] = (),
    device: str = "auto",
    say: Callable[[str], None] = print,
) -> Plan:
    """Read the data and name the trainings; `seeds` stand for those of every system.

    BgtError for a scale or device that is not there, and for data that can't be used.
    """
    if scale not in SCALES:
        raise UsageError(f"--scale {scale}: choose from {', '.join(SCALES)}.")
    pick_device(device)
    pairs = dict.fromkeys(system.langs for name in names for system in TABLES[name].systems)
    found = {langs: datasets.read(data, langs) for langs in pairs}
    arguments = SCALES[scale]
    tables = {
        name: {
            system.name: [
                cell_of(system, arguments[EVERY], arguments.get(system.recipe, {}), seed, found[system.langs].sha256)
                for seed in seeds or system.seeds
            ]
            for system in TABLES[name].systems
        }
        for name in names
    }
    return Plan(Place(out, found, device, SAVE_EVERY.get(scale), say), tables)

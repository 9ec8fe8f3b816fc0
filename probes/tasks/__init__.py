"""The probing tasks: every object of type `ProbeTask` in a module of this folder. To add a task, add a file."""

from importlib import import_module
from pkgutil import iter_modules

from bgt_core.errors import DataError, UsageError, did_you_mean
from probes.task import ProbeTask

PAPER = ("subj-num", "obj-num", "depth", "top-const", "word-content", "length", "punct-num", "punct-first", "gender")


def _found() -> dict[str, ProbeTask]:
    """Collect the tasks by name: first those of the BGT paper, in the order of its table 3, then the others."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    tasks = {value.name: value for module in modules for value in vars(module).values() if isinstance(value, ProbeTask)}
    return {name: tasks[name] for name in (*PAPER, *sorted(tasks.keys() - set(PAPER)))}


TASKS = _found()
GROUPS: dict[str, tuple[str, ...]] = {
    "paper": PAPER,
    **{
        group: tuple(name for name, task in TASKS.items() if task.group == group)
        for group in ("surface", "syntax", "semantic", "style")
    },
    "all": tuple(TASKS),
}


def find(name: str) -> ProbeTask:
    """Return the built-in task with this name, or import your own task from python:MODULE:OBJECT.

    Raises:
        UsageError: The name is unknown; the message suggests the nearest name.
        NotFound: The module or object is absent.
        DataError: The object is not a `ProbeTask`.
    """
    if name in TASKS:
        return TASKS[name]
    if name.startswith("python:"):
        from bgt_core.encoders.python import import_object

        task = import_object(name)
        if not isinstance(task, ProbeTask):
            raise DataError(f"{name}: expected a probes.ProbeTask, not {type(task).__name__}.")
        return task
    names = [*TASKS, *GROUPS]
    hint = did_you_mean(name, names) or f" Choose from {', '.join(names)}."
    raise UsageError(f"Unknown task '{name}'.{hint}")

"""`python -m attack.trials OUTCOMES TEST...`: runs tests against mutants, in the folder that holds the mutants.

One process collects the tests and runs them once, which tells what each test calls and how long it takes. For each
mutant the process is copied; the copy switches the mutant on and runs the tests that call its function, fast ones
first, until one fails.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import signal
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

NOTICED, SURVIVED, NO_TEST, TIMEOUT = 1, 0, 33, 36  # as mutmut keeps them
SLOW = 0.3  # seconds of computing from which on a test is not used
SWITCH = "MUTANT_UNDER_TEST"  # read by mutmut's code


class Trials:
    """A pytest plugin that puts trials of mutants in the place of one run.

    Args:
        batches: Names of mutants, and the files or folders of the tests that look at them.
        outcomes: A file to which a line is added for each mutant: its name and exit code as JSON.
    """

    def __init__(self, batches: Sequence[tuple[list[str], list[str]]], outcomes: Path):
        self.batches, self.outcomes = batches, outcomes
        self.seconds: dict[Any, float] = {}  # duration of each test that ran
        self.called: dict[Any, set[str]] = {}  # the functions that it called

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("tests could not be collected")
        with self.outcomes.open("a") as lines:
            for mutants, paths in self.batches:
                tests = self.look(session, [item for item in session.items if item.nodeid.startswith(tuple(paths))])
                gc.freeze()
                for mutant in mutants:
                    code = self.trial(mutant, tests.get(mutant.rpartition("__mutmut_")[0], []), session)
                    lines.write(json.dumps([mutant, code]) + "\n")
                    lines.flush()
        return True

    def look(self, session: pytest.Session, items: list[Any]) -> dict[str, list[Any]]:
        """Run each of these tests once; the tests that call each function, fast ones first."""
        from mutmut.mutation import trampoline

        for item in items:
            if item in self.seconds or item.get_closest_marker("slow"):
                continue
            hits = self.called[item] = set()
            trampoline.record_trampoline_hit = lambda name, caller=None, hits=hits: hits.add(name)
            os.environ[SWITCH] = "stats"
            for _ in range(2):  # the first round also makes the fixtures of the session
                begun = time.process_time()
                try:
                    run(item, session)
                except BaseException as error:  # noqa: BLE001  pytest's own errors are none of Exception
                    pytest.exit(f"{item.nodeid} fails without a mutant: {error}")
                self.seconds[item] = time.process_time() - begun
                if not SLOW <= self.seconds[item] < 5:
                    break
        tests: dict[str, list[Any]] = defaultdict(list)
        for item in sorted(self.called.keys() & set(items), key=self.seconds.__getitem__):
            for function in self.called[item] if self.seconds[item] < SLOW else ():
                tests[function].append(item)
        print(f"\n{len(items)} tests, {sum(self.seconds[item] for item in items if item in self.seconds):.1f} s")
        return tests

    def trial(self, mutant: str, tests: list[Any], session: pytest.Session) -> int:
        """The exit code of one mutant."""
        if not tests:
            return NO_TEST
        child = os.fork()
        if child == 0:
            code = NOTICED
            with contextlib.suppress(BaseException):
                gc.disable()
                os.environ[SWITCH] = mutant
                limit = 5 + int(time.process_time() + 10 * sum(map(self.seconds.__getitem__, tests)))
                resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
                signal.alarm(600)
                for test in tests:
                    run(test, session)
                code = SURVIVED
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return TIMEOUT if code < 0 else code


def run(item: Any, session: pytest.Session) -> None:
    """Run one test, and leave nothing standing but what the whole session shares; its error is raised."""
    item._initrequest()
    hooks: Any = item.ihook
    after = SimpleNamespace(listchain=lambda: [session])
    steps = {
        "setup": lambda: hooks.pytest_runtest_setup(item=item),
        "call": lambda: hooks.pytest_runtest_call(item=item),
        "teardown": lambda: hooks.pytest_runtest_teardown(item=item, nextitem=after),
    }
    skipped = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for when, step in steps.items():
            if skipped and when == "call":
                continue
            done = pytest.CallInfo.from_call(step, when=when)  # type: ignore[arg-type]
            skipped = done.excinfo is not None and done.excinfo.errisinstance(pytest.skip.Exception)
            if done.excinfo and not skipped:
                raise done.excinfo.value
            hooks.pytest_runtest_makereport(item=item, call=done)


def main() -> None:
    batches = json.loads(sys.stdin.read())
    sys.exit(pytest.main(sys.argv[2:], plugins=[Trials(batches, Path(sys.argv[1]))]))


if __name__ == "__main__":
    main()

"""`probes` as a library: its names, a cell, and a table of cells as `bgt-probe` measures them."""

import doctest
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import probes
from bgt_core.errors import UsageError
from probes import ProbeConfig
from probes.measures import measure

QUICK = ProbeConfig(max_items=400, seeds=2, control=False, baselines=False)


@pytest.mark.slow
def test_neither_the_names_nor_the_help_import_torch() -> None:
    for name in probes.__all__:
        assert getattr(probes, name) is not None
    heavy = "{'torch', 'sklearn', 'scipy'} & set(sys.modules)"
    code = (
        "import sys, probes\nfrom probes.cli import app\n"
        "try: app(['--help'])\nexcept SystemExit as stop: assert not stop.code\n"
        f"assert not {heavy}; probes.run; assert {heavy}; probes.table"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "--task" in done.stdout, done.stderr
    with pytest.raises(AttributeError, match="no attribute 'runs'"):
        _ = probes.runs  # type: ignore[attr-defined]


def test_the_examples_of_the_options_run() -> None:
    assert doctest.testmod(measure, optionflags=doctest.IGNORE_EXCEPTION_DETAIL) == (0, 2)


def test_a_cell_records_its_data_and_encoder(encoder: Callable) -> None:
    cell = probes.measure_cell(encoder(), "punct-num", lang="fr", name="mine", config=QUICK)
    assert cell.trail["data"] == "example sentences"
    assert (cell.trail["fingerprint"], cell.trail["probe"], cell.model) == ("fake", "linear", "mine")
    assert cell.result == probes.run(encoder(), "punct-num", lang="fr", config=QUICK)


def test_all_languages_are_those_of_every_encoder(encoder: Callable) -> None:
    encoders = {"three": encoder(("en", "fr", "de")), "two": encoder(("fr", "en"))}
    table = probes.table(encoders, "punct-num", config=QUICK)
    assert [cell.setting[1] for cell in table.cells] == ["en", "en", "fr", "fr"]
    with pytest.raises(UsageError, match="lang de: the model has fr, en"):
        probes.table(encoders, "punct-num", "de", config=QUICK)


def test_a_language_code_with_a_hyphen_is_one_language(encoder: Callable, tmp_path: Path) -> None:
    """Joined languages are separated by hyphens, too; here two codes with hyphens are joined."""
    for lang in ("zh-Hant", "pt-BR"):
        lines = "".join(f"{lang} {number}{'.' * (number % 2 + 1)}\n" for number in range(300))
        (tmp_path / f"{lang}.txt").write_text(lines, "utf-8")
    fake = encoder(("zh-Hant", "pt-BR"))
    table = probes.table({"fake": fake}, ["punct-num", "lang-id"], "all", data=tmp_path, config=QUICK)
    assert not table.failures
    assert [cell.setting[1] for cell in table.cells] == ["zh-Hant", "pt-BR", "zh-Hant-pt-BR"]
    assert {row.latent for cell in table.cells[:2] for row in cell.result.rows} >= {"semantic", "language"}
    with pytest.raises(UsageError, match="lang zh-Hans: the model has zh-Hant, pt-BR"):
        probes.table({"fake": fake}, "length", "zh-Hans", config=QUICK)

"""Test `probes` as a library: the names that it exports, the results of one probe, and the tables of `bgt-probe`."""

from collections.abc import Callable
from pathlib import Path

import pytest

import probes
from bgt_core.errors import UsageError
from probes import ProbeConfig

QUICK = ProbeConfig(max_items=400, seeds=2, control=False, baselines=False)


def test_every_name_is_found_and_others_are_an_error() -> None:
    assert all(getattr(probes, name) is not None for name in probes.__all__)
    with pytest.raises(AttributeError, match="no attribute 'runs'"):
        _ = probes.runs  # type: ignore[attr-defined]


def test_a_cell_records_its_data_and_encoder(encoder: Callable) -> None:
    cell = probes.measure_cell(encoder(), "punct-num", lang="fr", name="mine", config=QUICK)
    assert cell.trail["data"] == "example sentences"
    assert (cell.trail["fingerprint"], cell.trail["probe"], cell.model) == ("fake", "linear", "mine")
    assert cell.result == probes.run(encoder(), "punct-num", lang="fr", config=QUICK)


def test_all_languages_are_those_of_every_encoder(encoder: Callable) -> None:
    encoders = {"three": encoder(("en", "fr", "de")), "two": encoder(("fr", "en"))}
    table = probes.table(encoders, "punct-num", config=QUICK)
    assert [cell.setting[1] for cell in table.cells] == ["en", "en", "fr", "fr"]
    with pytest.raises(UsageError, match="lang de: the model supports fr, en"):
        probes.table(encoders, "punct-num", "de", config=QUICK)


def test_a_language_code_with_a_hyphen_is_one_language(encoder: Callable, tmp_path: Path) -> None:
    """A result for two languages is named by both codes, joined by a hyphen, even if the codes contain hyphens."""
    for lang in ("zh-Hant", "pt-BR"):
        lines = "".join(f"{lang} {number}{'.' * (number % 2 + 1)}\n" for number in range(300))
        (tmp_path / f"{lang}.txt").write_text(lines, "utf-8")
    fake = encoder(("zh-Hant", "pt-BR"))
    table = probes.table({"fake": fake}, ["punct-num", "lang-id"], "all", data=tmp_path, config=QUICK)
    assert not table.failures
    assert [cell.setting[1] for cell in table.cells] == ["zh-Hant", "pt-BR", "zh-Hant-pt-BR"]
    assert {row.latent for cell in table.cells[:2] for row in cell.result.rows} >= {"semantic", "language"}
    with pytest.raises(UsageError, match="lang zh-Hans: the model supports zh-Hant, pt-BR"):
        probes.table({"fake": fake}, "length", "zh-Hans", config=QUICK)

"""The shell, the first page and the card: filled, empty, broken."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import startup, state
from app.views import overview
from bgt_core import checkpoint
from bgt_core.data.text import Tokenizer
from bgt_core.recipes.recipe import Recipe

Open = Callable[[str], AppTest]
Start = Callable[..., None]
Run = Callable[[AppTest], AppTest]
PAGES = ("overview", "latents", "generate", "similarity", "probing", "compare", "card")

SHIPPED = next(iter(startup.shipped()))


@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens_on_the_model_that_ships(start: Start, opened: Open, page: str) -> None:
    start()
    app = opened(page)
    assert app.title and not app.error


@pytest.mark.parametrize("name", ["sp", "bilingual-trans"])
def test_every_page_opens_on_a_model_without_language_latents(
    tiny: Callable[..., Recipe],
    tokenizer: Tokenizer,
    tmp_path: Path,
    start: Start,
    opened: Open,
    figures: Callable,
    name: str,
) -> None:
    recipe = tiny(name)
    checkpoint.save(tmp_path / name, recipe, recipe.build(tokenizer), tokenizer, step=7)
    log = {"kind": "valid", "step": 7, "steps": 7, "kl/semantic": 0.0, "retrieval/en-fr": 0.25}
    (tmp_path / name / "metrics.jsonl").write_text(json.dumps(log) + "\n", "utf-8")
    start("--model", tmp_path / name)
    apps = {page: opened(page) for page in PAGES}
    assert not any(app.error for app in apps.values())
    assert {"Translations found, en-fr": "25%"}.items() <= {m.label: m.value for m in apps["overview"].metric}.items()
    assert len(figures(apps["latents"])) == 1
    assert "no language latents" in apps["generate"].info[0].value


def test_a_model_of_one_language_and_latent_has_a_map_of_it(
    tiny: Callable[..., Recipe], tokenizer: Tokenizer, tmp_path: Path, start: Start, opened: Open, figures: Callable
) -> None:
    recipe = tiny("english-vae")
    checkpoint.save(tmp_path / "vae", recipe, recipe.build(tokenizer), tokenizer, step=7)
    start("--model", tmp_path / "vae")
    apps = {page: opened(page) for page in PAGES}
    assert not any(app.error for app in apps.values())
    assert len(figures(apps["latents"])) == 1 and not apps["latents"].table
    (text,) = (text.value for text in apps["overview"].markdown if "reads a sentence" in text.value)
    assert text.startswith("This model reads a sentence once.") and "all languages" not in text


def test_the_overview_tells_the_checkpoint(opened: Open, saved: Path) -> None:
    config = json.loads((saved / "config.json").read_text("utf-8"))
    app = opened("main")
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown["Languages"] == "English, French"
    assert shown["Training steps"] == str(config["step"])
    assert config["files"]["model.safetensors"].startswith(shown["Checkpoint"])
    assert not app.get("plotly_chart")  # this checkpoint has no log


@pytest.fixture
def with_card(saved: Path, tmp_path: Path) -> Path:
    """The checkpoint with a card and a log that continues after it."""
    folder = Path(shutil.copytree(saved, tmp_path / "model"))
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["card"] = {
        "scores": {"STS": {"semantic": 71.25, "language": 12.5}, "Retrieval": {"semantic": 93.75}},
        "training data": [{"name": "Tatoeba", "licence": "CC BY 2.0 FR"}],
        "fidelity": [{"written": "en", "manner of": "its own", "chrF": "66.4 [63.4, 69.4]"}],
        "limits": "short sentences",
    }
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    kl = {"kl/semantic": 12.0, "kl/en": 0.05, "kl/fr": 1.0}
    log = [{"kind": "valid", "step": step, "steps": 9, "elbo": -90.0 + step, **kl} for step in (2, 4, 9)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in log) + '{"kind": "val', "utf-8")
    return folder


def test_the_overview_draws_the_log_and_the_scores(start: Start, opened: Open, with_card: Path) -> None:
    start("--model", with_card)
    app = opened("main")
    shown = {metric.label: metric for metric in app.metric}
    assert shown["Training steps"].value == "7"  # the run continued after this checkpoint
    assert shown["ELBO, nats per pair"].value == "-86.0"
    assert [label for label, metric in shown.items() if metric.delta] == ["KL English, nats"]  # under 0.1 nats
    assert len(app.get("plotly_chart")) == 2
    assert app.table[0].value.loc["STS"].tolist() == ["71.2", "12.5"]
    assert app.table[0].value.loc["Retrieval"].tolist() == ["93.8", ""]


def test_the_card_tells_data_files_and_settings(start: Start, opened: Open, with_card: Path) -> None:
    start("--model", with_card)
    app = opened("card")
    everything = "\n".join(table.value.to_string() for table in (*app.dataframe, *app.table))
    config = json.loads((with_card / "config.json").read_text("utf-8"))
    assert "CC BY 2.0 FR" in everything and config["files"]["model.safetensors"] in everything
    assert "objective.elbo.warmup_steps" in everything and "torch" in everything
    assert "66.4 [63.4, 69.4]" in everything and "Fidelity" in [head.value for head in app.subheader]
    assert "short sentences" in [text.value for text in app.text]
    assert any("@inproceedings" in code.value for code in app.code)


def test_clearing_the_caches_loses_nothing(opened: Open, press: Callable) -> None:
    app = press(opened("card"), "Clear the caches")
    assert app.success and app.dataframe


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.model", "config.json"])
@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-9])])
def test_a_bad_checkpoint_is_named_and_the_app_lives_on(
    start: Start, opened: Open, run: Run, saved: Path, tmp_path: Path, name: str, damage: Callable[[Path], object]
) -> None:
    folder = Path(shutil.copytree(saved, tmp_path / "model"))
    damage(folder / name)
    start("--model", folder)
    app = opened("main")
    assert app.error
    (message,) = app.code
    assert str(folder) in message.value and (name in message.value or not (folder / name).exists())
    assert "Traceback" not in str(app)
    app.selectbox(key="ckpt").set_value(SHIPPED)  # the other model still opens
    assert run(app).metric and not app.error
    app.selectbox(key="ckpt").set_value("model")
    shutil.copytree(saved, folder, dirs_exist_ok=True)
    assert run(app).metric and not app.error


def test_an_empty_folder_of_models_says_the_way_out(start: Start, opened: Open, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        start("--model", path)
        app = opened("main")
        assert path.name in app.code[0].value and "--model" in app.caption[0].value
        assert SHIPPED in app.selectbox(key="ckpt").options


def test_a_folder_of_models_offers_each(start: Start, opened: Open, run: Run, saved: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        shutil.copytree(saved, tmp_path / name)
    start("--model", tmp_path)
    app = opened("main")
    assert app.selectbox(key="ckpt").options == ["first", "second", *startup.shipped()]
    app.selectbox(key="ckpt").set_value("second")
    run(app)
    assert app.session_state["ckpt"] == "second" and app.metric


@pytest.mark.parametrize("asked", ["../../etc/passwd", "<b>x</b>", ""])
def test_the_address_opens_no_file(opened: Open, run: Run, asked: str) -> None:
    app = opened("main")
    fresh = AppTest.from_file(app._script_path, default_timeout=60)
    fresh.query_params["ckpt"] = asked
    run(fresh)
    assert fresh.selectbox(key="ckpt").value == "model" and fresh.metric


def test_a_misspelt_option_is_explained(start: Start, opened: Open) -> None:
    start("--data", "pairs.tsv")
    app = opened("main")
    assert app.error and "en,fr=pairs.tsv" in app.code[0].value


def test_a_busy_model_is_no_crash(opened: Open, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object) -> None:
        with state.inference(), state.inference():
            pytest.fail("one request at a time")

    monkeypatch.setattr(state, "PATIENCE", 0.01)
    monkeypatch.setattr(overview, "page", busy)
    app = opened("main")
    assert "busy" in app.error[0].value and [button.label for button in app.button] == ["Try again"]

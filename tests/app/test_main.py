"""The shell, the first page and the card: filled, empty, broken."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import app as package
from app.core import startup, state
from app.sentence import page
from bgt_core import checkpoint
from bgt_core.data.text import Tokenizer
from bgt_core.recipes.recipe import Recipe

Open = Callable[[str], AppTest]
Start = Callable[..., None]
Run = Callable[[AppTest], AppTest]
PAGES = ("sentence", "maps", "rewrite", "similarity", "probes", "languages", "card")

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
    assert any("25.0%" in table.value.to_string() for table in apps["card"].table)
    assert len(figures(apps["maps"])) == 1
    assert "no language latents" in apps["rewrite"].info[0].value


def test_a_model_of_one_language_and_latent_has_a_map_of_it(
    tiny: Callable[..., Recipe], tokenizer: Tokenizer, tmp_path: Path, start: Start, opened: Open, figures: Callable
) -> None:
    recipe = tiny("english-vae")
    checkpoint.save(tmp_path / "vae", recipe, recipe.build(tokenizer), tokenizer, step=7)
    start("--model", tmp_path / "vae")
    apps = {page: opened(page) for page in PAGES}
    assert not any(app.error for app in apps.values())
    assert len(figures(apps["maps"])) == 1 and not apps["maps"].table
    (text,) = (html.proto.body for html in apps["sentence"].get("html") if "reads a sentence" in html.proto.body)
    assert "This model reads a sentence once:" in text


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
    assert run(app).text_input and not app.error
    app.selectbox(key="ckpt").set_value("model")
    shutil.copytree(saved, folder, dirs_exist_ok=True)
    assert run(app).text_input and not app.error


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
    assert app.session_state["ckpt"] == "second" and app.text_input


@pytest.mark.parametrize("asked", ["../../etc/passwd", "<b>x</b>", ""])
def test_the_address_opens_no_file(opened: Open, run: Run, asked: str) -> None:
    app = opened("main")
    fresh = AppTest.from_file(app._script_path, default_timeout=60)
    fresh.query_params["ckpt"] = asked
    run(fresh)
    assert fresh.selectbox(key="ckpt").value == "model" and fresh.text_input


def test_a_misspelt_option_is_explained(start: Start, opened: Open) -> None:
    start("--data", "pairs.tsv")
    app = opened("main")
    assert app.error and "en,fr=pairs.tsv" in app.code[0].value


def test_a_busy_model_is_no_crash(opened: Open, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object) -> None:
        with state.inference(), state.inference():
            pytest.fail("one request at a time")

    monkeypatch.setattr(state, "PATIENCE", 0.01)
    monkeypatch.setattr(page, "page", busy)
    app = opened("main")
    assert "busy" in app.warning[0].value and [button.label for button in app.button] == ["Try again"]


def test_the_apps_own_folder_hides_no_package(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit puts it on the path, where the page `probes` would be taken for the package."""
    folder = str(Path(package.__file__).parent)
    monkeypatch.syspath_prepend(folder)
    opened("main")
    assert folder not in sys.path and str(Path(folder).parent) in sys.path

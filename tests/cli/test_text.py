"""Test `bgt translate`, and `bgt data backtranslate`, which makes paraphrases by translating one column back."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bgt_core
from bgt_core.generation.generate import BeamTranslator
from bgt_core.grammar import Pair

Bgt = Callable[..., Any]


@pytest.fixture(scope="module")
def model(tsv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that translates French to English, trained for a few updates."""
    out = tmp_path_factory.mktemp("runs") / "fr-en"
    settings = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "ffn_dim": 24, "heads": 2, "vocab_size": 400}
    settings |= {"epochs": 1.0, "batch_tokens": 3_000, "valid_pairs": 20, "warmup_steps": 2, "learning_rate": 1e-2}
    bgt_core.train("translator", [f"en-fr={tsv}"], out, columns=["fr", "en"], overrides=settings, device="cpu")
    return out


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grammar: list[Pair]) -> Path:
    monkeypatch.chdir(tmp_path)
    pairs = [pair.texts for pair in grammar[:8]]
    Path("pairs.tsv").write_text("".join(f"{pair['en']}\t{pair['fr']}\n" for pair in pairs), encoding="utf-8")
    Path("text.fr").write_text("".join(f"{pair['fr']}\n" for pair in pairs) + "\n", encoding="utf-8")
    return tmp_path


SHORT = ("--device", "cpu", "--precision", "fp32", "--max-length", "30")


def test_a_file_is_translated_line_by_line(bgt: Bgt, here: Path, model: Path) -> None:
    lines = Path("text.fr").read_text("utf-8").split("\n")[:-1]
    translator = BeamTranslator(bgt_core.load(model, "cpu", "fp32"), beam=2, max_length=30)
    expected = [best[0].text if best else "" for best in translator.translate(lines)]
    assert any(expected) and expected[-1] == ""  # the last line is empty
    done = bgt("translate", "text.fr", "--model", model, "--beam", 2, *SHORT)
    assert (done.code, done.out, done.err) == (0, "".join(f"{line}\n" for line in expected), "")
    stdin = io.TextIOWrapper(io.BytesIO(Path("text.fr").read_bytes()))
    assert bgt("translate", "-", "--model", model, "--into", "en", "--beam", 2, *SHORT, stdin=stdin).out == done.out


def test_back_translations_are_those_of_the_model(bgt: Bgt, here: Path, model: Path) -> None:
    options = ("--langs", "en,fr", "--model", model, "--n-best", 6, "--out", "out.tsv", *SHORT)
    done = bgt("data", "backtranslate", "pairs.tsv", *options)
    rows = [line.split("\t") for line in Path("out.tsv").read_text("utf-8").splitlines()]
    assert f"{len(rows)} translations, {len({row for *_, row in rows})} sentences" in done.err
    pairs = [line.split("\t") for line in Path("pairs.tsv").read_text("utf-8").splitlines()]
    translator = BeamTranslator(bgt_core.load(model, "cpu", "fp32"), beam=6, count=6, max_length=30)
    for number in {int(row) for *_, row in rows}:
        of_row = [(reference, text, float(cost)) for reference, text, cost, row in rows if int(row) == number]
        english, french = pairs[number - 1]
        best = translator.translate([french])[0]
        assert [text for _, text, _ in of_row] == [each.text for each in best]
        assert [cost for *_, cost in of_row] == pytest.approx([each.cost for each in best], abs=1e-3)
        assert {reference for reference, *_ in of_row} == {english}
    again = bgt("data", "backtranslate", "pairs.tsv", *options)
    assert again.out == "out.tsv\n" and f"{len(rows)} translations" in again.err


BACK = "data backtranslate pairs.tsv --out out.tsv --langs en,fr"


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (f"{BACK} --into fr --model MODEL", 2, "translates fr to en, not en to fr"),
        (f"{BACK} --into de --model MODEL", 2, "--into de: expected one of --langs, en or fr"),
        (f"{BACK},de --model MODEL", 2, "--langs en,fr,de: expected two languages, as in en,fr"),
        (f"{BACK} --model MODEL --n-best 0", 2, "--n-best 0 must be at least 1"),
        (f"{BACK} --model MODEL --max-length 0", 2, "--max-length 0 must be at least 1"),
        (f"{BACK} --model MODEL --precision int8", 2, "precision 'int8': choose from auto, fp32, bf16"),
        (f"{BACK} --model SAVED", 2, "This model does not translate: use a model of `bgt train translator`"),
        ("generate --source a --style b --model MODEL", 2, "can't generate from its latents"),
        ("diagnose pairs.tsv --langs en,fr --model MODEL", 4, "neither a latent"),
    ],
)
def test_an_error_is_one_line(
    command: str, code: int, message: str, bgt: Bgt, here: Path, model: Path, saved: Path
) -> None:
    done = bgt(*({"MODEL": model, "SAVED": saved}.get(word, word) for word in command.split()))
    assert done.code == code and message in done.err, done
    assert done.err.startswith("bgt: ") and done.err.count("\n") == 1 and not done.out
    assert not Path("out.tsv").exists()

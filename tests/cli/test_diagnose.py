"""Test `bgt diagnose`: the tables, the JSON, the one-line errors, and which file of pairs it reads by default."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from bgt_core import checkpoint
from bgt_core.data.batching import validation
from bgt_core.data.store import Corpus, tokenise
from bgt_core.data.text import Tokenizer
from bgt_core.diagnose import diagnose
from bgt_core.grammar import Pair
from bgt_core.recipes import Recipe

Bgt = Callable[[str], tuple[int, str, str]]


@pytest.fixture
def bgt(bgt: Callable) -> Bgt:
    """bgt("pairs.tsv --model model"): run `bgt diagnose` with these arguments; return exit code, stdout and stderr."""
    return lambda arguments: bgt("diagnose", *arguments.split(), "--device", "cpu")


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved: Path, grammar: list[Pair], tsv: Path, tokenizer: Tokenizer
) -> Path:
    """A working folder with a checkpoint `model`, files of pairs, and a training run `run`."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(saved, "model")
    shutil.copytree(saved, "run/step-0000007")
    tokenise([tsv], ("en", "fr"), tokenizer, "run/data", min_tokens=2, valid_pairs=40, seed=1)
    rows = [tuple(pair.texts.values()) for pair in grammar[:30]]
    for name, chosen in {"pairs.tsv": rows, "one.tsv": rows[:1]}.items():
        Path(name).write_text("".join("\t".join(row) + "\n" for row in chosen), encoding="utf-8")
    Path("turned.tsv").write_text("".join("\t".join(row[::-1]) + "\n" for row in rows), encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("here")
def test_a_run_is_diagnosed_on_its_held_out_pairs(bgt: Bgt) -> None:
    code, out, err = bgt("--model run --samples 3 --seed 5 --limit 30 --json")
    assert code == 0, err
    document = json.loads(out)
    corpus = Corpus.open("run/data", "valid")
    assert len(corpus) >= 40
    model = checkpoint.load(Path("run")).model.eval()
    expected = asdict(diagnose(model, validation(corpus, 4_000, 30), torch.device("cpu"), 3, 5))
    assert document == {"schema": "bgt-diagnose/3", "samples": 3, "seed": 5, **expected}
    assert document["iwae_nll"]["nats"] < document["neg_elbo"]["nats"]


@pytest.mark.usefixtures("here")
def test_files_may_have_their_columns_in_any_order_and_pairs_left_out_are_counted(bgt: Bgt) -> None:
    code, out, err = bgt("pairs.tsv --model model --samples 2")
    assert code == 0, err
    latents, likelihoods = ([line.split("\t") for line in part.splitlines()] for part in out.split("\n\n"))
    assert latents[0] == ["latent", "units", "active", "KL", "information (≤ 3.40)", "aggregate"]
    assert [row[:2] for row in latents[1:]] == [["semantic", "12"], ["en", "6"], ["fr", "6"]]
    named = ["", "NLL at posterior means", "-ELBO", "importance-weighted NLL, 2 draws"]
    assert [row[0] for row in likelihoods] == named
    assert "30 pairs" in err and "left out" not in err
    turned = bgt("turned.tsv --langs fr,en --model model --samples 2")
    english = next(line for line in turned[1].splitlines() if line.startswith("en\t"))
    # if French is the first column, it is the anchor, which changes only the values of the semantic latent
    assert english.split("\t")[:4] == latents[2][:4]

    text, long = Path("pairs.tsv").read_text("utf-8"), " ".join(["dog"] * 200)
    Path("odd.tsv").write_text(f"{text}a\tb\n{long}\t{long}\n{long}\tun\nalone\n", "utf-8")
    code, again, err = bgt("odd.tsv --model model --samples 2")
    assert (code, again) == (0, out), err
    told = next(line for line in err.splitlines() if "left out" in line)
    assert re.fullmatch(
        r"4 of 34 pairs are left out: \d with a sentence of under 2 tokens, \d with .* over 100 tokens, 1 unreadable\.",
        told,
    )


@pytest.mark.usefixtures("here")
def test_a_model_without_a_prior_has_one_likelihood(
    bgt: Bgt, tiny: Callable[..., Recipe], tokenizer: Tokenizer
) -> None:
    recipe = tiny("english-ae")
    checkpoint.save(Path("points"), recipe, recipe.build(tokenizer), tokenizer, step=1)
    code, out, err = bgt("pairs.tsv --model points")
    assert code == 0, err
    latents, likelihoods = out.split("\n\n")
    assert latents.splitlines()[1].split("\t")[3:] == ["0.00 ± 0.00", "", ""]
    assert [row.split("\t")[0] for row in likelihoods.splitlines()] == ["", "NLL at posterior means"]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("--model model", 3, "give a FILE"),
        ("pairs.tsv --model model --langs en,de", 2, "--langs en,de: expected columns of the model, en,fr"),
        ("pairs.tsv --model model --limit 1", 2, "--limit 1 must be at least 2"),
        ("pairs.tsv --model model --samples 0", 2, "--samples 0 must be at least 1"),
        ("one.tsv --model model", 4, "1 pairs"),
    ],
)
def test_bad_input_is_one_line(bgt: Bgt, arguments: str, code: int, message: str) -> None:
    exit_code, out, err = bgt(arguments)
    assert (exit_code, out) == (code, "")
    assert message in err
    assert err.count("\n") == 1
    assert err.startswith("bgt: ")

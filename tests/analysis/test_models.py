"""Training data of the shipped models exclude test sentences; erasing the language makes the languages' means equal."""

import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import bgt_core
from analysis import models
from bgt_core import checkpoint
from bgt_core.data.text import Tokenizer
from bgt_core.grammar import Pair
from bgt_core.recipes.recipe import Recipe


def test_nothing_held_out_or_tested_on_is_trained_on(tmp_path: Path) -> None:
    numbers = [f"The {number} dogs sleep here." for number in range(1_000)]
    held = [text for text in numbers if models.is_held_out(text)]
    assert 1 <= len(held) <= 20
    pairs = [(text, f"Les {row} chiens dorment ici.") for row, text in enumerate(numbers)]
    pairs += [
        ("the 5 dogs sleep here!", "Les 5 chiens dorment ici"),  # a duplicate except for case and punctuation
        ("Dogs sleep.", pairs[numbers.index(held[0])][1]),  # this French sentence is in a held-out pair
        ("The test sentence is this one.", "La voilà."),
        ("I go.", "Je vais."),
        ("I am going.", "Je vais"),
    ]
    german = (
        "I sleep.\tIch schlafe.\nI see the red barn.\tIch sehe das Tor.\nI watch the red barn.\tIch sehe das Tor.\n"
    )
    english = "The test sentence is this one!\nA sentence without a translation.\nToo short here.\n"
    for name, text in {
        "parallel/en-fr.tatoeba.tsv.xz": "".join("\t".join(pair) + "\n" for pair in pairs),
        "parallel/en-de.tatoeba.tsv.xz": german,
        "mono/en.ewt.txt.xz": english,
        "sts/2014/a.tsv": "3.0\tthe TEST sentence is this one\tI go.\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lzma.compress(text.encode()) if path.suffix == ".xz" else text.encode())
    (tmp_path / "mixture").mkdir()
    (tmp_path / "rows.tsv").write_text("I go.\tJe vais.\tGo I.\n", "utf-8")
    with tarfile.open(tmp_path / "mixture" / "altered.tar.xz", "w:xz") as rows:
        rows.add(tmp_path / "rows.tsv", "./short/en-fr-altered_en.tsv")
    models.write_mixture(tmp_path, tmp_path / "out", ["fr", "de"])
    trained = (tmp_path / "out" / "short" / "en-fr.tsv").read_text("utf-8").splitlines()
    kept_out = (tmp_path / "out" / "held-out" / "en-fr.tsv").read_text("utf-8").splitlines()
    assert [line.split("\t")[0] for line in kept_out] == held
    assert len(trained) == 1_000 - len(held) + 2
    assert "I go.\tJe vais." in trained  # a test set contains "I go.", but sentences this short are kept
    assert (tmp_path / "out" / "short" / "en-fr-altered_en.tsv").read_text("utf-8") == "I go.\tJe vais.\tGo I.\n"
    alone = (tmp_path / "out" / "monolingual" / "en.tsv").read_text("utf-8")
    assert alone == "A sentence without a translation.\n"
    assert not [line for line in trained if line.startswith(("Dogs", "The test")) or line.endswith("!")]


def test_pairs_in_another_style_are_made_by_rules_and_found_among_paraphrases(tmp_path: Path) -> None:
    pairs = [("I'm late.", "Tu viens ?"), ("See you!", "Tu me manques."), ("See you!", "Vous me manquez.")]
    pairs += [("See you!", "Il me manque.")]  # a sentence without "tu" or "vous"
    models.write_style(tmp_path, pairs, "fr")
    read = {path.stem: path.read_text("utf-8").splitlines() for path in (tmp_path / "style").iterdir()}
    assert read["fr-fr2"] == [
        "Tu viens ?\tEst-ce que tu viens ?",
        "Tu viens ?\tViens-tu ?",
        "Tu me manques.\tVous me manquez.",
    ]
    assert read["en-en2.fr"] == ["I'm late.\tI am late."]
    assert set(read["en-fr"]) == {"I am late.\tTu viens ?", "I'm late.\tEst-ce que tu viens ?", "I'm late.\tViens-tu ?"}


def test_means_meet_and_no_other_weight_changes(
    tiny: Callable[..., Recipe],
    stirred: Callable[[torch.nn.Module], torch.nn.Module],
    tokenizer: Tokenizer,
    grammar: list[Pair],
    tmp_path: Path,
) -> None:
    torch.manual_seed(0)
    recipe, texts = tiny("bgt-bound"), [list(pair.texts.values()) for pair in grammar[:200]]
    checkpoint.save(tmp_path / "before", recipe, stirred(recipe.build(tokenizer)), tokenizer, step=3)
    file = tmp_path / "pairs.tsv"
    file.write_text("".join("\t".join(pair) + "\n" for pair in texts), "utf-8")
    models.erase_language(tmp_path / "before", tmp_path / "after", [f"en-fr={file}"])

    def distance(model: bgt_core.Embedder) -> float:
        """Return the distance of both languages' mean vectors, divided by the mean standard deviation of a unit."""
        english, french = (model.embed([pair[at] for pair in texts], lang=lang) for at, lang in enumerate(("en", "fr")))
        return float(np.linalg.norm(english.mean(0) - french.mean(0)) / english.std(0).mean())

    before, after = (bgt_core.load(tmp_path / name, "cpu", "fp32") for name in ("before", "after"))
    assert distance(after) < 1e-3 < 0.5 < distance(before)
    old, new = before.model.state_dict(), after.model.state_dict()
    changed = {name.rpartition(".")[2] for name in old if not torch.equal(old[name], new[name])}
    assert changed == {"means", "read", "directions"}


def test_style_is_removed_from_the_vectors_of_tokens_alone(
    tiny: Callable[..., Recipe],
    stirred: Callable[[torch.nn.Module], torch.nn.Module],
    tokenizer: Tokenizer,
    tmp_path: Path,
) -> None:
    torch.manual_seed(0)
    recipe = tiny("bgt-bound")
    checkpoint.save(tmp_path / "before", recipe, stirred(recipe.build(tokenizer)), tokenizer, step=3)
    pairs = [(f"Tu vois {what} {number}.", f"Vous vois {what} {number}.") for what in "abcd" for number in range(15)]
    (tmp_path / "pairs.tsv").write_text("".join("\t".join(pair) + "\n" for pair in pairs), "utf-8")
    models.erase_style(tmp_path / "before", tmp_path / "after", [f"fr-fr2={tmp_path / 'pairs.tsv'}"], directions=1)
    before, after = (bgt_core.load(tmp_path / name, "cpu", "fp32") for name in ("before", "after"))
    (name,) = [name for name in before.model.state_dict() if name.endswith("average.table.weight")]

    def distance(model: bgt_core.Embedder) -> float:
        """Return the distance of the sums of the token vectors of two sentences that differ in form of address."""
        tu, vous = (model.model.state_dict()[name][ids].sum(0) for ids in tokenizer.encode(pairs[0]))
        return float((tu - vous).norm())

    assert distance(after) < 1e-3 * distance(before)
    old, new = before.model.state_dict(), after.model.state_dict()
    changed = {name.split(".", 6)[-1] for name in old if not torch.equal(old[name], new[name])}
    assert changed == {"average.table.weight", "lexical.weight", "compose.weight"}

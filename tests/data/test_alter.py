"""Test `bgt data alter`, which changes what sentences mean: it adds or removes a negation, or exchanges two words."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from bgt_core.data.alter import exchanged, negated

PAIRS = [("The dog bit the man.", "Le chien a mordu l'homme."), ("Hello!", "Salut !"), ("Red wine, please.", "Du vin.")]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    (tmp_path / "pairs.tsv").write_text("".join(f"{first}\t{second}\n" for first, second in PAIRS))
    return tmp_path / "pairs.tsv"


def test_each_pair_gets_an_altered_sentence(pairs: Path, tmp_path: Path, bgt: Callable[..., tuple]) -> None:
    done = bgt("data", "alter", pairs, "--langs", "en,fr", "--of", "en", "--out", tmp_path / "out.tsv")
    assert done.code == 0, done.err
    first, second = [line.split("\t") for line in (tmp_path / "out.tsv").read_text().splitlines()]
    for row, pair in ((first, PAIRS[0]), (second, PAIRS[2])):
        assert row[:2] == [*pair] and row[2] != row[0]
        assert sorted(re.findall(r"\w+", row[2].lower())) == sorted(re.findall(r"\w+", row[0].lower()))
    card = json.loads((tmp_path / "out.tsv.json").read_text())
    assert (card["altered"], card["kinds"], card["dropped"]) == ("en", {"words": 2}, {"one word": 1})
    assert card["file"]["columns"] == ["en", "fr", "altered"] and card["file"]["rows"] == 2
    assert "words 2" in done.err


def test_what_cannot_be_altered_is_refused(pairs: Path, tmp_path: Path, bgt: Callable[..., tuple]) -> None:
    other = bgt("data", "alter", pairs, "--langs", "en,fr", "--of", "de", "--out", tmp_path / "out.tsv")
    assert other.code == 2 and "--of de: expected one of two different languages" in other.err
    (tmp_path / "short.tsv").write_text("Hello!\tSalut !\n")
    one = bgt("data", "alter", tmp_path / "short.tsv", "--langs", "en,fr", "--of", "en", "--out", tmp_path / "out.tsv")
    assert one.code == 4 and "no sentence in en has two different words" in one.err
    assert not list(tmp_path.glob("out*"))


def test_two_words_change_places_and_marks_stay() -> None:
    seen = {exchanged("Er kam, sah!", Random(seed)) for seed in range(30)}
    assert seen == {"kam Er, sah!", "sah kam, Er!", "Er sah, kam!"}
    assert exchanged(" ".join(f"w{at}" for at in range(20_000)), Random(0))
    assert not any(exchanged(text, Random(0)) for text in ("Hallo", "nein nein, Nein!", "", "?! ..."))


@pytest.mark.parametrize(
    ("lang", "text", "other"),
    [
        ("en", "I have not seen her.", "I have seen her."), ("en", "She isn't here.", "She is here."),
        ("en", "You are late.", "You are not late."), ("en", "Sit down!", ""), ("en", "Yes, they did.", ""),
        ("fr", "Je ne sais pas.", "Je sais."), ("fr", "Tom est malade.", "Tom n'est pas malade."),
        ("fr", "Viens !", ""),
        ("de", "Er ist nicht da.", ""),
    ],
)  # fmt: skip
def test_a_plain_negation_is_dropped_or_added(lang: str, text: str, other: str) -> None:
    assert negated(text, lang) == other

"""The task of style transfer computes the right scores for fake models with known outputs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from scipy.stats import binomtest

from bgt_core import BgtError
from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.evaluation.comparison import Result
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.transfer import Transfer
from tests.close import assert_close
from tests.evaluation.tasks.test_fidelity import Rewrite, Stub, copies

TU, VOUS, NEITHER, SHOUTED = 24, 160, 10, 5
FRENCH = [
    *(f"Tu as {number} chats." for number in range(TU)),
    *(f"Vous avez {number} chats." for number in range(VOUS)),
    *(f"Il a {number} chats." for number in range(NEITHER)),
    *(f"Assez de chats, {number} !" for number in range(SHOUTED)),
]
COLUMNS = {"en": [f"You have {number} cats." for number in range(len(FRENCH))], "fr": FRENCH}


class Recorder(Stub):
    """A model that records the source and the style sentence of each text it generates."""

    def __init__(self, rewrite: Rewrite):
        super().__init__(rewrite)
        self.pairs: list[tuple[str, str]] = []

    def write(self, latents: Mapping[str, np.ndarray], *, lang: str) -> list[str]:
        rows = zip(latents[SEMANTIC][:, 0], latents[LANGUAGE][:, 0], strict=True)
        self.pairs += [(self.texts[int(source)], self.texts[int(style)]) for source, style in rows]
        return super().write(latents, lang=lang)


def measured(stub: Stub, columns: Mapping[str, Sequence[str]] = COLUMNS, limit: int = 150, seed: int = 0) -> Result:
    return evaluate(Transfer("en,fr", limit=limit), {"model": stub}, columns, resamples=100, seed=seed)


def row(result: Result, *key: str) -> dict[str, float]:
    return {name.measure: cell if isinstance(cell, float) else cell.value for name, (cell,) in result.scores.items()
            if name[:4] == key}  # fmt: skip


def test_sources_show_another_value_and_style_sentences_the_wanted_one() -> None:
    stub = Recorder(copies)
    result = measured(stub)
    asked = {key[:4]: key.sentences for key in result.scores}
    assert asked == {
        ("fr", source, "address", value): sources
        for source in COLUMNS
        for value, sources in (("tu", 150), ("vous", TU))
    } | {("fr", source, "sentence-type", "exclamation"): 150 for source in COLUMNS}
    assert "fr sentence-type statement (5)" in result.warnings[0]
    assert "en contraction (0)" in result.warnings[0] and "fr question-form (0)" in result.warnings[0]
    assert "politeness" not in result.warnings[0]  # neither language has rules for politeness
    own = [(source, style) for source, style in stub.pairs if source in FRENCH]
    assert len(own) == 150 + TU + 150
    assert {(source.split()[0], style.split()[0]) for source, style in own} >= {("Vous", "Tu"), ("Tu", "Vous")}
    for source, style in own:
        assert {source.split()[0], style.split()[0]} == {"Tu", "Vous"} or (source[-1], style[-1]) == (".", "!")
    assert len({style for source, style in own if source[:2] == "Tu"}) > TU / 2  # style sentences are drawn at random
    vous = [source for source, style in own if source.startswith("Vous") and style.startswith("Tu")]
    assert vous == [FRENCH[TU + number * VOUS // 150] for number in range(150)]
    assert [key.sentences for key in measured(Stub(copies), limit=20).scores] == [20] * 18


def test_a_copied_source_scores_0_and_a_copied_style_sentence_100() -> None:
    for value in ("tu", "vous"):
        kept = row(measured(Stub(copies)), "fr", "fr", "address", value)
        assert (kept["taken over %"], kept["chrF"]) == (0, pytest.approx(100))
        taken = row(measured(Stub(lambda source, style, lang: style.lower())), "fr", "en", "address", value)
        assert taken["taken over %"] == 100 and taken["chrF"] < 100
    assert row(measured(Stub(copies)), "fr", "en", "sentence-type", "exclamation")["sources"] == 150


def test_scores_are_those_of_the_outputs() -> None:
    def swap(source: str, style: str, lang: str) -> str:
        """Fake generator: if the number in the source is even, replace "Tu as" by "Vous avez"; else copy the source."""
        return source.replace("Tu as", "Vous avez") if int(source.split()[2]) % 2 == 0 else source

    result = measured(Stub(swap))
    scores = {key.measure: cell for key, (cell,) in result.scores.items() if key[:4] == ("fr", "fr", "address", "vous")}
    assert scores["taken over %"].value == 50
    interval = binomtest(TU // 2, TU).proportion_ci(0.95, "wilson")
    assert_close((scores["taken over %"].low, scores["taken over %"].high), (100 * interval.low, 100 * interval.high))
    outputs = [swap(text, "", "fr") for text in FRENCH[:TU]]
    expected = sacrebleu.CHRF(lowercase=True).corpus_score(outputs, [FRENCH[:TU]]).score
    assert_close(scores["chrF"].value, expected)
    assert scores["chrF"].low < expected < scores["chrF"].high
    assert_close(
        row(measured(Stub(lambda source, style, lang: source.upper())), "fr", "fr", "address", "tu")["chrF"], 100
    )


def test_all_pairs_of_a_file_are_read(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("".join(f"{one}\t{two}\n" for one, two in zip(*COLUMNS.values(), strict=True)), "utf-8")
    assert Transfer("en,fr").load([file], seed=0) == {lang: tuple(texts) for lang, texts in COLUMNS.items()}
    with pytest.raises(BgtError, match="expected two languages"):
        Transfer("en,en").load([file], seed=0)


def test_too_few_sources_and_models_without_a_language_latent_are_refused() -> None:
    with pytest.raises(BgtError, match=r"fewer than 20 sources have another value than .*fr address tu \(3\)"):
        measured(Stub(copies), {"en": ["You."] * 6, "fr": ["Tu es."] * 3 + ["Vous êtes."] * 3})
    with pytest.raises(BgtError, match="model: has no language latent"):
        measured(Stub(copies, [SEMANTIC]))

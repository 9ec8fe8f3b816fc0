"""A translator learns a task that needs attention: translate each word, and reverse the order of the words."""

import random
from pathlib import Path

import pytest

import bgt_core
from bgt_core.evaluation.writing import score_translations
from bgt_core.generation.generate import BeamTranslator

pytestmark = pytest.mark.slow

WORDS = [consonant + vowel for consonant in "bdfg" for vowel in "aeiou"]
SETTINGS = {
    "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "ffn_dim": 64, "heads": 2, "dropout": 0.0,
    "label_smoothing": 0.0, "vocab_size": 50, "epochs": 6.0, "batch_tokens": 600, "learning_rate": 5e-3,
    "warmup_steps": 80, "cooldown": 0.3, "valid_pairs": 50, "precision": "fp32",
}  # fmt: skip


def test_it_learns_to_translate_unseen_sentences(tmp_path: Path) -> None:
    draw, rows = random.Random(0), {}
    while len(rows) < 6_000:
        source = [draw.randrange(len(WORDS)) for _ in range(draw.randint(2, 6))]
        rows[" ".join(WORDS[word] for word in source)] = " ".join(f"x{WORDS[word]}" for word in reversed(source))
    seen = list(rows.items())
    seen, unseen = seen[:-100], seen[-100:]
    text = tmp_path / "pairs.tsv"
    text.write_text("".join(f"{target}\t{source}\n" for source, target in seen), encoding="utf-8")
    folder = bgt_core.train(
        "translator", [f"en-fr={text}"], tmp_path / "run", columns=["fr", "en"], overrides=SETTINGS, device="cpu"
    )
    translator = BeamTranslator(bgt_core.load(folder, "cpu", "fp32"), beam=4, count=2)
    sources, references = map(list, zip(*unseen, strict=True))
    translations = translator.translate(sources)
    written = [best.text for best, *_ in translations]
    assert sum(text == reference for text, reference in zip(written, references, strict=True)) > 80
    scores = score_translations(written, references, sources, lang="en", resamples=100)
    assert all(each.score.low > 80 and each.copied < 30 for each in scores)
    assert all(best.cost < second.cost for best, second in translations)
    sure = [best.cost for (best, _), reference in zip(translations, references, strict=True) if best.text == reference]
    wrong = [best.cost for (best, _), reference in zip(translations, references, strict=True) if best.text != reference]
    # A translation's cost measures uncertainty: wrong translations must cost more, on average, than correct ones.
    assert max(sure) < 1 and (not wrong or sum(sure) / len(sure) < sum(wrong) / len(wrong))

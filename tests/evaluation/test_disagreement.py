"""Two encoders on the same pairs: ranks and effects of words equal what is counted one by one."""

from __future__ import annotations

import numpy as np
import pytest

from bgt_core.contracts import SentenceEncoder
from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import UsageError
from bgt_core.evaluation.disagreement import disagreement, word_effects
from bgt_core.grammar import pairs
from bgt_core.vectors.compare import ROUNDING, cosines
from tests.close import assert_close

LEFT, RIGHT = zip(*((pair.texts["en"], pair.texts["fr"]) for pair in pairs(40)), strict=True)
LANGS = ("en", "fr")


def counts(letters: str) -> ExternalEncoder:
    """An encoder that counts some letters, one more of each in French."""

    def embed(sentences: list[str], lang: str, latent: str) -> np.ndarray:
        return np.array([[text.lower().count(letter) + (lang == "fr") for letter in letters] for text in sentences]) + 1

    return ExternalEncoder(letters, embed)


ENCODERS: dict[str, SentenceEncoder] = {"vowels": counts("aeiou"), "consonants": counts("rstln")}


def cosine(encoder: SentenceEncoder, left: str, right: str) -> float:
    return float(cosines(encoder.embed([left], lang="en"), encoder.embed([right], lang="fr"))[0])


def test_pairs_are_ranked_by_the_gap_of_the_shares_of_pairs_below_them() -> None:
    left, right = [*LEFT, LEFT[0]], [*RIGHT, RIGHT[0]]  # with a tie
    made = disagreement(ENCODERS, left, right, LANGS)
    for column, encoder in enumerate(ENCODERS.values()):
        similarities = [cosine(encoder, *pair) for pair in zip(left, right, strict=True)]
        assert_close(made.similarities[:, column], similarities, 2e-6)  # six decimals
        for row, one in enumerate(made.similarities[:, column]):
            others = np.delete(made.similarities[:, column], row)
            assert made.ranks[row, column] == pytest.approx(np.mean((others < one) + 0.5 * (others == one)))
    gaps = made.ranks[:, 1] - made.ranks[:, 0]
    assert (np.diff(np.abs(gaps)[made.order]) <= 0).all() and sorted(made.order) == list(range(len(left)))
    np.testing.assert_array_equal(made.gaps, gaps)


def test_a_scale_that_another_encoder_uses_otherwise_is_no_disagreement() -> None:
    """The same order of pairs, from 0.9 to 1 instead of 0 to 1."""
    first = counts("aeiou")
    squeezed = ExternalEncoder(
        "squeezed", lambda texts, lang, latent: first.embed(texts, lang=lang),
        similarity_pairwise=lambda left, right: 0.9 + 0.1 * cosines(left, right),
    )  # fmt: skip
    made = disagreement({"one": first, "other": squeezed}, LEFT, RIGHT, LANGS)
    assert not np.allclose(*made.similarities.T)
    assert_close(made.gaps, 0)


def test_pairs_that_are_equally_similar_have_one_rank_whatever_their_last_bits() -> None:
    """Identical sentences have a cosine of 1 by any encoder, but for rounding; half of the pairs are such."""
    alike, noise = [f"{text} again" for text in LEFT], np.random.default_rng(0)
    encoders = {
        name: ExternalEncoder(
            name, lambda texts, lang, latent: counts("aeiou").embed(texts, lang=lang),
            similarity_pairwise=lambda left, right: cosines(left, right) - noise.uniform(0, 2e-7, len(left)),
        )
        for name in ("one", "other")
    }  # fmt: skip
    made = disagreement(encoders, [*alike, *LEFT], [*alike, *RIGHT], ("en", "en"))
    assert (made.ranks[: len(alike)] == made.ranks[0, 0]).all() and (made.gaps == 0).all()


def test_a_word_adds_what_the_pair_loses_without_it() -> None:
    left, right = "The cat sees us.", "Le chat nous voit !"
    made = word_effects(ENCODERS, left, right, LANGS)
    assert [(effect.side, effect.word) for effect in made] == [
        *((0, word) for word in ("The", "cat", "sees", "us", ".")),
        *((1, word) for word in ("Le", "chat", "nous", "voit", "!")),
    ]
    for column, encoder in enumerate(ENCODERS.values()):
        whole = cosine(encoder, left, right)
        assert_close(made[1].effects[column], whole - cosine(encoder, "The sees us.", right), scale=1, tolerance=3e-6)
        assert_close(made[7].effects[column], whole - cosine(encoder, left, "Le chat voit !"), scale=1, tolerance=3e-6)


def test_the_only_word_of_a_sentence_stays() -> None:
    assert [effect.word for effect in word_effects(ENCODERS, "Go", "Pars !", LANGS)] == ["Pars", "!"]
    assert word_effects(ENCODERS, "Go", "Pars", LANGS) == []


def test_texts_without_a_word_are_few_at_a_time() -> None:
    seen: list[int] = []

    def embed(texts: list[str], lang: str, latent: str) -> np.ndarray:
        seen.append(sum(map(len, texts)))
        return ENCODERS["vowels"].embed(texts, lang=lang)

    text = " ".join(["mot" * 100] * 299 + ["ami"])
    made = word_effects({"seen": ExternalEncoder("seen", embed)}, text, "Le chat", LANGS)
    assert max(seen) < 40 * len(text)
    whole, shorter = (cosine(ENCODERS["vowels"], each, "Le chat") for each in (text, text[:-4]))
    assert len(made) == 302 and abs(made[299].effects[0] - (whole - shorter)) <= ROUNDING
    for left, right in ((text + " !", "Le chat"), ("Go", text + " !"), ("😀" * 301, "Go")):
        with pytest.raises(UsageError, match="may have 300 words and marks at most; this one has 301"):
            word_effects(ENCODERS, left, right, LANGS)


def test_one_encoder_or_one_pair_has_nothing_to_disagree_about() -> None:
    with pytest.raises(UsageError, match="takes two encoders, not 1"):
        disagreement({"vowels": ENCODERS["vowels"]}, LEFT, RIGHT, LANGS)
    with pytest.raises(UsageError, match="1 pairs: ranks need at least 2"):
        disagreement(ENCODERS, LEFT[:1], RIGHT[:1], LANGS)


def test_a_string_is_one_sentence_and_sides_are_pairs() -> None:
    with pytest.raises(UsageError, match="1 pairs: ranks need at least 2"):
        disagreement(ENCODERS, "abc", "abd", LANGS)
    with pytest.raises(UsageError, match="left has 2 sentences, right 4; expected pairs"):
        disagreement(ENCODERS, LEFT[:2], RIGHT[:4], ("en", "en"))
    with pytest.raises(UsageError, match="right row 2 of 2 is of type NoneType"):
        disagreement(ENCODERS, LEFT[:2], ["a", None], LANGS)
    with pytest.raises(UsageError, match=r"langs en: expected two, as in \('en', 'fr'\)"):
        disagreement(ENCODERS, LEFT, RIGHT, "en")

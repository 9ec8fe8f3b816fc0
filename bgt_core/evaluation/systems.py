"""The systems of an evaluation, each a latent of an encoder; and sentence pairs on which two encoders disagree."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bgt_core.contracts import LANGUAGE, SEMANTIC, SentenceEncoder
from bgt_core.data.columns import known_lang
from bgt_core.data.text import sentence_list, without
from bgt_core.errors import BgtError, DataError, UsageError
from bgt_core.vectors.arrays import matrix, numbers, rounded

PAIRS = 8_192  # maximum number of sentence pairs embedded at once, which limits memory


@dataclass(frozen=True, eq=False)
class System:
    """An encoder, and the latent of this encoder that is evaluated. Error messages start with the system's name."""

    name: str
    encoder: SentenceEncoder
    latent: str = SEMANTIC

    def embed(self, sentences: Sequence[str], lang: str) -> np.ndarray:
        """Embed N sentences, but equal sentences only once: (N, D) in float32 or float64.

        Raises DataError unless the encoder returns one row of finite numbers for each distinct sentence.
        """
        sentences = sentence_list(sentences)
        rows = {sentence: row for row, sentence in enumerate(dict.fromkeys(sentences))}
        distinct = list(rows)
        try:
            vectors = self.encoder.embed(distinct, lang=lang, latent=self.latent)
        except BgtError as error:
            raise type(error)(f"{self.name}: {error}") from None
        vectors = matrix(vectors, self.name, (len(distinct), "D"), texts=distinct, dtype=None)
        return vectors.astype(np.result_type(vectors, np.float32), copy=False)[[rows[each] for each in sentences]]

    def similarities(self, left: Sequence[str], right: Sequence[str], left_lang: str, right_lang: str) -> np.ndarray:
        """Compute the similarity of left sentence i and right sentence i, rounded by `rounded`: (N,) float64.

        A string counts as one sentence. Raises UsageError for different numbers of sentences, DataError for a
        similarity that is not finite.
        """
        left, right = sentence_list(left, "left"), sentence_list(right, "right")
        if len(left) != len(right):
            raise UsageError(f"has {len(left)} sentences, right {len(right)}; expected equal counts.", parameter="left")
        parts = []
        for start in range(0, len(left), PAIRS):
            sides = left[start : start + PAIRS], right[start : start + PAIRS]
            if left_lang == right_lang:
                vectors = np.split(self.embed([*sides[0], *sides[1]], left_lang), 2)
            else:
                vectors = [self.embed(sides[0], left_lang), self.embed(sides[1], right_lang)]
            self.check_widths(*vectors)
            given = self.encoder.similarity_pairwise(*vectors)
            parts.append(numbers(given, f"{self.name}, similarity_pairwise", (len(sides[0]),)))
        similarity = np.concatenate(parts)
        if not (finite := np.isfinite(similarity)).all():
            row = int(finite.argmin())
            pair = f"'{left[row][:60]}' and '{right[row][:60]}'"
            raise DataError(f"{self.name}: the similarity of {pair} is {similarity[row]}; expected a finite number.")
        return rounded(similarity)

    def check_widths(self, left: np.ndarray, right: np.ndarray) -> None:
        if left.shape[1] != right.shape[1]:
            raise DataError(
                f"{self.name}: vectors of {left.shape[1]} and {right.shape[1]} units can't be compared; "
                "expected the same width in both languages."
            )


def systems(
    encoders: Mapping[str, SentenceEncoder],
    langs: Iterable[str],
    latent: str | None = None,
    *,
    across: bool = False,
    reserved: Collection[str] = (),
) -> list[System]:
    """Make a system from each latent of each encoder, or only from `latent`, without embedding sentences.

    A system has the name of its encoder, followed by the name of the latent if the encoder has several latents.
    `across` means that sentences of different languages are compared, so language latents are left out. Raises
    UsageError if an encoder lacks the latent or a language, or if a name occurs twice or is in `reserved`, the names of
    the task's own systems.
    """
    named: dict[str, System] = {}
    for name, encoder in encoders.items():
        if latent and latent not in encoder.latents:
            raise UsageError(f"{latent}: {name} has the latents {', '.join(encoder.latents)}.", parameter="latent")
        for lang in langs:
            known_lang(lang, encoder.langs, name)
        if across and latent == LANGUAGE:
            raise UsageError(
                f"{name}: language latents are not comparable across languages; compare the semantic latent."
            )
        for each in [latent] if latent else encoder.latents:
            if across and each == LANGUAGE:
                continue
            row = f"{name} {each}" if len(encoder.latents) > 1 else name
            if row in named or row in reserved:
                raise UsageError(f"Two systems are named '{row}'; rename one of the models.")
            named[row] = System(row, encoder, each)
    return list(named.values())


# The following functions find sentence pairs on whose similarity two encoders disagree, and the effect of each word.


class Disagreement(NamedTuple):
    """The similarities of N sentence pairs by two encoders; each encoder has one column."""

    similarities: np.ndarray  # (N, 2), rounded to six decimals
    ranks: np.ndarray  # (N, 2): the share of the other pairs that are less similar, from 0 to 1; ties count half
    gaps: np.ndarray  # (N,): the second encoder's rank minus the first encoder's, from -1 to 1
    order: np.ndarray  # (N,): the rows in the order of their absolute gaps, the largest first


def disagreement(
    encoders: Mapping[str, SentenceEncoder], left: Sequence[str], right: Sequence[str], langs: tuple[str, str]
) -> Disagreement:
    """Rank N pairs of sentences by how much two encoders disagree about their similarity.

    The encoders are compared by ranks, because their similarities may have different scales. Raises UsageError for
    fewer than two pairs.
    """
    if len(encoders) != 2:
        raise UsageError(f"must name two encoders (got {len(encoders)}).", parameter="model")
    if isinstance(langs, str) or len(langs) != 2:
        raise UsageError(f"{langs}: expected two languages, as in ('en', 'fr').", parameter="langs")
    left, right = sentence_list(left, "left"), sentence_list(right, "right")
    if len(left) < 2:
        raise UsageError(f"{len(left)} pairs: expected 2 or more, because the pairs are ranked.", parameter="data")
    from scipy.stats import rankdata  # slow to import

    by_encoder = [System(name, encoder).similarities(left, right, *langs) for name, encoder in encoders.items()]
    ranks = [(rankdata(similarities) - 1) / (len(left) - 1) for similarities in by_encoder]
    gaps = ranks[1] - ranks[0]
    return Disagreement(np.stack(by_encoder, 1), np.stack(ranks, 1), gaps, np.argsort(-np.abs(gaps), kind="stable"))


def word_effects(
    encoder: SentenceEncoder, text: str, lang: str, other: np.ndarray, latent: str = SEMANTIC
) -> np.ndarray:
    """Measure how much each word and mark of a text, (W,), adds to the similarity of its latent and a vector, `other`
    (D,): the fall of the similarity if the word is left out. `embedder.word_gradients` measures it by gradients."""
    vectors = encoder.embed([text, *without(text, lang)], lang=lang, latent=latent)
    whole, *parts = encoder.similarity(vectors, other[None])[:, 0]
    return whole - np.array(parts)

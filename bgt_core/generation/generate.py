"""Generate sentences with the meaning of one sentence and the style of another, or translate sentences.

`generate` embeds the texts that a beam search finds, and returns the text whose latents are most similar to those of
the two sentences. `candidates` returns all texts found. `BeamTranslator` translates without latents, with a model of
`bgt train translator`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import cast

import numpy as np
import torch

from bgt_core.backend import autocast
from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC, CorrectingModel, Prediction, Tokens, TranslationModel
from bgt_core.data.columns import known_lang, matching
from bgt_core.data.parallel import Translation
from bgt_core.data.text import normalise, sentence_list
from bgt_core.embedder import Embedder
from bgt_core.errors import UsageError, check_least
from bgt_core.generation.options import DEFAULT_SEARCH, Beam, Sample, Search
from bgt_core.generation.search import AT_ONCE, Context, Report, decode, decoder_input, generative, n_best, quiet
from bgt_core.nets.output import SentencePrediction
from bgt_core.vectors.arrays import matrix

# The best weights for reranking, of all pairs from (0.25, 0.5, 1) and (0, 0.1, 0.2, 0.3, 0.5, 1). With reranking, the
# latents of the generated text are closer to both given latents, and chrF is higher. With a likelihood weight of 0,
# reranking prefers ungrammatical sentences if the style is taken from another sentence.
SECOND_WEIGHT, LIKELIHOOD_WEIGHT = 0.5, 0.3
BATCH_TOKENS = 4_096  # maximum number of source tokens in a batch, with padding; limits memory


def generate(
    bgt: Embedder,
    sources: Sequence[str],
    styles: Sequence[str],
    *,
    lang: str,
    source_lang: str | None = None,
    search: Search = DEFAULT_SEARCH,
    rerank: bool = True,
    seed: int = 0,
    max_length: int = 60,
) -> list[str]:
    """Generate N sentences. Sentence n has the meaning of source n and the style of style sentence n.

    Args:
        bgt: An embedder whose model has a decoder and a latent for style ("language" or "syntactic").
        sources, styles: N sources, and N style sentences.
        lang: Language of the styles, and of the output.
        source_lang: Language of the sources, by default `lang`.
        search: A `Beam` or a `Sample`.
        rerank: Whether to return the text with latents most similar to the decoded ones, not the most probable text.
        seed: Seed of a `Sample`; the same seed gives the same text.
        max_length: Maximum number of tokens of an output.

    Returns:
        N sentences.

    Raises:
        UsageError: `sources` and `styles` differ in length, or the model lacks the language, the latent or a decoder.

    >>> generate(bgt_core.load(), ["The old man sees the red car."], ["Is it late?"], lang="en")
    ['the old man sees the red car?']
    """
    latents = exchanged(bgt, sources, styles, lang, source_lang or lang)
    if not rerank:
        return decode(bgt, latents, lang=lang, search=search, seed=seed, max_length=max_length)
    ranked = candidates(bgt, latents, lang=lang, search=search, seed=seed, max_length=max_length)
    return [best.text for best, *_ in ranked]


def exchanged(
    bgt: Embedder, sources: Sequence[str], styles: Sequence[str], lang: str, source_lang: str
) -> dict[str, np.ndarray]:
    """Return the latents that `generate` decodes, {name: (N, L)}: semantic vectors of N sources, and vectors of N style
    sentences in the model's latent for style."""
    second = style_latent(bgt)
    sources, styles = sentence_list(sources), sentence_list(styles)
    if len(sources) != len(styles):
        raise UsageError(f"{len(sources)} sources but {len(styles)} styles; each source needs one style.")
    return {
        second: bgt.embed(styles, lang=lang, latent=second),
        SEMANTIC: bgt.embed(sources, lang=source_lang, latent=SEMANTIC),
    }


def style_latent(bgt: Embedder) -> str:
    """Return the name of the model's latent for style; UsageError for a model without such a latent."""
    second = next((latent for latent in (LANGUAGE, SYNTACTIC) if latent in bgt.latents), None)
    if second is None:
        raise UsageError("This model has no latent for style: use a model of the recipe `bgt`, `bgt-small` or `vgvae`.")
    return second


def from_vectors(
    bgt: Embedder,
    vectors: np.ndarray,
    *,
    lang: str,
    style: str | None = None,
    search: Search = DEFAULT_SEARCH,
    rerank: bool = False,
    corrections: int = 0,
    seed: int = 0,
    max_length: int = 60,
) -> list[list[str]]:
    """Generate sentences from semantic vectors.

    Args:
        bgt: An embedder whose model has a decoder.
        vectors: Semantic vectors of N sentences, (N, D), in any form that `vectors.arrays` accepts. A writer (a
            model that generates text from another encoder's vectors) needs vectors of this encoder.
        lang: Language of the output.
        style: Sentence whose language latent is used; by default, the mean of the latent's prior.
        search: A `Beam` or a `Sample`.
        rerank: Whether to rank the texts of the beam by the cosine of their vectors with the given vector.
        corrections: Number of rounds in which a writer that was trained with drafts corrects the best text so far. With
            at least one round, the texts are reranked even if `rerank` is False.
        seed: Seed of a `Sample`.
        max_length: Maximum number of tokens of a text.

    Returns:
        For each vector, a list: the distinct texts of the beam, the best first; or the only text of a `Sample`.

    Raises:
        UsageError: The model lacks the language or a decoder, or does not support the style or the corrections.
        DataError: The vectors have another width than the semantic latent, or are not finite numbers.
    """
    lang = known_lang(lang, bgt.langs, "this model")
    model, width = generative(bgt), bgt.width(lang, SEMANTIC)
    vectors = matrix(vectors, "vectors", ("N", width))
    latents = {SEMANTIC: vectors}
    for latent in bgt.latents:
        if latent != SEMANTIC:
            zeros = np.zeros((len(vectors), bgt.width(lang, latent)), np.float32)
            mean = model.prior_mean(latent, torch.from_numpy(zeros))
            latents[latent] = mean.cpu().numpy()
    if style is not None:
        second = style_latent(bgt)
        latents[second] = np.repeat(bgt.embed([style], lang=lang, latent=second), len(vectors), axis=0)
    if rerank or corrections:
        ranked = candidates(
            bgt, latents, lang=lang, search=search, second_weight=0.0, likelihood_weight=0.0, corrections=corrections,
            seed=seed, max_length=max_length,
        )  # fmt: skip
        return [[each.text for each in of_row] for of_row in ranked]
    return [list(of_row) for of_row in searched(bgt, latents, lang, search, seed, max_length)]


@dataclass(frozen=True)
class Candidate:
    """A sentence generated from latents, with its scores."""

    text: str
    kept: Mapping[str, float]  # latent -> similarity of the sentence's vector to the given vector
    score: float


def candidates(
    bgt: Embedder,
    latents: Mapping[str, np.ndarray],
    *,
    lang: str,
    search: Search = DEFAULT_SEARCH,
    rerank: bool = True,
    second_weight: float = SECOND_WEIGHT,
    likelihood_weight: float = LIKELIHOOD_WEIGHT,
    corrections: int = 0,
    seed: int = 0,
    max_length: int = 60,
    report: Report = quiet,
) -> list[list[Candidate]]:
    """Generate candidate texts from each of N rows of latents, {name: (N, L)}. Raises the errors of `decode`.

    The candidates are the distinct texts of a beam search, or one text from sampling. With `rerank`, the text with the
    highest score comes first; otherwise the most probable text. The score of a text is the similarity of its semantic
    vector to the given vector, plus `second_weight` times the similarity in the other latent (not computed if the
    weight is 0), plus `likelihood_weight` times the log-probability of the text in nats per token. In each of
    `corrections` further rounds, a writer decodes again with the best text so far as a draft, and the new texts become
    candidates too.
    """
    latents = {name: matrix(of, name) for name, of in latents.items()}
    lang = known_lang(lang, bgt.langs, "this model")
    if isinstance(search, Sample) and corrections:
        raise UsageError(f"{corrections}: works only with beam search, not with sampling.", parameter="corrections")
    texts = searched(bgt, latents, lang, search, seed, max_length, report)
    by_score = attrgetter("score")
    weights = {latent: 1.0 if latent == SEMANTIC else second_weight for latent in latents}
    ranked = scored(bgt, texts, latents, lang, weights, likelihood_weight)
    for _ in range(corrections):
        best = [max(of_row, key=by_score).text for of_row in ranked]
        again = hypotheses(bgt, drafted(bgt, latents, best, lang), lang, cast(Beam, search), max_length, report)
        seen = [{each.text for each in of_row} for of_row in ranked]
        new = [
            {text: mean for text, mean in of_row.items() if text not in known}
            for of_row, known in zip(again, seen, strict=True)
        ]
        for of_row, more in zip(ranked, scored(bgt, new, latents, lang, weights, likelihood_weight), strict=True):
            of_row += more
    return [sorted(of_row, key=by_score, reverse=True) for of_row in ranked] if rerank else ranked


def searched(
    bgt: Embedder,
    latents: Mapping[str, np.ndarray],
    lang: str,
    search: Search,
    seed: int,
    max_length: int,
    report: Report = quiet,
) -> list[dict[str, float]]:
    """Generate texts for each row of the latents. Return {text: log-probability per token} for each row: the distinct
    texts of a beam, the most probable first; or one text from sampling, with the value 0."""
    if isinstance(search, Beam):
        contexts = decoder_input(bgt, latents, lang, max_length).split(AT_ONCE)
        return hypotheses(bgt, contexts, lang, search, max_length, report)
    drawn = decode(bgt, latents, lang=lang, search=search, seed=seed, max_length=max_length, report=report)
    return [{text: 0.0} for text in drawn]


def scored(
    bgt: Embedder,
    texts: Sequence[Mapping[str, float]],
    latents: Mapping[str, np.ndarray],
    lang: str,
    weights: Mapping[str, float],
    likelihood_weight: float,
) -> list[list[Candidate]]:
    """Embed the generated texts of each row, {text: log-probability per token}, and return them as candidates in the
    same order. Latents with the weight 0 are left out."""
    row_of = np.repeat(np.arange(len(texts)), [len(of_row) for of_row in texts])  # row of each candidate, (C,)
    flat = [item for of_row in texts for item in of_row.items()]
    written = [text for text, _ in flat]
    kept = {
        latent: bgt.similarity_pairwise(bgt.embed(written, lang=lang, latent=latent), latents[latent][row_of])
        for latent, weight in weights.items()
        if weight
    }
    of_rows: list[list[Candidate]] = [[] for _ in texts]
    for place, (row, (text, mean)) in enumerate(zip(row_of, flat, strict=True)):
        similarities = {latent: float(values[place]) for latent, values in kept.items()}
        total = likelihood_weight * mean + sum(weights[latent] * similarities[latent] for latent in kept)
        of_rows[row].append(Candidate(text, similarities, total))
    return of_rows


def drafted(bgt: Embedder, latents: Mapping[str, np.ndarray], drafts: Sequence[str], lang: str) -> Iterator[Context]:
    """Yield inputs for a decoder that corrects drafts, up to `AT_ONCE` rows each. UsageError if the model has none."""
    model = bgt.model
    if not isinstance(model, CorrectingModel):
        raise UsageError(
            "This model was not trained to correct drafts; corrections need a writer of `bgt train writer`."
        )
    device, vectors = next(model.parameters()).device, bgt.embed(drafts, lang=lang)
    for start in range(0, len(drafts), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        tensors = {latent: torch.tensor(rows[part], device=device) for latent, rows in latents.items()}
        side = Tokens.pad(bgt.tokenizer.encode(drafts[part]), lang).to(device)
        yield model.drafted(tensors, side, torch.tensor(vectors[part], device=device))


def hypotheses(
    bgt: Embedder, contexts: Iterable[Context], lang: str, search: Beam, max_length: int, report: Report
) -> list[dict[str, float]]:
    """Run a beam search for each row of the decoder's inputs. Return {text: log-probability per token} for each row:
    the distinct texts, the most probable first."""
    texts: list[dict[str, float]] = []
    decoder = generative(bgt).decoder(lang)
    with torch.no_grad():
        for context in filter(len, contexts):
            for ended in n_best(decoder, context, search, search.size, max_length, report):
                texts.append({})
                for text, each in zip(bgt.tokenizer.decode([each.tokens for each in ended]), ended, strict=True):
                    texts[-1].setdefault(text, each.mean)
    return texts


@dataclass(frozen=True)
class Writer:
    """An embedder with search options, for evaluations of generated text and of likelihoods. Raises UsageError for a
    model without a decoder."""

    bgt: Embedder
    search: Search
    max_length: int = 60  # maximum number of tokens of a generated text
    rerank: bool = False  # generate the text that `generate` ranks first, not the most probable text

    def __post_init__(self) -> None:
        generative(self.bgt)

    @property
    def langs(self) -> Sequence[str]:
        return self.bgt.langs

    @property
    def latents(self) -> Sequence[str]:
        return self.bgt.latents

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        """Embed N sentences: (N, D) float32."""
        return self.bgt.embed(sentences, lang=lang, latent=latent)

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the similarity of each vector of left and each vector of right: (N, D), (M, D) -> (N, M)."""
        return self.bgt.similarity(left, right)

    def write(self, latents: Mapping[str, np.ndarray], *, lang: str) -> list[str]:
        """Generate a sentence of `lang` for each row of the latents, (N, L) each; raises the errors of `decode`."""
        if not self.rerank:
            return decode(self.bgt, latents, lang=lang, search=self.search, max_length=self.max_length)
        ranked = candidates(self.bgt, latents, lang=lang, search=self.search, max_length=self.max_length)
        return [best.text for best, *_ in ranked]

    def log_likelihood(self, latents: Mapping[str, np.ndarray], sentences: Sequence[str], *, lang: str) -> np.ndarray:
        """Return log p(sentence | latents) in nats for one sentence of `lang` per row of the latents: (N,) float64."""
        predictions = self._predictions(latents, self.bgt.tokenizer.encode(sentences), lang)
        return -np.array([nats for prediction in predictions for nats in prediction.nll()[1].tolist()])

    def tokens(self, sentences: Sequence[str]) -> list[list[str]]:
        """Return the tokens of N sentences as text, without EOS. The first token of a word starts with a space."""
        texts = self.bgt.tokenizer.texts()
        return [[texts[token] for token in ids[:-1]] for ids in self.bgt.tokenizer.encode(sentences)]

    def token_nats(self, latents: Mapping[str, np.ndarray], sentences: Sequence[str], *, lang: str) -> list[np.ndarray]:
        """Return -log p(token | previous tokens, latents) in nats for each token, EOS included, of N sentences of
        `lang`: N arrays (T,). UsageError if the decoder does not use the previous tokens."""
        ids = self.bgt.tokenizer.encode(sentences)
        nats: list[float] = []
        for prediction in self._predictions(latents, ids, lang):
            if not isinstance(prediction, SentencePrediction):
                raise UsageError("This model can't score tokens: its decoder does not predict tokens one by one.")
            nats += prediction.token_nll().tolist()
        return np.split(np.array(nats), np.cumsum([len(sentence) for sentence in ids])[:-1])

    def prior_mean(self, latent: str, like: np.ndarray) -> np.ndarray:
        """Return the mean of a latent's prior, repeated in the shape of `like`, (N, L)."""
        model = generative(self.bgt)
        device = next(model.parameters()).device
        return model.prior_mean(latent, torch.tensor(like, device=device)).cpu().numpy()

    def _predictions(
        self, latents: Mapping[str, np.ndarray], ids: Sequence[Sequence[int]], lang: str
    ) -> Iterator[Prediction]:
        """Yield the decoder's predictions for sentences, given as token ids, up to `AT_ONCE` sentences at a time."""
        model, lang = generative(self.bgt), known_lang(lang, self.bgt.langs, "this model")
        device, decoder = next(model.parameters()).device, model.decoder(lang)
        for start in range(0, len(ids), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            with torch.no_grad():
                tensors = {name: torch.tensor(rows[part], device=device) for name, rows in latents.items()}
                target = Tokens.pad(ids[part], lang).to(device)
                yield decoder("reconstruct", lang, model.join(tensors), target)


class BeamTranslator:
    """A trained translator, with its search options.

    The target language is `lang`, by default the model's first target language. The model has one source language; if
    `source_lang` is given, it must be that language. `translate` returns the `count` best translations of a beam of
    `beam` hypotheses. A translation has at most `max_length` tokens. A source with more tokens is not translated,
    because a model is bad at sentences that are longer than all its training sentences.

    Raises UsageError for a model that does not translate, for a language that it lacks, and for invalid numbers.
    """

    def __init__(
        self,
        bgt: Embedder,
        *,
        source_lang: str | None = None,
        lang: str | None = None,
        beam: int = 5,
        count: int = 1,
        max_length: int = 100,
    ):
        if not isinstance(bgt.model, TranslationModel):
            raise UsageError("This model does not translate: use a model of `bgt train translator`.")
        self.bgt, self.model, written = bgt, bgt.model, bgt.model.translates
        self.source_lang, self.lang = bgt.langs[0], matching(lang or written[0], written) or str(lang)
        if self.lang not in written or not matching(source_lang or self.source_lang, [self.source_lang]):
            wrong = f"{source_lang or self.source_lang} to {self.lang}"
            raise UsageError(f"This model translates {self.source_lang} to {' or '.join(written)}, not {wrong}.")
        check_least(1, count=count, max_length=max_length)
        check_least(count, beam=beam)
        self.search, self.count, self.max_length = Beam(beam), count, max_length

    @property
    def fingerprint(self) -> str:
        """One line that identifies the model and the settings that determine the translations."""
        return f"{self.bgt.fingerprint} {self.lang} {self.search} {self.count} {self.max_length}"

    def translate(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """Translate N sentences. Return the distinct translations of each sentence, the most probable first; [] for a
        sentence that is empty or too long. The cost of a translation is its negative log-likelihood in nats per token,
        EOS included; tokens that are never generated have probability 0."""
        ids = self.bgt.tokenizer.encode(sentences)  # the lengths of these lists include EOS
        fitting = [row for row, tokens in enumerate(ids) if 1 < len(tokens) <= self.max_length + 1]
        fitting.sort(key=lambda row: len(ids[row]), reverse=True)
        translations: list[list[Translation]] = [[] for _ in ids]
        device, decoder = next(self.model.parameters()).device, self.model.decoder(self.lang)
        with torch.no_grad(), autocast(device, self.bgt.precision):  # in inference_mode, autocast caches no weights
            while fitting:  # the longest sentences are translated first
                size = max(1, min(AT_ONCE, BATCH_TOKENS // len(ids[fitting[0]])))
                rows, fitting = fitting[:size], fitting[size:]
                side = Tokens.pad([ids[row] for row in rows], self.source_lang).to(device)
                hypotheses = n_best(decoder, self.model.states(side), self.search, self.search.size, self.max_length)
                for row, of_row in zip(rows, hypotheses, strict=True):
                    texts = map(normalise, self.bgt.tokenizer.decode([each.tokens for each in of_row]))
                    costs: dict[str, float] = {}  # text -> cost of the most probable hypothesis with this text
                    for text, hypothesis in zip(texts, of_row, strict=True):
                        costs.setdefault(text, -hypothesis.mean)
                    distinct = [Translation(text, cost) for text, cost in costs.items() if text]
                    translations[row] = distinct[: self.count]
        return translations

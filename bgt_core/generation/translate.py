"""Translate sentences with a trained translator, by beam search."""

from collections.abc import Sequence

import torch

from bgt_core.backend import autocast
from bgt_core.contracts import Tokens, TranslationModel
from bgt_core.data.columns import matching
from bgt_core.data.parallel import Translation
from bgt_core.data.text import normalise
from bgt_core.embedder import Embedder
from bgt_core.errors import UsageError, check_least
from bgt_core.generation.options import Beam
from bgt_core.generation.search import AT_ONCE, n_best

BATCH_TOKENS = 4_096  # maximum padded tokens of a batch; a search stores the states of all of them for each hypothesis


class BeamTranslator:
    """A trained translator, with its search options.

    The target language is `lang`, by default the model's first. The model has one source language; it must equal
    `source_lang` if given. `translate` returns the `count` best translations of a beam of `beam` hypotheses.
    Translations end at `max_length` tokens. A source with more tokens is not translated, because models translate
    sentences badly that are longer than all training data. The other options are those of `Beam`.

    Raises UsageError for a model that does not translate, for another target language, and for invalid numbers.
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
        no_repeat_ngram: int = 0,
        max_run: int = 0,
        length_penalty: float = 1.0,
    ):
        if not isinstance(bgt.model, TranslationModel):
            raise UsageError("This model does not translate: use a model of `bgt train translator`.")
        self.bgt, self.model, written = bgt, bgt.model, bgt.model.translates
        self.source_lang, self.lang = bgt.langs[0], matching(lang or written[0], written) or str(lang)
        if self.lang not in written or not matching(source_lang or self.source_lang, [self.source_lang]):
            wrong = f"{source_lang or self.source_lang} to {self.lang}"
            raise UsageError(f"This model translates {self.source_lang} to {' or '.join(written)}, not {wrong}.")
        if not 1 <= count <= beam:
            raise UsageError(f"{count}: expected at least 1, and at most the beam ({beam}).", parameter="count")
        check_least(1, max_length=max_length)
        self.search = Beam(beam, no_repeat_ngram, max_run, length_penalty)
        self.count, self.max_length = count, max_length

    @property
    def fingerprint(self) -> str:
        """A fingerprint of the translations, in one line."""
        return f"{self.bgt.fingerprint} {self.lang} {self.search} {self.count} {self.max_length}"

    def translate(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """Translate N sentences. Return the distinct translations of each, the most probable first; [] for a sentence
        that is empty or too long. The cost of a translation is its negative log-likelihood in nats per token, EOS
        included; tokens that are never generated have probability 0."""
        ids = self.bgt.tokenizer.encode(sentences)  # their lengths include EOS
        fitting = [row for row, tokens in enumerate(ids) if 1 < len(tokens) <= self.max_length + 1]
        fitting.sort(key=lambda row: len(ids[row]), reverse=True)
        translations: list[list[Translation]] = [[] for _ in ids]
        device, decoder = next(self.model.parameters()).device, self.model.decoder(self.lang)
        with torch.no_grad(), autocast(device, self.bgt.precision):  # under inference_mode autocast caches no weights
            while fitting:  # the longest first
                size = max(1, min(AT_ONCE, BATCH_TOKENS // len(ids[fitting[0]])))
                rows, fitting = fitting[:size], fitting[size:]
                side = Tokens.pad([ids[row] for row in rows], self.source_lang).to(device)
                hypotheses = n_best(decoder, self.model.states(side), self.search, self.search.size, self.max_length)
                for row, of_row in zip(rows, hypotheses, strict=True):
                    texts = map(normalise, self.bgt.tokenizer.decode([each.tokens for each in of_row]))
                    costs: dict[str, float] = {}  # of hypotheses with the same text, the most probable counts
                    for text, hypothesis in zip(texts, of_row, strict=True):
                        costs.setdefault(text, -hypothesis.mean)
                    distinct = [Translation(text, cost) for text, cost in costs.items() if text]
                    translations[row] = distinct[: self.count]
        return translations

"""Translate sentences with a trained translator, by beam search. Each translation has a cost."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from bgt_core.backend import autocast
from bgt_core.capabilities import TranslationModel
from bgt_core.contracts import Tokens
from bgt_core.data.columns import matching
from bgt_core.data.parallel import Translation
from bgt_core.data.text import normalise
from bgt_core.embedder import Embedder
from bgt_core.errors import UsageError, check_least
from bgt_core.generation.options import Beam
from bgt_core.generation.search import AT_ONCE, n_best

BATCH_TOKENS = 4_096  # maximum padded tokens of a batch, because a search stores that many columns for each hypothesis


class BeamTranslator:
    """A trained translator, with its search options.

    The target language is `lang`, by default the model's first; the source language is the model's own, and must equal
    `source_lang` if given. A beam of `beam` hypotheses gives the `count` best translations of a sentence. Translations
    end at `max_length` tokens; a longer source is not translated, because models translate sentences badly that are
    longer than all of their training data. Other options are those of `Beam`.

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
            raise UsageError("This model does not translate; use one trained by `bgt train translator`.")
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
        """Translate N sentences: the distinct translations of each, the likeliest first; empty for a sentence that is
        empty or too long. Costs are negative log-likelihoods in nats per token, EOS counted, among the tokens that a
        search may choose."""
        ids = self.bgt.tokenizer.encode(sentences)  # EOS counts in their lengths
        fitting = [row for row, tokens in enumerate(ids) if 1 < len(tokens) <= self.max_length + 1]
        fitting.sort(key=lambda row: len(ids[row]), reverse=True)
        translations: list[list[Translation]] = [[] for _ in ids]
        device = next(self.model.parameters()).device
        with torch.no_grad(), autocast(device, self.bgt.precision):  # under inference_mode autocast caches no weights
            while fitting:  # the longest first
                size = max(1, min(AT_ONCE, BATCH_TOKENS // len(ids[fitting[0]])))
                rows, fitting = fitting[:size], fitting[size:]
                side = Tokens.pad([ids[row] for row in rows], self.source_lang).to(device)
                for row, best in zip(rows, self._search(side), strict=True):
                    translations[row] = best
        return translations

    def _search(self, side: Tokens) -> list[list[Translation]]:
        """Translate a batch of sentences (B, T). Hypotheses with the same text, in other tokens, count once."""
        decoder, states = self.model.decoder(self.lang), self.model.states(side)
        results = []
        for hypotheses in n_best(decoder, states, self.search, self.search.size, self.max_length):
            texts = map(normalise, self.bgt.tokenizer.decode([each.tokens for each in hypotheses]))
            costs: dict[str, float] = {}
            for text, hypothesis in zip(texts, hypotheses, strict=True):
                costs.setdefault(text, -hypothesis.mean)
            results.append([Translation(*pair) for pair in costs.items() if pair[0]][: self.count])
        return results

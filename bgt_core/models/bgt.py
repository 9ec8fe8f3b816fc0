"""The Bilingual Generative Transformer, and the base classes of all models: `LatentModel` has encoders, and
`WritingModel` also has decoders."""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC, Batch, Decoder, Outputs, Posterior, Prediction, Readout
from bgt_core.nets.encoders import NoLatent
from bgt_core.nets.output import LanguageOutput
from bgt_core.posterior import sample


class LatentModel(nn.Module):
    """A model that encodes sentences of the languages `langs`. Its vectors are posterior means, compared by cosine.

    `encoders` maps "semantic" to an encoder for all languages. It may also map "syntactic" to an encoder for all
    languages, and each language code to the encoder of that language's latent.
    """

    def __init__(self, langs: Sequence[str], encoders: Mapping[str, nn.Module]):
        super().__init__()
        self.langs = tuple(langs)
        self.encoders = nn.ModuleDict(encoders)
        others = {SYNTACTIC: [encoders.get(SYNTACTIC)], LANGUAGE: [encoders.get(lang) for lang in langs]}
        present = [
            latent
            for latent, needed in others.items()
            if not any(encoder is None or isinstance(encoder, NoLatent) for encoder in needed)
        ]
        self.latents: tuple[str, ...] = (SEMANTIC, *present)

    def encoder(self, latent: str, lang: str) -> nn.Module:
        """Return the encoder of a latent for sentences of a language: Tokens -> Posterior."""
        return self.encoders[lang if latent == LANGUAGE else latent]

    @property
    def semantic_table(self) -> nn.Embedding:
        """The token embeddings of the semantic encoder, (V, H)."""
        return next(part for part in self.encoders[SEMANTIC].modules() if isinstance(part, nn.Embedding))

    def restrict(self, occurs: Callable[[str], Tensor]) -> None:
        """Restrict the output layers of type `LanguageOutput` to the tokens of their languages.

        Args:
            occurs: Maps a language to (V,) bool, True for each token that occurs in the language's training text.
        """
        for layer in self.modules():
            if isinstance(layer, LanguageOutput):
                layer.restrict(occurs(layer.lang))

    def vectors(self, posterior: Posterior) -> Tensor:
        """Return the posterior's means, (B, L)."""
        return posterior.mean


class WritingModel(LatentModel):
    """A model that generates sentences from latents, with one decoder for each language."""

    decoders: nn.ModuleDict

    @property
    def writes(self) -> tuple[str, ...]:
        """The languages in which the model generates sentences."""
        return self.langs

    def prior_mean(self, latent: str, like: Tensor) -> Tensor:
        """Return the mean of a latent's prior in the shape of `like` (B, L), to replace a latent that is not given."""
        return torch.zeros_like(like)

    def decoder(self, lang: str) -> Decoder:
        """Return the decoder of a language, p(sentence | latents)."""
        return cast(Decoder, self.decoders[lang])


def cosine_to_targets(means: Tensor, targets: Tensor) -> Tensor:
    """Return the cosines of row i of `means` and row i of `targets`: (B, D), (B, D) -> (B,). The values of `targets`
    may be very large or very small."""
    exponents = torch.frexp(targets.abs().amax(-1, keepdim=True)).exponent.clamp(-126, 126)
    return F.cosine_similarity(means.float(), torch.ldexp(targets, -exponents), dim=-1)


class BGT(WritingModel):
    """A model with one semantic latent for all languages and one latent per language (BGT paper, sec. 2-3). The models
    in the package are of its subclass `recipes.bound.RecombiningBGT`, which has no translators.

    Args:
        encoders: The encoders q(z | sentence). The keys are "semantic" and all languages. A language without a latent
            has the encoder `NoLatent`.
        decoders: The decoder p(sentence | z_language, z_semantic) of each language.
        translators: The decoder p(sentence | semantic mean of its translation) of each language.
        readout: `sample` or `mean`. It turns posteriors into the latents for reconstruction, unless a call passes
            another readout.
        teacher: Maps semantic means to vectors of another encoder, (B, L) -> (B, D). Used for batches with targets.
        train_decoders: If false, the model makes no predictions, so that only the semantic encoder is trained.
    """

    def __init__(
        self,
        encoders: Mapping[str, nn.Module],
        decoders: Mapping[str, nn.Module],
        translators: Mapping[str, nn.Module],
        readout: Readout = sample,
        teacher: nn.Module | None = None,
        train_decoders: bool = True,
    ):
        super().__init__(tuple(decoders), encoders)
        self.decoders = nn.ModuleDict(decoders)
        self.translators = nn.ModuleDict(translators)
        self.readout = readout
        self.teacher = teacher
        self.train_decoders = train_decoders

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        readout = readout or self.readout
        semantic = {column: self.encoders[SEMANTIC](side) for column, side in batch.sides.items()}
        agreement = self.agreement(semantic, batch.targets)
        posteriors = {SEMANTIC: {SEMANTIC: semantic[batch.anchor]}}
        if not self.train_decoders:
            return Outputs(semantic, posteriors, [], agreement=agreement)
        own = {column: self.encoders[side.lang](side) for column, side in batch.sides.items()}
        shared = readout(semantic[batch.anchor])  # (B, L): one sample, from which all columns are reconstructed
        predictions: list[Prediction] = []
        for column, side in batch.sides.items():
            latent = self.join({LANGUAGE: readout(own[column]), SEMANTIC: shared})
            predictions.append(self.decoders[side.lang]("reconstruct", column, latent, side))
        if len(batch.sides) > 1:
            for column, side in batch.sides.items():
                source = semantic[batch.source(column)].mean  # (B, L)
                predictions.append(self.translators[side.lang]("translate", column, source, side))
        return Outputs(semantic, {**posteriors, LANGUAGE: own}, predictions, agreement=agreement)

    def agreement(self, semantic: Mapping[str, Posterior], targets: Tensor | None) -> dict[str, Tensor]:
        """Return {column: cosines, (B,)} of the teacher's vectors, `targets` (B, D), and the column's semantic means,
        mapped to the teacher's space by the layer `teacher`. Empty if `targets` is None."""
        if self.teacher is None or targets is None:
            return {}
        return {
            column: cosine_to_targets(self.teacher(posterior.mean), targets) for column, posterior in semantic.items()
        }

    def join(self, latents: Mapping[str, Tensor]) -> Tensor:
        """Concatenate the latents to the input of a decoder, [language ; semantic], (B, L_language + L)."""
        return torch.cat([latents[latent] for latent in (LANGUAGE, SEMANTIC) if latent in latents], dim=-1)

"""Evaluate encoders in the benchmark mteb (version 2). Needs the extra `mteb`.

    mteb.evaluate(load_mteb("runs/mine", latent="language"), mteb.get_tasks(tasks=["STS12"]))

`mteb.evaluate` also accepts a model of `load_sentence_transformer`, for the semantic latent. Do not choose another
latent by `encode_kwargs`, because mteb would overwrite the scores of the semantic latent. For the paper's scores, use
`bgt evaluate sts`, because mteb's tasks STS12 to STS16 join all data sets of a year, and STS13 lacks the data set SMT.
"""

from pathlib import Path
from typing import Any

import numpy as np
from mteb.models import ModelMeta
from mteb.models.abs_encoder import AbsEncoder
from mteb.models.model_meta import ScoringFunction

from bgt_core import PRETRAINED, checkpoint, load
from bgt_core.checkpoint import WEIGHTS
from bgt_core.contracts import SEMANTIC, SentenceEncoder
from bgt_core.data.columns import lang_code
from bgt_core.errors import UsageError


class MtebEncoder(AbsEncoder):
    """An encoder for mteb. In mteb, its scores are stored under `name` (ORG/NAME) and `revision`.

    Vectors are compared by cosine. The language of the sentences is `lang`; if it is None, the language of the task's
    subset.
    """

    def __init__(
        self, encoder: SentenceEncoder, *, name: str, revision: str, latent: str = SEMANTIC, lang: str | None = None
    ) -> None:
        self.model = encoder
        self.latent, self.lang = latent, lang
        self.mteb_model_meta = ModelMeta.create_empty(
            {"name": name, "revision": revision, "similarity_fn_name": ScoringFunction.COSINE}
        )

    def encode(
        self, inputs: Any, *, task_metadata: Any, hf_split: str, hf_subset: str, prompt_type: Any = None, **_: object
    ) -> np.ndarray:
        """Embed the sentences of a task's subset: (N, D) float32; UsageError if the encoder lacks the language."""
        sentences = [text for batch in inputs for text in batch["text"]]
        lang = self.lang or self._lang(task_metadata, hf_subset)
        return self.model.embed(sentences, lang=lang, latent=self.latent)

    def _lang(self, task: Any, subset: str) -> str:
        """Return the language of a task's subset. If it has several languages, return the first that the encoder
        supports, because all languages share the semantic space."""
        scripts = task.hf_subsets_to_langscripts.get(subset) or task.bcp47_codes
        langs = list(dict.fromkeys(lang_code(script.split("-")[0]) for script in scripts))  # ISO 639-3, as in eng-Latn
        known = [lang for lang in langs if not self.model.langs or lang in self.model.langs]
        if not known:
            raise UsageError(
                f"{task.name}/{subset} is in {', '.join(langs)}, and the model only supports "
                f"{', '.join(self.model.langs)}. To embed it in a language of the model, pass lang= to MtebEncoder."
            )
        if self.latent != SEMANTIC and len(langs) > 1:
            raise UsageError(
                f"{task.name}/{subset} compares {' and '.join(langs)}; "
                f"the {self.latent} latent can only be compared within one language."
            )
        return known[0]


def load_mteb(
    path: str | Path = PRETRAINED,
    *,
    latent: str = SEMANTIC,
    lang: str | None = None,
    name: str | None = None,
    device: str = "auto",
    precision: str = "auto",
) -> MtebEncoder:
    """Open a checkpoint, a run, or the model ORG/NAME on the hub for mteb. The revision is the hash of the weights.

    `name` is "bgt/FOLDER" by default. The name of the latent is added to it, unless it is the semantic latent.
    """
    folder = checkpoint.find(path)
    encoder = load(folder, device, precision)
    revision = checkpoint.read_config(folder)["files"][WEIGHTS]
    suffix = "" if latent == SEMANTIC else f"-{latent}"
    full_name = (name or f"bgt/{folder.resolve().name}") + suffix
    return MtebEncoder(encoder, name=full_name, revision=revision, latent=latent, lang=lang)

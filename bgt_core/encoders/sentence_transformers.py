"""Use our models and splits in sentence-transformers (5.7 or newer). Needs the extra `sentence-transformers`.

A folder of `bgt export --to sentence-transformers` is opened by `bgt_core.load`, or in the library in three ways:

    load_sentence_transformer(path)                       recommended; needs no flag
    SentenceTransformer(modules=[BGTModule.load(path)])   the same, and more modules can be added
    SentenceTransformer(path, trust_remote_code=True)     version 6 needs the flag for classes of other packages

`model.encode(sentences, latent="language", lang="fr")` chooses the latent, by default the semantic one.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import InputModule
from sentence_transformers.base.modules.dense import Dense
from torch import Tensor
from torch.nn import Identity

from bgt_core import checkpoint
from bgt_core.backend import PRECISIONS, autocast, pick_device, warn_if_slow
from bgt_core.checkpoint import CONFIG, WEIGHTS, Checkpoint, is_path
from bgt_core.contracts import SEMANTIC, Tokens
from bgt_core.data.columns import known_lang
from bgt_core.embedder import Embedder
from bgt_core.encoders.external import ExternalEncoder
from bgt_core.encoders.publish import model_card
from bgt_core.encoders.split import open_encoder as open_split
from bgt_core.errors import NotFound, UsageError, check_choice
from bgt_core.files import atomic_folder
from bgt_core.splitting import parts

LOCATIONS = ("token", "cache_folder", "revision", "local_files_only")  # options for downloads from the Hugging Face hub
USE = """from bgt_core.encoders.sentence_transformers import load_sentence_transformer

model = load_sentence_transformer("{name}")
vectors = model.encode(["Where is the station?"])"""


def open_encoder(name: str, device: str = "auto", precision: str = "auto") -> ExternalEncoder:
    """Open a model of sentence-transformers, on the hub or in a folder, with its own pooling, prompts and scaling.

    Raises NotFound if the library can't load the model. (Our own exported models are opened as checkpoints, by
    `encoders.open_encoder`.)
    """
    if is_path(name) and not os.path.isdir(name):
        raise NotFound(f"sentence-transformers:{name}: no such folder.")
    check_choice(PRECISIONS, precision=precision)
    chosen, spec = pick_device(device), f"sentence-transformers:{name}"
    warn_if_slow(chosen, precision)
    try:
        model = SentenceTransformer(name, device=str(chosen))
    except (OSError, ValueError, ImportError) as error:
        reason = str(error).strip().split("\n")[0]
        raise NotFound(f"{spec}: sentence-transformers can't load it ({reason}). Check the name or folder.") from None

    def encode(sentences: list[str], lang: str, latent: str) -> object:
        with autocast(chosen, "bf16" if precision == "bf16" else "fp32"):
            return model.encode(sentences, show_progress_bar=False)

    def truncated(sentences: list[str], lang: str) -> int:
        limit, tokenizer = model.max_seq_length, model.tokenizer
        if limit in (None, torch.inf) or not sentences:
            return 0
        return sum(len(ids) > limit for ids in tokenizer(sentences, truncation=False, verbose=False)["input_ids"])

    def fingerprint() -> str:
        """Hash the weights and the configuration. Leave out device and library version: they only change rounding."""
        tokenizer = getattr(model.tokenizer, "backend_tokenizer", model.tokenizer)  # a static model has it directly
        if hasattr(tokenizer, "to_str"):
            rules = json.loads(tokenizer.to_str())
            del rules["padding"], rules["truncation"]  # these settings depend on the last call
        elif hasattr(tokenizer, "save_pretrained"):  # a slow tokenizer is known by the files that it saves
            with tempfile.TemporaryDirectory() as folder:
                tokenizer.save_pretrained(folder)
                rules = {path.name: path.read_text("latin-1") for path in Path(folder).iterdir()}
        else:
            return ""
        layers = [(type(layer).__name__, getattr(layer, "pooling_mode", "")) for layer in model]
        parts = (layers, model.max_seq_length, model.prompts, model.default_prompt_name, rules, precision == "bf16")
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
        for key, value in sorted(model.state_dict().items()):
            digest.update(f"{key} {value.dtype} {tuple(value.shape)}".encode())
            digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        return digest.hexdigest()

    return ExternalEncoder(spec, encode, truncated=truncated, fingerprint=fingerprint)


class BGTModule(InputModule):
    """A module of sentence-transformers that runs a checkpoint. Its `sentence_embedding` is the posterior mean."""

    def __init__(self, loaded: Checkpoint):
        super().__init__()
        self.forward_kwargs = {"lang", "latent"}  # arguments that `encode` passes to `forward`
        self.checkpoint = loaded
        self.model = loaded.model
        self.tokenizer: Any = loaded.tokenizer
        self.reader = Embedder(loaded.model, loaded.tokenizer, loaded.model.langs, "fp32")
        self.width = self.reader.width(self.reader.langs[0])

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, **_: object) -> dict[str, Tensor]:
        """Tokenize B sentences: input_ids (B, T) and attention_mask (B, T)."""
        if wrong := [type(text).__name__ for text in inputs if not isinstance(text, str)]:
            raise UsageError(f"expected sentences of type str, got {wrong[0]}.")
        side = Tokens.pad(self.tokenizer.encode([(prompt or "") + text for text in inputs]), self.reader.langs[0])
        return {"input_ids": side.ids, "attention_mask": side.mask.long()}

    def forward(
        self, features: dict[str, Tensor], latent: str = SEMANTIC, lang: str | None = None, **_: object
    ) -> dict[str, Tensor]:
        """Add sentence_embedding (B, L) to the features, with a gradient if gradients are enabled."""
        lang = known_lang(lang or self.reader.langs[0], self.reader.langs, "this model")
        encoder = self.reader.encoder(latent, lang)
        side = Tokens.of(features["input_ids"], features["attention_mask"].bool(), lang)
        return {**features, "sentence_embedding": encoder(side).mean}

    def get_embedding_dimension(self) -> int:
        """Return the number of units of the semantic latent."""
        return self.width

    def save(self, output_path: str, *_: object, **__: object) -> None:
        """Copy the original checkpoint if the weights are unchanged. Otherwise save a new checkpoint, without scores,
        because they were measured with the original weights."""
        with tempfile.TemporaryDirectory(dir=output_path) as scratch:
            source = self.checkpoint.folder
            if not self._as_read():
                source = Path(scratch) / "model"
                step = self.checkpoint.config["step"]
                checkpoint.save(source, self.checkpoint.recipe, self.model, self.tokenizer, step)
            for name in (*checkpoint.read_config(source)["files"], CONFIG):
                shutil.copyfile(source / name, Path(output_path) / name)

    def _as_read(self) -> bool:
        """Test whether the checkpoint still exists, and has the same weights as this module."""
        folder = self.checkpoint.folder
        if not (folder / CONFIG).is_file() or checkpoint.read_config(folder) != self.checkpoint.config:
            return False
        weights = checkpoint.load_tensors(folder / WEIGHTS)
        return all(torch.equal(weights[name].to(own), own) for name, own in self.model.named_parameters())

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **options: Any) -> BGTModule:  # type: ignore[override]
        """Load a checkpoint, a run, an exported folder, or ORG/NAME on the hub, as a module."""
        where = {key: options[key] for key in LOCATIONS if key in options}
        path = cls.load_dir_path(str(model_name_or_path), subfolder, **where)
        return cls(checkpoint.load(Path(path or model_name_or_path)))


def load_sentence_transformer(path: str | Path, device: str | None = None) -> SentenceTransformer:
    """Open a checkpoint, a run, an exported folder, or ORG/NAME on the hub as a SentenceTransformer.

    The model's revision is the hash of its weights; other tools store results under this revision. Raises the errors of
    `bgt_core.load`.
    """
    loaded = checkpoint.load(path)
    model = SentenceTransformer(modules=[BGTModule(loaded)], device=device)
    model.model_card_data.model_name = f"bgt/{loaded.folder.resolve().name}"
    model.model_card_data.base_model_revision = loaded.config["files"][WEIGHTS]
    return model


def export(loaded: Checkpoint, out: Path) -> None:
    """Write a checkpoint and a README to a new folder, which sentence-transformers and `bgt_core.load` can open. The
    folder is written completely or not at all; UsageError if it exists."""
    with atomic_folder(out) as partial:
        model = SentenceTransformer(modules=[BGTModule(loaded)], device="cpu")
        model.save(os.fspath(partial), create_model_card=False)
        (partial / "README.md").write_text(model_card(out.name, loaded, USE.format(name=out.name)), encoding="utf-8")


def export_split(folder: Path, out: Path, lang: str) -> None:
    """Export a split of a sentence-transformers model to the new folder `out`: this model, followed by a Dense module
    that computes the shared part of vectors of `lang`. UsageError if the split was fitted on another kind of encoder,
    has a hidden layer, or lacks the language."""
    stored = parts.load(folder)
    kind, _, name = stored.encoder.partition(":")
    if kind != "sentence-transformers":
        raise UsageError(f"{folder} splits {stored.encoder or 'stored vectors'}; expected sentence-transformers:NAME.")
    of = stored.split.of(lang)
    if of.hidden is not None:
        text = f"{stored.split.method} has a hidden layer, which a Dense module lacks; use another method"
        raise UsageError(f"{folder}: {text}.")
    open_split(folder)  # checks that the encoder has not changed
    inner = SentenceTransformer(name, device="cpu")
    weight, bias = torch.from_numpy(of.read), torch.from_numpy(of.centre - of.read @ of.offset)
    inner.append(Dense(stored.split.width, stored.split.shared_width, True, Identity(), weight, bias))
    with atomic_folder(out) as partial:
        inner.save(os.fspath(partial), create_model_card=False)
        shutil.copyfile(folder / parts.CARD, partial / parts.CARD)

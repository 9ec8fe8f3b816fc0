"""Publish a checkpoint: copy it without training state, convert it for another library, or upload it to the hub."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from bgt_core import checkpoint
from bgt_core.checkpoint import WEIGHTS, Checkpoint, check_card, upload
from bgt_core.contracts import SEMANTIC, TranslationModel, VectorModel
from bgt_core.errors import DataError, UsageError, check_choice, needs
from bgt_core.files import check_absent, read_json
from bgt_core.tables import Table, markdown

CHECKPOINT, SENTENCE_TRANSFORMERS, ONNX = FORMS = ("checkpoint", "sentence-transformers", "onnx")
SPLIT = "split:"

USE = """import bgt_core

bgt = bgt_core.load("{name}")
vectors = bgt.embed(["..."], lang="{lang}")"""

USE_TRANSLATOR = """import bgt_core

translator = bgt_core.BeamTranslator(bgt_core.load("{name}"))
best = translator.translate(["..."])[0][0]  # of a sentence in {lang}: best.text, best.cost"""


def export(
    path: Path | str,
    out: Path,
    *,
    to: str = CHECKPOINT,
    half: bool = False,
    figures: Mapping[str, object] | None = None,
    latent: str | None = None,
    lang: str | None = None,
) -> float | None:
    """Write the checkpoint at `path` to the new folder `out`. For ONNX, return the largest difference from the model.

    `to="checkpoint"` leaves out the training state, can store weights in 16 bits (`half`), and adds measured `figures`
    for the model card (see `read_figures`). `to="onnx"` exports one encoder: the encoder of `latent`, by default
    "semantic". If this is the language latent, `lang` chooses the language, by default the model's first.
    `to="sentence-transformers"` also accepts a split: `path` is then split:FOLDER, and `lang` is required. Raises
    UsageError for an unknown `to`, for options that `to` does not support, and if `out` exists.
    """
    check_choice(FORMS, to=to)
    check_absent(out)
    split = str(path).startswith(SPLIT)
    if (half or figures) and to != CHECKPOINT:
        text = "is for the form checkpoint only. Export a checkpoint first, then convert it."
        raise UsageError(text, parameter="half" if half else "figures")
    if split and to != SENTENCE_TRANSFORMERS:
        raise UsageError(f"{to}: a split can only be exported to {SENTENCE_TRANSFORMERS}.", parameter="to")
    if split and latent not in (None, SEMANTIC):
        raise UsageError(f"{latent}: only the {SEMANTIC} latent of a split can be exported.", parameter="latent")
    if split and lang is None:
        raise UsageError("is needed: a split treats each language differently.", parameter="lang")
    if (latent or lang) and to != ONNX and not split:
        text = "chooses the encoder of an ONNX file. Other formats contain all encoders: leave it out."
        raise UsageError(text, parameter="latent" if latent else "lang")
    if to == SENTENCE_TRANSFORMERS:
        needs("sentence_transformers", "sentence-transformers")
        from bgt_core.encoders import sentence_transformers
    if split:
        sentence_transformers.export_split(Path(str(path).removeprefix(SPLIT)), out, str(lang))
        return None
    loaded = checkpoint.load(path)
    if to != CHECKPOINT and latent in (None, SEMANTIC) and isinstance(loaded.model, VectorModel):
        encoder = loaded.model.stored.encoder
        raise UsageError(
            f"{to}: the semantic encoder of this writer is {encoder}; export that encoder.", parameter="to"
        )
    if to == ONNX:
        from bgt_core.encoders import onnx

        return onnx.export(loaded, out, latent=latent or SEMANTIC, lang=lang)
    if to == SENTENCE_TRANSFORMERS:
        sentence_transformers.export(loaded, out)
        return None
    metrics = loaded.folder.parent / checkpoint.METRICS
    checkpoint.save(
        out, loaded.recipe, loaded.model, loaded.tokenizer, loaded.config["step"],
        dtype=torch.float16 if half else torch.float32, metrics=metrics.read_bytes() if metrics.is_file() else b"",
        card=figures,
    )  # fmt: skip
    return None


def push(path: Path | str, name: str, *, private: bool = False) -> str:
    """Upload a checkpoint and its model card to the repository `name` (ORG/NAME) on the hub. Return its web address.

    Raises UsageError for a checkpoint with training state, and the errors of `checkpoint.upload`.
    """
    loaded = checkpoint.load(path)
    if checkpoint.OPTIMIZER in loaded.config["files"]:
        raise UsageError(f"{loaded.folder}: has training state. Export it by `bgt export`, and upload the new folder.")
    files = {file: loaded.folder / file for file in (checkpoint.CONFIG, *loaded.config["files"])}
    use = USE_TRANSLATOR if isinstance(loaded.model, TranslationModel) else USE
    if isinstance(loaded.model, VectorModel):
        use = use.replace("load(", "open_encoder(")
    readme = model_card(name, loaded, use.format(name=name, lang=loaded.model.langs[0]))
    return upload(name, {**files, "README.md": readme.encode()}, private=private)


def read_figures(path: Path) -> dict[str, object]:
    """Read scores and other facts for a model card from a JSON file; NotFound if absent, DataError if invalid."""
    figures = read_json(path)
    if not isinstance(figures, dict):
        raise DataError(f"{path}: expected a JSON object.")
    return dict(check_card(figures, str(path)))


ABOUT = """A Bilingual Generative Transformer: it embeds the meaning of a sentence and its style as two vectors.
Semantic vectors of all its languages share one space; language vectors are comparable within a language. Both are
posterior means, not normalised: compare them by cosine."""

TRANSLATES = """A Transformer that translates {source} to {targets}, its decoder attending to every state of its encoder
(Vaswani et al. 2017). A sentence of {source} is embedded as the mean of those states: compare them by cosine."""

FIDELITY = {  # key of a model card -> heading of the table that shows it
    "fidelity": "Generated text, beside reference and style",
    "kept": "Negation, numbers and names kept",
    "transfer": "Style taken over",
    "roles": "Roles kept in minimal pairs",
}
DATA = ("source", "pairs", "times", "licence")  # columns of the table "Trained on"


def model_card(name: str, checkpoint: Checkpoint, use: str) -> str:
    """Write the model card, a README in Markdown with the hub's header. `use` is Python code that loads the model.

    The tables show the figures that are stored in the checkpoint. If none are stored, the tables are left out.
    """
    config = checkpoint.config
    card = config.get("card", {})
    about, task, model = ABOUT, "sentence-similarity", checkpoint.model
    langs = ", ".join(model.langs)
    if isinstance(model, TranslationModel):
        written = model.translates
        about, task = TRANSLATES.format(source=langs, targets=" and ".join(written)), "translation"
        langs = ", ".join(dict.fromkeys([*model.langs, *written]))
    parts = [
        f"---\nlanguage: [{langs}]\nlibrary_name: bgt\npipeline_tag: {task}\n"
        f"tags: [{task}, feature-extraction, bgt]\n---",
        f"# {name}",
        about,
        f"Languages: {langs}. Recipe {config['recipe']}, {config['parameters']:,} parameters, step {config['step']:,}.",
        f"## Use\n\n```python\n{use.strip()}\n```",
    ]
    if scores := card.get("scores"):
        measured = {name: row if isinstance(row, Mapping) else {"score": row} for name, row in scores.items()}
        columns = list(dict.fromkeys(column for row in measured.values() for column in row))
        rows = [[name, *(_cell(row.get(column)) for column in columns)] for name, row in measured.items()]
        parts.append(f"## Measured\n\n{_table(['measured', *columns], rows)}")
        parts.append("\n".join(f"- {item['score']}: {item['how']}." for item in card.get("protocol", [])))
    for key, head in FIDELITY.items():
        if records := card.get(key):
            parts.append(f"## {head}\n\n{_table(list(records[0]), [list(record.values()) for record in records])}")
    if data := card.get("data"):
        rows = [[str(item.get(key, "")) for key in DATA] for item in data]
        parts.append(f"## Trained on\n\n{_table(DATA, rows)}")
    for key in ("command", "training"):
        if key in card:
            parts.append(f"{key.capitalize()}: {card[key]}")
    parts.append(
        f"## Identity\n\nSHA-256 of the weights: `{config['files'][WEIGHTS]}`. Made with bgt {config['version']}."
    )
    return "\n\n".join(filter(None, parts)) + "\n"


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, int | float) else str(value)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(markdown(Table(columns, rows), text=1))

"""Write the README of an exported model from its checkpoint's description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bgt_core.capabilities import TranslationModel
from bgt_core.checkpoint import WEIGHTS, Checkpoint
from bgt_core.tables import Table, markdown

ABOUT = """A Bilingual Generative Transformer: it embeds the meaning of a sentence and its style as two vectors.
Semantic vectors of all its languages share one space; language vectors are comparable within a language. Both are
posterior means, not normalised: compare them by cosine."""

TRANSLATES = """A Transformer that translates {source} to {targets}, its decoder attending to every state of its encoder
(Vaswani et al. 2017). A sentence of {source} is embedded as the mean of those states: compare them by cosine."""

FIDELITY = {  # a key of a card -> the head of its table
    "fidelity": "Generated text, beside reference and style",
    "kept": "Negation, numbers and names kept",
    "transfer": "Style taken over",
    "roles": "Roles kept in minimal pairs",
}
DATA = ("source", "pairs", "times", "licence")  # columns of "Trained on"


def model_card(name: str, checkpoint: Checkpoint, use: str) -> str:
    """Write the model card: Markdown, with the hub's header. `use` is Python that loads the model by `name`.

    Figures come from the checkpoint's own card; without one, the README has no figures.
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
        parts.append(f"## Measured\n\n{_scores(scores)}")
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


def _scores(scores: Mapping[str, Any]) -> str:
    measured = {name: row if isinstance(row, Mapping) else {"score": row} for name, row in scores.items()}
    columns = list(dict.fromkeys(column for row in measured.values() for column in row))
    rows = [[name, *(_cell(row.get(column)) for column in columns)] for name, row in measured.items()]
    return _table(["measured", *columns], rows)


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, int | float) else str(value)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(markdown(Table(columns, rows), text=1))

"""A model's paper, the meaning of its settings, its scores with their intervals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from app.core import state
from bgt_core.evaluation.bootstrap import wilson
from probes.result import MAJORITY

MEANINGS = {  # keyed by the end of a setting's name
    "recipe": "the kind of model; `bgt train` takes its name",
    "d_model": "units of the decoders and of language encoders",
    "semantic_dim": "units of the semantic latent",
    "average_dim": "units of it that are an average of token vectors",
    "bound_dim": "units that keep the order of tokens",
    "roles_dim": "units that tell who does what to whom",
    "language_dim": "units of each language latent",
    "word_dropout": "share of words hidden from a decoder, so that it has to use the latents",
    "readout": "whether decoders read a sample of the latents or their mean",
    "weights.semantic": "weight of the semantic latent's KL: the lower, the more information it may hold",
    "weights.language": "weight of each language latent's KL",
    "free_nats.semantic": "KL up to which the semantic latent costs nothing",
    "free_nats.language": "KL up to which a language latent costs nothing",
    "elbo.warmup_steps": "steps until every KL has its weight",
    "margin.margin": "minimum lead of a translation's cosine over another sentence's",
    "margin.weight": "weight of that loss",
    "label_smoothing": "probability mass of the target that goes to the other tokens",
    "data.columns": "columns of the training files",
    "data.vocab_size": "tokens of the vocabulary",
    "min_tokens": "tokens of the shortest sentence that is trained on",
    "max_tokens": "tokens of the longest",
    "valid_pairs": "pairs held out to watch the training",
    "train.epochs": "passes through the data",
    "batch_tokens": "tokens per update",
    "learning_rate": "the largest step size of Adam",
    "train.warmup_steps": "updates until the learning rate is reached",
    "cooldown": "share of the updates in which the learning rate falls to zero",
    "sampling_temperature": "1: each pair of languages has the share of its tokens; larger: more equal shares",
    "train.seed": "seed of all random draws",
}
PROBE_TITLES = {"punct-num": "Punctuation"}  # in the scores of a card, if not the task's name
UNTRAINED = "untrained "  # prefix of a card's columns for the model before training
ENDS = ("low", "high")  # columns of a card with the interval of its column "score"
ONE_DIGIT = re.compile(r"%|x 100|chrF|BLEU")  # scores of these units have one decimal, cosines and correlations two


class Paper(NamedTuple):
    """The publication of a model."""

    address: str
    bibtex: str


BGT = Paper(
    "https://aclanthology.org/2020.emnlp-main.122/",
    """@inproceedings{wieting2020bilingual,
  title     = {A Bilingual Generative Transformer for Semantic Sentence Embedding},
  author    = {Wieting, John and Neubig, Graham and Berg-Kirkpatrick, Taylor},
  booktitle = {Proceedings of EMNLP},
  year      = {2020}
}""",
)
VGVAE = Paper(
    "https://aclanthology.org/N19-1254/",
    """@inproceedings{chen2019multitask,
  title     = {A Multi-Task Approach for Disentangling Syntax and Semantics in Sentence Representations},
  author    = {Chen, Mingda and Tang, Qingming and Wiseman, Sam and Gimpel, Kevin},
  booktitle = {Proceedings of NAACL},
  year      = {2019}
}""",
)
BACKTRANSLATION = Paper(
    "https://aclanthology.org/D17-1026/",
    """@inproceedings{wieting2017backtranslated,
  title     = {Learning Paraphrastic Sentence Embeddings from Back-Translated Bitext},
  author    = {Wieting, John and Mallinson, Jonathan and Gimpel, Kevin},
  booktitle = {Proceedings of EMNLP},
  year      = {2017}
}""",
)
PAPERS = {"vgvae": VGVAE, **dict.fromkeys(("avg", "gran", "translator"), BACKTRANSLATION)}  # by recipe; others: BGT's


def paper(loaded: state.Loaded) -> Paper:
    """Return the paper that introduced a recipe's model."""
    return PAPERS.get(loaded.info.get("recipe", ""), BGT)


def meaning(setting: str) -> str:
    """Explain a setting in a few words; "" if its name explains it."""
    return next((text for end, text in MEANINGS.items() if setting.endswith(end)), "")


def sentence_case(name: str) -> str:
    """Format a heading: units and acronyms keep their case."""
    return name[:1].upper() + name[1:] if name.split(" ")[0].islower() else name


def readable(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return ", ".join(map(readable, value)) if isinstance(value, list) else str(value)


def cell(measure: str, value: object, ends: tuple[float, float] | None) -> str:
    """Format a number with the decimals of its unit, and its interval."""
    if value is None or isinstance(value, str) or not isinstance(value, int | float) or value != value:
        return "" if value is None or value != value else str(value)
    form = "z.1f" if ONE_DIGIT.search(measure) or abs(value) > 1 else "z.2f"
    interval = f" [{ends[0]:{form}}, {ends[1]:{form}}]" if ends else ""
    return f"{value:{form}}{interval}"


def own_ends(row: Mapping[str, float], column: str) -> tuple[float, float] | None:
    return (row["low"], row["high"]) if column == "score" and {*ENDS} <= {*row} else None


def retrieval_intervals(card: Mapping[str, Any]) -> dict[tuple[str, str], tuple[float, float]]:
    """Wilson's intervals of precision at 1, in percent; empty if the card does not give the number of translations."""
    how = next((str(row["how"]) for row in card.get("protocol", []) if row["score"] == "Retrieval"), "")
    among = re.search(r"among ([\d,]+) translations", how)
    if not among:
        return {}
    count = int(among[1].replace(",", ""))
    ends = {}
    for measure, row in card["scores"].items():
        if measure.startswith("Retrieval") and isinstance(row, Mapping):
            for column, value in row.items():
                low, high = wilson(value / 100 * count, count)
                ends[measure, column] = (100 * low, 100 * high)
    return ends


def probe_intervals(card: Mapping[str, Any]) -> dict[tuple[str, str], tuple[float, float]]:
    """The intervals of probes, in percent, by the measure and column that the card has their accuracies in."""
    ends = {}
    for row in card.get("probes", []):
        title = PROBE_TITLES.get(row["task"], row["task"].capitalize())
        column = "baseline" if row["latent"] == MAJORITY else row["latent"]
        ends[f"{title} probe, accuracy %", column] = (100 * row["ci_low"], 100 * row["ci_high"])
    return ends


def score_table(
    measures: Mapping[str, float | Mapping[str, float]], intervals: Mapping[tuple[str, str], tuple[float, float]]
) -> pd.DataFrame:
    """One row per measure, and one for the same measure before training; cells are texts with intervals."""
    table = {name: value if isinstance(value, Mapping) else {"score": value} for name, value in measures.items()}
    names = dict.fromkeys(column.removeprefix(UNTRAINED) for row in table.values() for column in row)
    columns = [column for column in names if column not in ENDS]
    lines = []
    for measure, row in table.items():
        # more columns would not fit a phone
        for before, title in (("", measure), (UNTRAINED, f"{measure}, untrained")):
            keys = [before + column for column in columns]
            ends = [intervals.get((measure, key)) or own_ends(row, key) for key in keys]
            if {*keys} & {*row}:
                lines.append([title, *(cell(measure, row.get(key), end) for key, end in zip(keys, ends, strict=True))])
    return pd.DataFrame(lines, columns=["Measure", *map(str.capitalize, columns)])


def intervals(card: Mapping[str, Any]) -> dict[tuple[str, str], tuple[float, float]]:
    """Derive the intervals of a card's scores, by measure and column, from the numbers that it gives."""
    return {**retrieval_intervals(card), **probe_intervals(card)}

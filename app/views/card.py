"""Where does this model come from, and what may be done with it?"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import NamedTuple

import pandas as pd
import streamlit as st

import bgt_core
from app import exports, state
from app.components.copy import copy_link
from app.verbatim import verbatim, written_out
from app.views import measured
from app.views.help import how_to_read

PARTS = ("torch", "numpy", "scikit-learn", "sentencepiece", "streamlit", "plotly", "umap-learn")


class Paper(NamedTuple):
    """Where a model comes from."""

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


TITLES = {
    "data": "Training data",
    "protocol": "How it was measured",
    "fidelity": "Fidelity of what it writes",
    "kept": "Negation and numbers kept",
    "roles": "Who did what to whom",
    "command": "Trained with",
    "training": "Training took",
}
LONG = 12  # rows from which on a table scrolls
HELP_OF = {"Checkpoint": "The start of its weights' SHA-256 hash: exported files are named after it."}
MEANINGS = {  # by how the name of a setting ends
    "recipe": "the kind of model; `bgt train` takes its name",
    "d_model": "units of the decoders and of language encoders",
    "semantic_dim": "units of the semantic latent",
    "composed_dim": "those of them that a network composes, rather than averages",
    "language_dim": "units of each language latent",
    "word_dropout": "share of words that a decoder is not shown, so that it reads the latents",
    "readout": "whether decoders read a sample of the latents or their mean",
    "weights.semantic": "weight of the semantic latent's KL: the lower, the more it may say",
    "weights.language": "weight of each language latent's KL",
    "free_nats.semantic": "KL up to which the semantic latent costs nothing",
    "free_nats.language": "KL up to which a language latent costs nothing",
    "elbo.warmup_steps": "steps until every KL has its weight",
    "margin.margin": "how much nearer a translation has to be than another sentence, in cosine",
    "margin.weight": "weight of that loss",
    "label_smoothing": "probability that a decoder is taught to leave to other words",
    "data.columns": "what the columns of the training files hold",
    "data.vocab_size": "tokens of the vocabulary",
    "min_pieces": "tokens of the shortest sentence that is trained on",
    "max_pieces": "tokens of the longest",
    "valid_pairs": "pairs held out to watch the training",
    "train.epochs": "times that the data are read",
    "batch_tokens": "tokens of an update",
    "learning_rate": "the largest step size of Adam",
    "train.warmup_steps": "updates until the learning rate is reached",
    "cooldown": "share of the updates in which the learning rate falls to zero",
    "sampling_temperature": "1: languages are read as often as there are pairs; less: more evenly",
    "train.seed": "of everything that is drawn at random",
}
HELP = """
- **Brackets** hold 95% intervals: what other test sentences of the same kind would plausibly have given.
- **STS, Pearson × 100:** how well cosines agree with what people say of two sentences' likeness, 100 at most. The
  baseline is tf-idf, which compares words.
- **Retrieval, P@1:** the share of sentences whose nearest sentence in the other language is their own translation. It
  depends on how many there are to choose from, so two test sets give two numbers.
- **Probes:** what a linear classifier reads from a latent. The baseline always says the commonest answer.
- **ELBO, KL, nats:** the objective of training and its parts. A KL is how much a latent says about a sentence, in nats
  (1.44 bits); one near 0 says nothing.
- **Untrained:** the same model before training. What it already reaches, training did not teach.
"""


def paper(loaded: state.Loaded) -> Paper:
    """The one that the model is from, or was made for."""
    return PAPERS.get(loaded.info.get("recipe", ""), BGT)


def page() -> None:
    loaded = state.model()
    st.title("Model and data")
    st.markdown("Where does this model come from, how good is it, how was it made, and what may be done with it?")
    if loaded.info:
        ours(loaded)
    else:
        st.info(f"An encoder that is not ours, so nothing is recorded of it here. {loaded.device}.")
    with st.expander("Environment"):
        environment()
    caches()
    how_to_read(HELP)
    copy_link()


def ours(loaded: state.Loaded) -> None:
    """What the checkpoint says of itself."""
    info = loaded.info
    facts(loaded)
    card = {name: value for name, value in info.get("card", {}).items() if name not in ("scores", "probes", "schema")}
    measured.scores(loaded)
    measured.training(loaded)
    if not info.get("card"):
        st.info("This checkpoint has no card; `bgt export --card FILE` adds one: data, licences, limits.")
    records(card)
    st.subheader("Files")
    files = [{"File": name, "MB": f"{size / 1e6:.1f}", "SHA-256": f"`{info['files'][name]}`"}
             for name, size in info["bytes"].items()]  # fmt: skip
    st.table(pd.DataFrame(files), border="horizontal", hide_index=True,
             alt="The files of this checkpoint, their sizes and hashes")  # fmt: skip
    st.caption("Each hash was checked when the model was opened.")
    st.subheader("Settings")
    settings = pd.DataFrame(
        [
            (name, readable(value), meaning(name))
            for name, value in {"recipe": info["recipe"], **info["arguments"]}.items()
        ],
        columns=["Setting", "Value", "Meaning"],
    )
    st.dataframe(settings, hide_index=True, height=420, alt="The settings of the recipe that trained this model",
                 column_config={"Value": {"width": 95}, "Meaning": {"width": "large"}})  # fmt: skip
    exports.offer(f"bgt-settings-{loaded.short}", settings, latex=settings)
    st.subheader("Cite")
    st.code(paper(loaded).bibtex, language="bibtex", wrap_lines=True)


def facts(loaded: state.Loaded) -> None:
    """What it is, in a row that wraps evenly."""
    info = loaded.info
    facts = {
        "Languages": str(len(loaded.langs)),
        "Parameters": f"{info['parameters'] / 1e6:.1f} M",
        "Training steps": f"{info['step']:,}",
        "Checkpoint": loaded.short,
    }
    for column, (title, value) in zip(st.columns(4), facts.items(), strict=True):
        column.metric(title, value, border=True, help=HELP_OF.get(title))
    st.caption(f"Reads {loaded.translates or loaded.languages}.")


def meaning(setting: str) -> str:
    """What a setting does, in a few words; "" of those that their name explains."""
    return next((text for end, text in MEANINGS.items() if setting.endswith(end)), "")


def environment() -> None:
    parts = {"bgt": bgt_core.__version__, "Python": platform.python_version()}
    parts |= {part: version(part) for part in PARTS}
    st.dataframe(pd.DataFrame(parts.items(), columns=["Part", "Version"]), hide_index=True,
                 alt="Versions of what runs here")  # fmt: skip


def caches() -> None:
    st.subheader("What the app keeps")
    st.markdown("Models, vectors and maps stay in memory so that pages open at once. Clearing loses nothing but time.")
    if st.button("Clear the caches", icon=":material/delete:"):
        state.clear()
        st.success("Cleared; whatever is needed is computed again.")


def sentence_case(name: str) -> str:
    """A heading as the app writes it: units and acronyms stay as they are."""
    return name[:1].upper() + name[1:] if name.split(" ")[0].islower() else name


def readable(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return ", ".join(map(readable, value)) if isinstance(value, list) else str(value)


def records(card: Mapping[str, object]) -> None:
    """The model's card: lists of records as tables (data, licences), anything else as a line."""
    for name, value in card.items():
        title = TITLES.get(name, name.capitalize())
        st.subheader(verbatim(title))
        if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
            table = pd.DataFrame(value).map(readable).rename(columns=sentence_case)
            if len(table) > LONG:
                st.dataframe(table, hide_index=True, height=360, alt=f"The model's card: {title}")
            else:
                st.table(written_out(table), border="horizontal", hide_index=True, alt=f"The model's card: {title}")
        else:
            st.text(readable(value))

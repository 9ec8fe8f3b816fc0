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


def paper(loaded: state.Loaded) -> Paper:
    """The one that the model is from, or was made for."""
    return PAPERS.get(loaded.info.get("recipe", ""), BGT)


def page() -> None:
    loaded = state.model()
    info = loaded.info
    st.title("Model and data")
    st.markdown("Where does this model come from, how was it made, and what may be done with it?")
    if not info:
        st.info(f"An encoder that is not ours, so nothing is recorded of it here. {loaded.device}.")
        environment()
        caches()
        return
    card = {name: value for name, value in info.get("card", {}).items() if name not in ("scores", "probes")}
    if not card:
        st.info("This checkpoint has no card; `bgt export --card FILE` adds one: data, licences, limits.")
    records(card)
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("Files")
        files = [
            {"File": name, "MB": size / 1e6, "SHA-256": info["files"][name]} for name, size in info["bytes"].items()
        ]
        st.dataframe(
            pd.DataFrame(files),
            hide_index=True,
            column_config={"MB": st.column_config.NumberColumn(format="%.1f", width="small")},
            alt="The files of this checkpoint, their sizes and hashes",
        )
        st.caption("Each hash was checked when the model was opened.")
        environment()
    with right:
        st.subheader("Settings")
        values = {name: readable(value) for name, value in {"recipe": info["recipe"], **info["arguments"]}.items()}
        st.dataframe(pd.DataFrame(values.items(), columns=["Setting", "Value"]), hide_index=True, height=420,
                     alt="The settings of the recipe that trained this model")  # fmt: skip
    exports.offer(f"bgt-settings-{loaded.short}", pd.DataFrame(values.items(), columns=["Setting", "Value"]))
    st.subheader("Cite")
    st.code(paper(loaded).bibtex, language="bibtex")
    caches()


def environment() -> None:
    st.subheader("Environment")
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


def readable(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return ", ".join(map(readable, value)) if isinstance(value, list) else str(value)


def records(card: Mapping[str, object]) -> None:
    """The model's card: lists of records as tables (data, licences), anything else as a line."""
    for name, value in card.items():
        st.subheader(name.capitalize())
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            table = pd.DataFrame(value).map(readable)
            st.table(table, border="horizontal", hide_index=True, alt=f"The model's card: {name}")
        else:
            st.text(readable(value))

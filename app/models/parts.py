"""What several views of the page have: choices of sentences, and a table of differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from app.core import corpora, exports, markdown, rows, startup
from app.core.address import BOUND


def text_of(langs: Sequence[str], least: int = 1) -> startup.ParallelText | None:
    """Ask for sentences in at least that many of the languages; None, with a message, if the app has none."""
    texts = {name: text for name, text in corpora.readable(langs).items() if len(text.langs) >= least}
    if not texts:
        st.info(f"No {'translations' if least > 1 else 'sentences'} in {names_of(langs)}; give some with `--data`.")
        return None
    return texts[st.selectbox("Sentences", list(texts), key=f"cmp_text{least}", width=280, **BOUND)]


def names_of(langs: Sequence[str]) -> str:
    return ", ".join(map(rows.language_name, langs))


def lang_of(title: str, langs: Sequence[str], key: str) -> str:
    return st.selectbox(title, langs, format_func=rows.language_name, key=key, width=160, **BOUND)


def two_sentences(
    titles: Mapping[str, str], examples: Sequence[str], langs: Sequence[str], most: int
) -> list[tuple[str, str]]:
    """Ask for two sentences side by side, each with its language; `titles` by the key of a field."""
    given = []
    for column, (key, title), example in zip(st.columns(2), titles.items(), examples, strict=True):
        with column:
            text = st.text_input(title, example if "en" in langs else "", max_chars=most, key=key, **BOUND)
            given.append((text, lang_of("Its language", langs, f"{key}_lang")))
    return given


def differences(table: pd.DataFrame, title: str, name: str) -> None:
    """A row for each model: its score and its difference from the first, with intervals."""
    st.markdown(f"**{title}**")
    shown = pd.DataFrame(
        {
            "Model": table["model"],
            "Score": [f"{row.value:.1f} [{row.low:.1f}, {row.high:.1f}]" for row in table.itertuples()],
            "Minus the first": [
                "" if pd.isna(row.difference)
                else f"{row.difference:+z.1f} [{row.difference_low:+z.1f}, {row.difference_high:+z.1f}]"
                for row in table.itertuples()
            ],
        }
    )  # fmt: skip
    markdown.table(shown, f"{title} of each model, and differences")
    exports.offer(f"bgt-models-{name}", table, latex=shown, title=f"Export: {title.partition(',')[0]}")

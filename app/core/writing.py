"""Generate sentences from latents: in another style, or between two sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app.core import controls, rows
from app.core.address import BOUND
from app.core.markdown import failing, frame, verbatim, written
from app.core.state import Loaded, embed, inference
from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.evaluation.facts import checks, differences
from bgt_core.generation import generate
from bgt_core.generation.generate import Candidate
from bgt_core.generation.options import DEFAULT_SEARCH, Sample, Search
from bgt_core.generation.search import Report, quiet

MAX_LENGTH = 60  # tokens of generated text
MAX_CHARACTERS = 500  # of a sentence to generate from: far longer than what models are trained on
STEPS = 9


def candidates(
    loaded: Loaded,
    semantic: np.ndarray,
    second: np.ndarray,
    lang: str,
    *,
    search: Search = DEFAULT_SEARCH,
    seed: int = 0,
    max_length: int = MAX_LENGTH,
    report: Report = quiet,
) -> list[list[Candidate]]:
    """For each row of both latents, (N, L) and (N, M), generate candidates in `lang`, the most faithful first."""
    latents = {SEMANTIC: semantic, loaded.second_latent: second}
    with inference():
        return generate.candidates(
            loaded.bgt, latents, lang=lang, search=search, seed=seed, max_length=max_length, report=report
        )


def write(
    loaded: Loaded, semantic: np.ndarray, second: np.ndarray, lang: str, search: Search = DEFAULT_SEARCH
) -> list[str]:
    """The first candidate of each row."""
    return [best.text for best, *_ in candidates(loaded, semantic, second, lang, search=search)]


def transfer(
    loaded: Loaded,
    source: str,
    style: str,
    lang: str,
    search: Search,
    *,
    source_lang: str | None = None,
    mix: float = 1.0,
    seed: int = 0,
    max_length: int = MAX_LENGTH,
    report: Report = quiet,
) -> dict[str, Any]:
    """Generate the meaning of `source` in the style of `style`, with measures of all three sentences; also reconstruct
    both inputs, which shows the best that the decoder can do.

    `mix` below 1 keeps that share of the source's own style. It needs both in the same language, because the second
    latents of two languages are not comparable.
    """
    source_lang = source_lang or lang
    latents = (SEMANTIC, loaded.second_latent)
    source_semantic, source_second = (embed(loaded, [source], source_lang, latent) for latent in latents)
    style_semantic, style_second = (embed(loaded, [style], lang, latent) for latent in latents)
    second = mix * style_second + (1 - mix) * source_second if source_lang == lang else style_second
    # One search for all texts of a language. A sample draws the output alone, as the library does with that seed.
    wanted = [
        (lang, isinstance(search, Sample), source_semantic, second),
        (source_lang, False, source_semantic, source_second),
        (lang, False, style_semantic, style_second),
    ]
    ranked: dict[int, list[Candidate]] = {}
    seconds = 0.0
    for batch in dict.fromkeys(each[:2] for each in wanted):
        places = [at for at, each in enumerate(wanted) if each[:2] == batch]
        semantics, seconds_of = (np.concatenate([wanted[at][side] for at in places]) for side in (2, 3))
        started = perf_counter()
        ends = candidates(
            loaded, semantics, seconds_of, batch[0], search=search, seed=seed, max_length=max_length, report=report
        )
        seconds = seconds or perf_counter() - started
        ranked |= zip(places, ends, strict=True)
    output, source_again, style_again = (ranked[at][0].text for at in range(3))
    with inference():
        tokens = len(loaded.bgt.tokenizer.encode([output])[0])
    texts = {"Output": (output, lang), "Source": (source, source_lang), "Style": (style, lang)}
    texts |= {"Source, rebuilt": (source_again, source_lang), "Style, rebuilt": (style_again, lang)}
    settings = {"source": source, "source_lang": source_lang, "style": style, "lang": lang, "mix": mix}
    settings |= {"search": repr(search), "seed": seed, "max_length": max_length, "model": loaded.short}
    return {
        "output": output,
        **settings,
        "tokens_per_second": tokens / seconds,
        "rebuilt": source_again,
        "changed": differences(checks(source, source_lang, output, lang)),
        "candidates": [{"text": each.text, **each.kept} for each in ranked[0]],
        "measures": measures(loaded, texts),
    }


def measures(loaded: Loaded, texts: Mapping[str, tuple[str, str]]) -> list[dict[str, Any]]:
    """Named sentences and their languages, "Output" first and "Source" among them, with their similarity to the output
    in both latents (in the second one within one language only), the words shared with the source (Jaccard), and its
    counts."""
    source, _ = texts["Source"]
    cosines: dict[str, dict[str, float]] = {}
    for latent in (SEMANTIC, loaded.second_latent):
        same = [name for name, (_, lang) in texts.items() if latent == SEMANTIC or lang == texts["Output"][1]]
        vectors = np.concatenate([embed(loaded, [texts[name][0]], texts[name][1], latent) for name in same])
        similarities = loaded.encoder.similarity_pairwise(vectors, np.repeat(vectors[:1], len(same), axis=0))
        cosines[latent] = dict(zip(same[1:], similarities[1:].tolist(), strict=True))
    return [
        {
            "sentence": name,
            "text": text,
            "cosine": cosines[SEMANTIC].get(name),
            "style": cosines[loaded.second_latent].get(name),
            "shared": None if name == "Source" else rows.overlap(text, source),
            **rows.counts(text),
        }
        for name, (text, _) in texts.items()
    ]


def interpolate(
    loaded: Loaded, start: str, end: str, lang: str, moved: Sequence[str], steps: int
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Generate a sentence at each step of the straight line from one to another; also return the latents, {latent:
    (steps, D)}.

    Latents that are not `moved` stay those of the start.
    """
    fraction = np.linspace(0, 1, steps, dtype=np.float32)[:, None]
    latents = {}
    for latent in (SEMANTIC, loaded.second_latent):
        first, last = embed(loaded, [start, end], lang, latent)
        latents[latent] = first + fraction * ((last if latent in moved else first) - first)
    texts = write(loaded, latents[SEMANTIC], latents[loaded.second_latent], lang)
    vectors = embed(loaded, [start, end, *texts], lang, SEMANTIC)
    similarities = loaded.encoder.similarity(vectors[2:], vectors[:2])  # (steps, 2)
    table = pd.DataFrame(
        {"step": range(1, steps + 1), "text": texts, "to_start": similarities[:, 0], "to_end": similarities[:, 1]}
    )
    return table, {latent: latents[latent] for latent in moved}


@dataclass(frozen=True, eq=False)
class Interpolation:
    """Sentences generated at each step from one to another, and the latents that moved, (steps, D) each."""

    model: str  # its digest
    start: str
    end: str
    lang: str
    table: pd.DataFrame
    latents: Mapping[str, np.ndarray]


def form(loaded: Loaded, ends: Sequence[str], langs: Sequence[str], at_once: bool = False) -> Interpolation | None:
    """Show the form for two sentences, at first `ends`, and the last interpolation; `at_once` makes one without a
    button press."""
    st.subheader("Between two sentences")
    if loaded.cannot_write:
        st.info(loaded.cannot_write, icon=":material/edit_off:")
        return None
    st.markdown("Move through a latent in a straight line, and generate a sentence at every step.")
    second = loaded.second_latent
    names = ("Meaning", "Style") if second == LANGUAGE else (SEMANTIC.capitalize(), second.capitalize())
    moves = {names[0]: (SEMANTIC,), names[1]: (second,), "Both": (SEMANTIC, second)}
    with st.form("way"):
        left, right = st.columns(2)
        start = left.text_input("From", ends[0], key="start", max_chars=MAX_CHARACTERS, **BOUND)
        end = right.text_input("To", ends[1], key="end", max_chars=MAX_CHARACTERS, **BOUND)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            moved = controls.choice("Move", list(moves), "move")
            lang = controls.language("Language of both", langs, "way_lang")
            st.space("stretch")
            submitted = st.form_submit_button("Interpolate", type="primary")
    walk = st.session_state.get("walked")
    walk = walk if walk and walk.model == loaded.digest and walk.lang in langs else None
    if submitted or (at_once and walk is None):
        with failing(), st.spinner("Writing"):
            table_of_steps, latents = interpolate(loaded, start, end, lang, moves[moved], STEPS)
            walk = st.session_state["walked"] = Interpolation(loaded.digest, start, end, lang, table_of_steps, latents)
    if walk:
        follow(walk)
    return walk


@st.fragment
def follow(walk: Interpolation) -> None:
    """Show a slider along the steps; moving it computes nothing new."""
    texts = walk.table["text"].tolist()
    ends = (end if len(end) <= 28 else end[:27].rstrip() + "…" for end in (walk.start, walk.end))
    way = " to ".join(f"“{verbatim(end)}”" for end in ends)
    step = st.slider(f"Step of {len(texts)}, from {way}", 1, len(texts), opening(texts))
    row = walk.table.iloc[step - 1]
    written(row["text"])
    if len(set(texts)) == 1:
        st.caption("The model writes the same sentence at every step.")
    st.caption(f"Meaning: cosine {row['to_start']:z.2f} to the first sentence, {row['to_end']:z.2f} to the last.")
    with st.expander("Every step"):
        titles = {"step": "Step", "to_start": "Cosine to the first", "to_end": "To the last", "text": "Generated"}
        frame(
            walk.table[list(titles)].rename(columns=titles),
            "The sentence generated at every step, with its cosine to both ends",
            {titles["to_start"]: "%.2f", titles["to_end"]: "%.2f"},
        )


def opening(texts: Sequence[str]) -> int:
    """The step to open on, counted from 1: of those that differ from the first step, and if possible from the last, the
    one nearest to the middle; the middle if none differs."""
    middle = len(texts) // 2
    moved = [at for at, text in enumerate(texts) if text != texts[0]]
    between = [at for at in moved if texts[at] != texts[-1]]
    return 1 + min(between or moved or [middle], key=lambda at: abs(at - middle))

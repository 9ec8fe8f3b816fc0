"""Sentences written from latents: a style borrowed, a direction followed, the way from one sentence to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app import rows
from app.options import Corpus
from app.spaces import sentences
from app.state import Loaded, embed, inference
from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.generation.directions import Directions, directions
from bgt_core.generation.search import Report, Search, decode, quiet
from bgt_core.vectors.compare import cosines

MAX_CHARACTERS = 500  # of a sentence to generate from: far past what models are trained on
FITTED_ON = 2_000  # translation pairs that directions are fitted on
FACTORS = {  # what a direction changes, and the stops it is shown at, in its own unit
    "words": ("Longer", "words", (-6, -3, 0, 3, 6, 9)),
    "punctuation": ("More punctuation", "marks", (-4, -2, 0, 2, 4, 6)),
    "question": ("More of a question", "steps from statement to question", (-4, -2, 0, 2, 4, 6)),
}


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
    length: int = 60,
    report: Report = quiet,
) -> dict[str, Any]:
    """The meaning of `source` in the manner of `style`, with what can be measured of all three, and of both sentences
    written again from their own latents: the best that the decoder does.

    `mix` below 1 keeps that much of the manner the source has itself: only where both are of one language, for
    language latents of two share no axes.
    """
    source_lang = source_lang or lang
    meaning, own = (embed(loaded, [source], source_lang, latent) for latent in (SEMANTIC, LANGUAGE))
    other, styled = (embed(loaded, [style], lang, latent) for latent in (SEMANTIC, LANGUAGE))
    manner = mix * styled + (1 - mix) * own if source_lang == lang else styled
    how = {"search": search, "seed": seed, "max_length": length, "report": report}
    with inference():
        started = perf_counter()
        (output,) = decode(loaded.bgt, {SEMANTIC: meaning, LANGUAGE: manner}, lang=lang, **how)
        seconds = perf_counter() - started
        (source_again,) = decode(loaded.bgt, {SEMANTIC: meaning, LANGUAGE: own}, lang=source_lang, **how)
        (style_again,) = decode(loaded.bgt, {SEMANTIC: other, LANGUAGE: styled}, lang=lang, **how)
        pieces = len(loaded.bgt.tokenizer.encode([output])[0])
    texts = {"Output": (output, lang), "Source": (source, source_lang), "Style": (style, lang)}
    texts |= {"Source, rebuilt": (source_again, source_lang), "Style, rebuilt": (style_again, lang)}
    asked = {"source": source, "source_lang": source_lang, "style": style, "lang": lang, "mix": mix}
    asked |= {"search": repr(search), "seed": seed, "max_length": length, "model": loaded.short}
    return {"output": output, **asked, "pieces_per_second": pieces / seconds, "measures": measured(loaded, texts)}


def measured(loaded: Loaded, texts: Mapping[str, tuple[str, str]]) -> list[dict[str, Any]]:
    """Named sentences and their languages, "Output" and "Source" among them: cosines to the output in both latents
    (the language latent's within one language), words shared with the source (Jaccard), and what is counted."""
    output, lang = texts["Output"]
    source, _ = texts["Source"]

    def near(text: str, of: str, latent: str) -> float:
        return float(cosines(embed(loaded, [text], of, latent), embed(loaded, [output], lang, latent))[0])

    return [
        {
            "sentence": name,
            "text": text,
            "cosine": None if name == "Output" else near(text, of, SEMANTIC),
            "manner": None if name == "Output" or of != lang else near(text, of, LANGUAGE),
            "shared": None if name == "Source" else rows.overlap(text, source),
            **rows.counts(text),
        }
        for name, (text, of) in texts.items()
    ]


def way(
    loaded: Loaded, start: str, end: str, lang: str, moved: Sequence[str], stops: int, report: Report = quiet
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """A sentence at each stop of the straight way from one to another, and the latents there, {latent: (stops, D)}.

    Latents that are not `moved` stay those of the start.
    """
    share = np.linspace(0, 1, stops, dtype=np.float32)[:, None]
    latents = {}
    for latent in (SEMANTIC, LANGUAGE):
        one, other = embed(loaded, [start, end], lang, latent)
        latents[latent] = one + share * ((other if latent in moved else one) - one)
    with inference():
        written = decode(loaded.bgt, latents, lang=lang, report=report)
        vectors = loaded.bgt.embed([start, end, *written], lang=lang, latent=SEMANTIC)
    table = pd.DataFrame(
        {
            "stop": range(1, stops + 1),
            "text": written,
            "to_start": cosines(vectors[2:], vectors[:1]),
            "to_end": cosines(vectors[2:], vectors[1:2]),
        }
    )
    return table, {latent: latents[latent] for latent in moved}


@st.cache_resource(max_entries=8, show_spinner="Finding directions")
def found(digest: str, corpus: Corpus, lang: str, _loaded: Loaded) -> Directions:
    """Directions of the language latent, fitted on a corpus' sentences of that language."""
    table = sentences(corpus, FITTED_ON)
    table = table[table["lang"] == lang]
    factors = np.column_stack([table["words"], table["punctuation"], table["mark"] == "question"])
    return directions(embed(_loaded, table["text"], lang, LANGUAGE), factors, tuple(FACTORS))


def moved(
    loaded: Loaded, known: Directions, source: str, lang: str, steps: Sequence[Sequence[float]], report: Report = quiet
) -> list[str]:
    """The source written anew with its manner moved, once for each row of steps (S, K), in units of the factors."""
    manner = embed(loaded, [source], lang, LANGUAGE)
    there = known.move(manner, np.asarray(steps, dtype=float))
    meaning = np.repeat(embed(loaded, [source], lang, SEMANTIC), len(there), axis=0)
    with inference():
        return decode(loaded.bgt, {SEMANTIC: meaning, LANGUAGE: there}, lang=lang, report=report)


def along(loaded: Loaded, known: Directions, source: str, lang: str, report: Report = quiet) -> pd.DataFrame:
    """The source at every stop of every direction, one at a time."""
    asked = [
        (name, stop, [stop * (name == other) for other in FACTORS])
        for name, (_, _, stops) in FACTORS.items()
        for stop in stops
    ]
    written = moved(loaded, known, source, lang, [steps for _, _, steps in asked], report)
    made = [
        {"direction": FACTORS[name][0], "step": stop, "text": text, **rows.counts(text)}
        for (name, stop, _), text in zip(asked, written, strict=True)
    ]
    return pd.DataFrame(made)

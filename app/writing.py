"""Sentences written from latents: a style borrowed, a direction followed, a line from one sentence to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app import rows
from app.spaces import sentences
from app.startup import ParallelText
from app.state import Loaded, embed, inference
from bgt_core.contracts import SEMANTIC
from bgt_core.data.examples import example_sentences
from bgt_core.generation import rerank
from bgt_core.generation.directions import Directions, directions
from bgt_core.generation.options import Beam, Search
from bgt_core.generation.rerank import Candidate
from bgt_core.generation.search import Report, quiet

MAX_LENGTH = 60  # tokens of what is written
MAX_CHARACTERS = 500  # of a sentence to generate from: far longer than what models are trained on
LIKE = 20  # examples whose translations say how a sentence would be put: best of 1, 5, 20 and all of them
FITTED_ON = 2_000  # translations that directions are fitted on
DEFAULT_SEARCH = Beam(8, no_repeat_ngram=3, max_run=1)  # rebuilds example sentences best, and never loops
POOR = 0.85  # semantic cosine of a sentence and its rebuilding; below, 3 of 4 examples have a chrF under 60
FACTORS = {  # what a direction changes, and the steps it is shown at, in its own unit
    "words": ("Longer", "words", (-6, -3, 0, 3, 6, 9)),
    "punctuation": ("More punctuation", "marks", (-4, -2, 0, 2, 4, 6)),
    "question": ("More of a question", "steps from statement to question", (-4, -2, 0, 2, 4, 6)),
}


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
    """For each row of both latents, (N, L) and (N, M), sentences of `lang`, the one that keeps most of both first."""
    latents = {SEMANTIC: semantic, loaded.second_latent: second}
    with inference():
        return rerank.candidates(
            loaded.bgt, latents, lang=lang, search=search, seed=seed, max_length=max_length, report=report
        )


def write(
    loaded: Loaded,
    semantic: np.ndarray,
    second: np.ndarray,
    lang: str,
    search: Search = DEFAULT_SEARCH,
    report: Report = quiet,
) -> list[str]:
    """The first candidate of each row."""
    ranked = candidates(loaded, semantic, second, lang, search=search, report=report)
    return [best.text for best, *_ in ranked]


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
    """The meaning of `source` in the style of `style`, with measures of all three, and of both sentences written
    again from their own latents: the best that the decoder does.

    `mix` below 1 keeps that much of the source's own style: only where both are of one language, for the second
    latents of two languages share no axes.
    """
    source_lang = source_lang or lang
    latents = (SEMANTIC, loaded.second_latent)
    source_semantic, source_second = (embed(loaded, [source], source_lang, latent) for latent in latents)
    style_semantic, style_second = (embed(loaded, [style], lang, latent) for latent in latents)
    second = mix * style_second + (1 - mix) * source_second if source_lang == lang else style_second

    def best_first(semantic: np.ndarray, second: np.ndarray, lang: str) -> list[Candidate]:
        (ranked,) = candidates(
            loaded, semantic, second, lang, search=search, seed=seed, max_length=max_length, report=report
        )
        return ranked

    started = perf_counter()
    ranked = best_first(source_semantic, second, lang)
    seconds = perf_counter() - started
    source_again, *_ = best_first(source_semantic, source_second, source_lang)
    style_again, *_ = best_first(style_semantic, style_second, lang)
    output = ranked[0].text
    with inference():
        pieces = len(loaded.bgt.tokenizer.encode([output])[0])
    texts = {"Output": (output, lang), "Source": (source, source_lang), "Style": (style, lang)}
    texts |= {"Source, rebuilt": (source_again.text, source_lang), "Style, rebuilt": (style_again.text, lang)}
    settings = {"source": source, "source_lang": source_lang, "style": style, "lang": lang, "mix": mix}
    settings |= {"search": repr(search), "seed": seed, "max_length": max_length, "model": loaded.short}
    return {
        "output": output,
        **settings,
        "tokens_per_second": pieces / seconds,
        "rebuilt": (source_again.text, source_again.kept[SEMANTIC]),
        "candidates": [{"text": each.text, **each.kept} for each in ranked],
        "measures": measures(loaded, texts),
    }


def rebuilt(loaded: Loaded, text: str, lang: str, search: Search = DEFAULT_SEARCH) -> tuple[str, float]:
    """The sentence written again from its own latents, and the semantic cosine of the two; below `POOR` it is beyond
    the model."""
    semantic, second = (embed(loaded, [text], lang, latent) for latent in (SEMANTIC, loaded.second_latent))
    ((best, *_),) = candidates(loaded, semantic, second, lang, search=search)
    return best.text, best.kept[SEMANTIC]


def beyond(rebuilt: tuple[str, float]) -> str:
    """What to say of a sentence whose rebuilding is poor; "" where it is not."""
    text, cosine = rebuilt
    if cosine >= POOR:
        return ""
    return (
        f"This sentence is beyond this small model: rebuilt from its own latents it becomes “{text}”, semantic cosine "
        f"{cosine:z.2f}. What is written from it can be no better."
    )


def in_language(loaded: Loaded, text: str, lang: str, target_lang: str, search: Search = DEFAULT_SEARCH) -> str:
    """The same meaning in another language, in the style that translations of like sentences have.

    Second latents of two languages share no axes, so the style is the mean of the second latents of the translations of
    those example sentences whose style is nearest. NotFound for a language without examples.
    """
    if lang == target_lang:
        return rebuilt(loaded, text, lang, search)[0]
    pairs = example_sentences((lang, target_lang))
    sources, targets = zip(*pairs, strict=True)
    own = embed(loaded, sources, lang, loaded.second_latent)
    other = embed(loaded, targets, target_lang, loaded.second_latent)
    similarities = loaded.encoder.similarity(embed(loaded, [text], lang, loaded.second_latent), own)[0]
    second = other[np.argsort(-similarities, kind="stable")[:LIKE]].mean(0, keepdims=True)
    return write(loaded, embed(loaded, [text], lang, SEMANTIC), second, target_lang, search)[0]


def grid(
    loaded: Loaded,
    meanings: Sequence[str],
    meaning_lang: str,
    styles: Sequence[str],
    lang: str,
    *,
    search: Search = DEFAULT_SEARCH,
    report: Report = quiet,
) -> tuple[pd.DataFrame, list[tuple[str, float]]]:
    """Every meaning in every style, all in one search: a row a cell, meanings outside; and each meaning rebuilt.

    `semantic` and `second` are the cosines of what is written to the meaning's semantic latent and to the style's
    second latent; `unchanged` is the latter of the meaning's own sentence, NaN where that is of another language.
    """
    semantic, own = (embed(loaded, meanings, meaning_lang, latent) for latent in (SEMANTIC, loaded.second_latent))
    second = embed(loaded, styles, lang, loaded.second_latent)
    cells = np.repeat(semantic, len(styles), axis=0), np.tile(second, (len(meanings), 1))
    alike = meaning_lang == lang  # then the rebuilt ones fit into the same search
    if alike:
        cells = np.concatenate([cells[0], semantic]), np.concatenate([cells[1], own])
    best = [ranked[0] for ranked in candidates(loaded, *cells, lang, search=search, report=report)]
    count = len(meanings) * len(styles)
    again = best[count:]
    if not alike:
        ranked = candidates(loaded, semantic, own, meaning_lang, search=search, report=report)
        again = [each[0] for each in ranked]
    unchanged = loaded.encoder.similarity(own, second) if alike else np.full((len(meanings), len(styles)), np.nan)
    table = pd.DataFrame(
        {
            "meaning": np.repeat(meanings, len(styles)),
            "style": list(styles) * len(meanings),
            "text": [each.text for each in best[:count]],
            "semantic": [each.kept[SEMANTIC] for each in best[:count]],
            "second": [each.kept[loaded.second_latent] for each in best[:count]],
            "unchanged": unchanged.ravel(),
        }
    )
    return table, [(each.text, each.kept[SEMANTIC]) for each in again]


def measures(loaded: Loaded, texts: Mapping[str, tuple[str, str]]) -> list[dict[str, Any]]:
    """Named sentences and their languages, "Output" and "Source" among them: similarity to the output in both latents
    (the second latent's within one language), words shared with the source (Jaccard), and what is counted."""
    output, output_lang = texts["Output"]
    source, _ = texts["Source"]

    def to_output(text: str, lang: str, latent: str) -> float:
        pair = embed(loaded, [text], lang, latent), embed(loaded, [output], output_lang, latent)
        return float(loaded.encoder.similarity_pairwise(*pair)[0])

    return [
        {
            "sentence": name,
            "text": text,
            "cosine": None if name == "Output" else to_output(text, lang, SEMANTIC),
            "style": None if name == "Output" or lang != output_lang else to_output(text, lang, loaded.second_latent),
            "shared": None if name == "Source" else rows.overlap(text, source),
            **rows.counts(text),
        }
        for name, (text, lang) in texts.items()
    ]


def interpolate(
    loaded: Loaded, start: str, end: str, lang: str, moved: Sequence[str], steps: int, report: Report = quiet
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """A sentence at each step of the straight line from one to another, and the latents there, {latent: (steps, D)}.

    Latents that are not `moved` stay those of the start.
    """
    fraction = np.linspace(0, 1, steps, dtype=np.float32)[:, None]
    latents = {}
    for latent in (SEMANTIC, loaded.second_latent):
        first, last = embed(loaded, [start, end], lang, latent)
        latents[latent] = first + fraction * ((last if latent in moved else first) - first)
    texts = write(loaded, latents[SEMANTIC], latents[loaded.second_latent], lang, report=report)
    vectors = embed(loaded, [start, end, *texts], lang, SEMANTIC)
    similarities = loaded.encoder.similarity(vectors[2:], vectors[:2])  # (steps, 2)
    table = pd.DataFrame(
        {
            "step": range(1, steps + 1),
            "text": texts,
            "to_start": similarities[:, 0],
            "to_end": similarities[:, 1],
        }
    )
    return table, {latent: latents[latent] for latent in moved}


@st.cache_resource(max_entries=8, show_spinner="Finding directions")
def fitted_directions(digest: str, text: ParallelText, lang: str, _loaded: Loaded) -> Directions:
    """Directions of the second latent, fitted on a text's sentences of that language."""
    table = sentences(text, FITTED_ON)
    table = table[table["lang"] == lang]
    factors = np.column_stack([table["words"], table["punctuation"], table["mark"] == "question"])
    return directions(embed(_loaded, table["text"], lang, _loaded.second_latent), factors, tuple(FACTORS))


def write_moved(
    loaded: Loaded,
    directions: Directions,
    source: str,
    lang: str,
    steps: Sequence[Sequence[float]],
    report: Report = quiet,
) -> list[str]:
    """The source written again with its second latent moved, once for each row of steps (S, K), in units of the
    factors."""
    second = directions.move(embed(loaded, [source], lang, loaded.second_latent), np.asarray(steps, dtype=float))
    semantic = np.repeat(embed(loaded, [source], lang, SEMANTIC), len(second), axis=0)
    return write(loaded, semantic, second, lang, report=report)


def every_step(loaded: Loaded, directions: Directions, source: str, lang: str, report: Report = quiet) -> pd.DataFrame:
    """The source at every step of every direction, one direction at a time."""
    moves = [
        (title, step, [step * (name == other) for other in FACTORS])
        for name, (title, _, steps) in FACTORS.items()
        for step in steps
    ]
    texts = write_moved(loaded, directions, source, lang, [steps for _, _, steps in moves], report)
    return pd.DataFrame(
        [
            {"direction": title, "step": step, "text": text, **rows.counts(text)}
            for (title, step, _), text in zip(moves, texts, strict=True)
        ]
    )

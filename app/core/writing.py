"""Generate sentences from latents: in another style, along a direction, or between two sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from app.core import rows
from app.core.state import Loaded, embed, inference
from bgt_core.contracts import SEMANTIC
from bgt_core.evaluation.facts import checks, differences
from bgt_core.generation import generate
from bgt_core.generation.generate import Candidate
from bgt_core.generation.options import DEFAULT_SEARCH, Beam, Search
from bgt_core.generation.search import Report, quiet

MAX_LENGTH = 60  # tokens of generated text
MAX_CHARACTERS = 500  # of a sentence to generate from: far longer than what models are trained on


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
    loaded: Loaded,
    semantic: np.ndarray,
    second: np.ndarray,
    lang: str,
    search: Search = DEFAULT_SEARCH,
) -> list[str]:
    """The first candidate of each row."""
    ranked = candidates(loaded, semantic, second, lang, search=search)
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
    draft: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Generate the meaning of `source` in the style of `style`, with measures of all three sentences; also reconstruct
    both inputs, which shows the best that the decoder can do.

    `mix` below 1 keeps that share of the source's own style. It needs both in the same language, because the second
    latents of two languages are not comparable. `draft` gets the text of a greedy search, which is ready
    long before that of a beam.
    """
    source_lang = source_lang or lang
    latents = (SEMANTIC, loaded.second_latent)
    source_semantic, source_second = (embed(loaded, [source], source_lang, latent) for latent in latents)
    style_semantic, style_second = (embed(loaded, [style], lang, latent) for latent in latents)
    second = mix * style_second + (1 - mix) * source_second if source_lang == lang else style_second

    def best_first(semantic: np.ndarray, second: np.ndarray, lang: str, search: Search = search) -> list[Candidate]:
        (ranked,) = candidates(
            loaded, semantic, second, lang, search=search, seed=seed, max_length=max_length, report=report
        )
        return ranked

    if draft and isinstance(search, Beam):
        greedy, *_ = best_first(source_semantic, second, lang, replace(search, size=1))
        draft(greedy.text)
    started = perf_counter()
    ranked = best_first(source_semantic, second, lang)
    seconds = perf_counter() - started
    source_again, *_ = best_first(source_semantic, source_second, source_lang)
    style_again, *_ = best_first(style_semantic, style_second, lang)
    output = ranked[0].text
    with inference():
        tokens = len(loaded.bgt.tokenizer.encode([output])[0])
    texts = {"Output": (output, lang), "Source": (source, source_lang), "Style": (style, lang)}
    texts |= {"Source, rebuilt": (source_again.text, source_lang), "Style, rebuilt": (style_again.text, lang)}
    settings = {"source": source, "source_lang": source_lang, "style": style, "lang": lang, "mix": mix}
    settings |= {"search": repr(search), "seed": seed, "max_length": max_length, "model": loaded.short}
    return {
        "output": output,
        **settings,
        "tokens_per_second": tokens / seconds,
        "rebuilt": source_again.text,
        "changed": differences(checks(source, source_lang, output, lang)),
        "candidates": [{"text": each.text, **each.kept} for each in ranked],
        "measures": measures(loaded, texts),
    }


def measures(loaded: Loaded, texts: Mapping[str, tuple[str, str]]) -> list[dict[str, Any]]:
    """Named sentences and their languages, "Output" and "Source" among them, with their similarity to the output in
    both latents (in the second one within one language only), the words shared with the source (Jaccard), and its
    counts."""
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

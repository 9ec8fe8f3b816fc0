"""Are roles kept? Minimal pairs of the grammar, written and weighed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bgt_core.contracts import LANGUAGE
from bgt_core.evaluation.fidelity.measures import Score, share
from bgt_core.evaluation.fidelity.plan import Latents, Writer, Writing, role_writings
from bgt_core.grammar.roles import KINDS, role_pairs

NAMED, RIGHT, LIKELIER = "both named %", "roles right %", "right likelier %"
MEASURES = (NAMED, RIGHT, LIKELIER)
ROLE_LANGS = ("en", "fr")  # of the grammar


@dataclass(frozen=True, eq=False)
class RoleScores:
    """Of one writing and one kind of roles; intervals are over minimal pairs."""

    writing: Writing
    kind: str
    scores: dict[str, Score]  # NAMED, RIGHT, LIKELIER


def measure_roles(
    writer: Writer, langs: Sequence[str], count: int, seed: int, say: Callable[[str], None]
) -> list[RoleScores]:
    """`count` minimal pairs in those of `langs` that the grammar has.

    An output is right where each of the two persons is in it once, who does it before the other. It needs no writing
    to see whether, given a sentence's latents, it is likelier than its twin; equally likely counts half.
    """
    langs = [lang for lang in langs if lang in ROLE_LANGS]
    pairs = role_pairs(count, seed)
    if not pairs or not langs:
        return []
    texts = {lang: [text for pair in pairs for text in pair.texts[lang]] for lang in langs}
    persons = {
        lang: [names for pair in pairs for names in (pair.persons[lang], pair.persons[lang][::-1])] for lang in langs
    }
    kinds = np.array([KINDS.index(pair.kind) for pair in pairs])
    latents = Latents(writer, texts)
    scores = []
    for writing in role_writings(langs, 2 * count, LANGUAGE in writer.latents):
        say(f"roles: {writing.lang} from {writing.source_lang} in the manner of {writing.manner}")
        vectors, lang = latents.of(writing), writing.lang
        written = writer.write(vectors, lang=lang)
        placed = [places(text, names) for text, names in zip(written, persons[lang], strict=True)]
        twins = [texts[lang][row ^ 1] for row in range(2 * count)]
        gain = writer.log_likelihood(vectors, texts[lang], lang=lang) - writer.log_likelihood(vectors, twins, lang=lang)
        by_measure = {
            NAMED: np.array([place is not None for place in placed]),
            RIGHT: np.array([place == "right" for place in placed]),
            LIKELIER: (np.sign(gain) + 1) / 2,
        }
        for number, kind in enumerate(KINDS):
            if (kinds == number).any():
                of_pairs = {name: rows.reshape(-1, 2).mean(1) for name, rows in by_measure.items()}  # (count,)
                scores.append(
                    RoleScores(writing, kind, {name: share(mean[kinds == number]) for name, mean in of_pairs.items()})
                )
    return scores


def places(text: str, persons: tuple[str, str]) -> str | None:
    """How the two stand in a sentence, "right" or "wrong"; None unless each is in it once.

    >>> places("the baker thanks the king.", ("king", "baker"))
    'wrong'
    """
    words = re.findall(r"\w+", text.lower())
    first, second = persons
    if words.count(first) != 1 or words.count(second) != 1:
        return None
    return "right" if words.index(first) < words.index(second) else "wrong"

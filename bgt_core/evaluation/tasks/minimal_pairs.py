"""Generate sentences from their latents, and measure whether the generated text keeps who does what to whom."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from bgt_core.contracts import LANGUAGE, SentenceEncoder
from bgt_core.data.columns import text_columns
from bgt_core.errors import UsageError, check_least
from bgt_core.evaluation.comparison import Statistic
from bgt_core.evaluation.task import BeamSize, Task
from bgt_core.evaluation.writing import SWAPPED, Latents, Writing, of_systems, writers, writings
from bgt_core.grammar import ACT, GIVE, LANGS, RolePair, role_pairs

if TYPE_CHECKING:  # these imports load torch, which `bgt evaluate --help` does not need
    from bgt_core.generation.generate import Writer

NAMED, RIGHT, LIKELIER = "both named %", "roles right %", "right likelier %"


class RolesKey(NamedTuple):
    written: str  # language of the generated text
    meaning_of: str
    style_of: str
    roles: str
    measure: str
    pairs: int


@dataclass(frozen=True)
class MinimalPairs(Task[Sequence[RolePair]]):
    """Minimal pairs: does text generated from latents keep who does what to whom?

    The sentences are from the built-in grammar; each has a twin in which two persons have swapped roles. A generated
    sentence is right if it names each of the two persons once, the agent first. A second measure compares likelihoods:
    it counts how often, given a sentence's latents, the sentence is likelier than its twin. Ties count half.
    """

    across = "measure"

    langs: Annotated[str, "Languages of the pairs: en, fr or en,fr."] = ",".join(LANGS)
    count: Annotated[int, "Number of minimal pairs."] = 100
    beam: BeamSize = 4

    def load(self, paths: Sequence[Path], *, seed: int) -> list[RolePair]:
        if paths:
            raise UsageError("must be left out: this task uses sentences of the built-in grammar.", parameter="data")
        check_least(1, count=self.count)
        return role_pairs(self.count, seed)

    def statistic(self, items: Sequence[RolePair], encoders: Mapping[str, SentenceEncoder], *, seed: int) -> Statistic:
        """Generate sentences from their own latents, a translation's semantic latent, or a twin's language latent."""
        langs = text_columns(self.langs)[1]
        if not set(langs) <= set(LANGS):
            raise UsageError(f"{self.langs}: expected en, fr or en,fr.", parameter="langs")
        kinds = np.array([(GIVE, ACT).index(pair.kind) for pair in items])
        by_key: dict[RolesKey, dict[str, np.ndarray]] = {}
        for name, writer in writers(encoders, langs, self.beam).items():
            for writing, measure, rows in measured(writer, langs, items):
                for number, kind in enumerate((GIVE, ACT)):
                    if of_kind := int((kinds == number).sum()):
                        key = RolesKey(writing.lang, writing.meaning_of, writing.style_of, kind, measure, of_kind)
                        by_key.setdefault(key, {})[name] = rows[kinds == number]
        about = f"{len(items):,} minimal pairs of the grammar, beam {self.beam}"
        return of_systems(list(encoders), len(items), {}, by_key, about=about)


TASK = MinimalPairs


def measured(writer: Writer, langs: Sequence[str], pairs: Sequence[RolePair]) -> list[tuple[Writing, str, np.ndarray]]:
    """Return (writing, measure, scores of N pairs) for each plan and measure; a pair's score is its sentences' mean."""
    texts = {lang: [text for pair in pairs for text in pair.texts[lang]] for lang in langs}
    persons = {
        lang: [names for pair in pairs for names in (pair.persons[lang], pair.persons[lang][::-1])] for lang in langs
    }
    latents = Latents(writer, texts)
    rows = []
    twin = np.arange(2 * len(pairs)) ^ 1  # row of each sentence's twin, in which the roles are swapped
    styles = dict.fromkeys(langs, twin) if LANGUAGE in writer.latents else {}
    for writing in writings(langs, len(twin), SWAPPED, styles):
        vectors, lang = latents.of(writing), writing.lang
        written = writer.write(vectors, lang=lang)
        placed = [places(text, names) for text, names in zip(written, persons[lang], strict=True)]
        twins = [texts[lang][row] for row in twin]
        gain = writer.log_likelihood(vectors, texts[lang], lang=lang) - writer.log_likelihood(vectors, twins, lang=lang)
        by_measure = {
            NAMED: np.array([place is not None for place in placed]),
            RIGHT: np.array([place == "right" for place in placed]),
            LIKELIER: (np.sign(gain) + 1) / 2,
        }
        rows += [(writing, measure, row.reshape(-1, 2).mean(1)) for measure, row in by_measure.items()]
    return rows


def places(text: str, persons: tuple[str, str]) -> str | None:
    """Return "right" if a sentence names two persons in this order, else "wrong"; None unless each occurs once.

    >>> places("the baker thanks the king.", ("king", "baker"))
    'wrong'
    """
    words = re.findall(r"\w+", text.lower())
    first, second = persons
    if words.count(first) != 1 or words.count(second) != 1:
        return None
    return "right" if words.index(first) < words.index(second) else "wrong"

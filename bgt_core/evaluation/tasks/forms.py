"""Forms: what a linear probe tells of the tense of verbs and the gender of articles, in the grammar's sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated, NamedTuple

import numpy as np

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.articles import RULES, swap
from bgt_core.errors import UsageError, check_least
from bgt_core.evaluation.comparison import Statistic
from bgt_core.evaluation.systems import systems
from bgt_core.evaluation.task import Lang, Latent, Task
from bgt_core.evaluation.tasks.surface import FOLDS, GUESS
from bgt_core.grammar import LANGS, Pair, pairs

DRAWN = 10  # pairs of the grammar for each sentence of a property
LEAST = 100  # sentences: fewer leave folds without a tense
TENSES = {"past": "past", "habit": "present", "now": "present"}  # of a clause in the grammar; a future is left out
FRAMES = ("say", "ask")  # sentences of one clause, whose verb says what somebody does
# words that tell the tense too
TIMED = re.compile(
    r"(?:last|next|every) |now|later|soon|today|tonight|tomorrow|yesterday|twice|one day|this (?:afternoon|morning)"
    r"|(?:a long time|an hour|two days) ago|after dinner|at (?:night|noon|the moment)|from time to time"
    r"|in (?:an hour|two days|summer|winter|the evening)|on \w+days|the day after"
)


@dataclass(frozen=True, eq=False)
class Labelled:
    """N sentences with labels; a probe is tested on groups that it was not trained on."""

    sentences: Sequence[str]
    labels: Sequence[str]
    groups: Sequence[str | int]


class FormsKey(NamedTuple):
    property: str
    sentences: int


@dataclass(frozen=True)
class Forms(Task[Mapping[str, Labelled]]):
    """Forms: does a linear probe tell the tense of a verb, and an article of the wrong gender, from a vector?

    Sentences are those of the built-in grammar. Tense is past or present, without words such as "yesterday", and each
    verb is in one fold, as often in the past as in the present. In French, each sentence comes twice, once with an
    article of the other gender; both are in one fold. In percent of sentences, in five folds. The last system guesses
    what is most frequent.
    """

    count: Annotated[int | None, "Number of sentences for each property, at most; by default 1,000."] = None
    lang: Lang = "en"
    latent: Latent = None

    def load(self, paths: Sequence[Path], *, seed: int) -> Mapping[str, Labelled]:
        """Draw from the grammar."""
        if paths:
            raise UsageError("the sentences are those of the built-in grammar; leave DATA out.", parameter="data")
        if self.lang not in LANGS:
            raise UsageError(f"{self.lang}: the grammar has {' and '.join(LANGS)}.", parameter="lang")
        count = 1_000 if self.count is None else self.count
        check_least(LEAST, count=count)
        drawn = pairs(DRAWN * count, seed)
        properties = {"tense": tense(drawn, self.lang)}
        if self.lang in RULES:
            properties["gender of an article"] = gender(drawn, self.lang, count, seed)
        return properties

    def statistic(
        self, items: Mapping[str, Labelled], encoders: Mapping[str, SentenceEncoder], *, seed: int
    ) -> Statistic:
        """Fit the probes of each system."""
        from bgt_core.vectors.linear_probe import held_out_hits  # a second, which other tasks need not wait

        rows = systems(encoders, [self.lang], self.latent, reserved=[GUESS])
        hits: dict[FormsKey, np.ndarray] = {}
        for name, of in items.items():
            folds, labels = folds_of(of.groups, seed), np.array(of.labels)
            right_by_system: list[np.ndarray] = []
            for system in rows:
                right_by_system.append(held_out_hits(system.embed(of.sentences, self.lang), labels, folds))
            right_by_system.append(labels == Counter(of.labels).most_common(1)[0][0])
            hits[FormsKey(name, len(labels))] = np.stack(right_by_system).astype(float)
        counts = {name: len(of.labels) for name, of in items.items()}
        sizes = ", ".join(f"{count:,} for the {name}" for name, count in counts.items())
        return Statistic(
            systems=[*(system.name for system in rows), GUESS],
            hits=hits,
            about=f"sentences of the grammar ({self.lang}), {sizes}; those that a linear probe is right about, x 100",
            counts=counts,
        )


TASK = Forms


def tense(drawn: Sequence[Pair], lang: str) -> Labelled:
    """Sentences of one clause, of each verb as many in the past as in the present; a verb is a group."""
    found: dict[str, dict[str, list[str]]] = {}  # verb -> tense -> sentences
    for pair in drawn:
        places = [place for place, key in enumerate(pair.meaning) if key in (*TENSES, "future")]
        if pair.meaning[0] in FRAMES and len(places) == 1 and not any(map(TIMED.match, pair.meaning)):
            (place,) = places
            verb = pair.meaning[place - 1]  # it stands before its tense
            label = TENSES.get(pair.meaning[place], "")
            found.setdefault(verb, {"past": [], "present": [], "": []})[label].append(pair.texts[lang])
    chosen = [
        (text, label, verb)
        for verb, of in found.items()
        for label in ("past", "present")
        for text in of[label][: min(len(of["past"]), len(of["present"]))]
    ]
    return Labelled(*(list(column) for column in zip(*chosen, strict=True)))


def gender(drawn: Sequence[Pair], lang: str, count: int, seed: int) -> Labelled:
    """Sentences as they are and with one article swapped to the other gender; both versions are a group."""
    rng, versions = Random(seed), list[tuple[str, str]]()
    for pair in drawn:
        swapped = swap(pair.texts[lang], lang, rng)
        if swapped and len(versions) < count // 2:
            versions.append((pair.texts[lang], swapped))
    return Labelled(
        [text for pair in versions for text in pair],
        ["right", "wrong"] * len(versions),
        [group for group in range(len(versions)) for _ in range(2)],
    )


def folds_of(groups: Sequence[str | int], seed: int) -> np.ndarray:
    """A fold for each item, (N,); items of a group are in one fold."""
    names, places = np.unique(np.array(groups), return_inverse=True)
    return (np.random.default_rng(seed).permutation(len(names)) % FOLDS)[places]

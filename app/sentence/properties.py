"""Properties of one sentence as linear probes predict them; a rule labels the example sentences that they learn
from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from app.core import rows
from app.core.state import BY_DIGEST, Loaded, embed
from app.sentence.compute import corpus, of_corpus
from bgt_core.evaluation.bootstrap import wilson
from probes.task import Items, ProbeTask, count_words
from probes.tasks.length import LENGTH

if TYPE_CHECKING:
    from bgt_core.vectors.linear_probe import LinearProbe
    from probes.measures.study import Study

FOLDS = 2  # probes of each property, each tested on its own tenth of the sentences
MIN_SENTENCES = 200  # of a language; with fewer, no probe is trained
PERSONS = {
    "en": {
        "I, we": "i me my mine myself we us our ours i'm i've i'd i'll we're we've we'd we'll let's",
        "you": "you your yours yourself you're you've you'd you'll",
        "he, she, they": "he him his she her hers they them their theirs he's she's they're they've he'd she'd he'll "
        "she'll they'll",
    },
    "fr": {
        "I, we": "je me moi mon ma mes nous notre nos j m",
        "you": "tu te toi ton ta tes vous votre vos t",
        "he, she, they": "il elle ils elles lui leur leurs son sa ses eux",
    },
    "es": {
        "I, we": "yo me mi mis mí nosotros nosotras nos nuestro nuestra",
        "you": "tú te tu tus ti usted ustedes vosotros os",
        "he, she, they": "él ella ellos ellas le les lo su sus",
    },
    "de": {
        "I, we": "ich mich mir mein meine meinen meinem meiner wir uns unser unsere",
        "you": "du dich dir dein deine deinen deinem ihr euch euer eure",
        "he, she, they": "er ihn ihm sein seine seinen seinem sie ihnen ihre ihren ihrem",
    },
}
POLITE = {"Sie", "Ihnen", "Ihr", "Ihre", "Ihren", "Ihrem", "Ihrer", "Ihres"}  # "you" in German


def negated(text: str, lang: str) -> str:
    return "yes" if rows.negated(text, lang) else "no"


def person(text: str, lang: str) -> str:
    """The person of the first pronoun."""
    known = {word: name for name, words in PERSONS[lang].items() for word in words.split()}
    if lang == "fr":
        text = text.replace("-t-", "-")  # a-t-il: no pronoun
    words = re.findall(r"[\w']+", text.replace("’", "'"))
    if lang == "de":  # the polite form has a capital; at the start of a sentence every word has one
        words = [words[0], *("ihr" if word in POLITE else word for word in words[1:])] if words else []
    words = [word.casefold() for word in words]
    if lang == "fr":  # French pronouns are cut at the apostrophe
        words = [part for word in words for part in word.split("'")]
    return next((known[word] for word in words if word in known), "no pronoun")


def mark(text: str, lang: str) -> str:
    return rows.mark(text)


def labelled(label: Callable[[str, str], str], sentences: Sequence[str], lang: str, rng: Random) -> Items:
    return Items(list(sentences), [label(text, lang) for text in sentences], list(range(len(sentences))))


def task(name: str, about: str, label: Callable[[str, str], str], langs: Iterable[str] = ()) -> ProbeTask:
    return ProbeTask(name, about, {"text": partial(labelled, label)}, langs=tuple(langs))


PROPERTIES = {
    "length": ("How many words?", LENGTH),
    "mark": ("Which closing mark?", task("mark", "closing mark", mark)),
    "negation": ("Is it negated?", task("negation", "negated", negated, rows.NEGATION_LANGS)),
    "person": ("Person of the first pronoun?", task("person", "person of the first pronoun", person, PERSONS)),
}


@dataclass(frozen=True)
class Reading:
    """The prediction of a latent's probe for a sentence, and the probe's accuracy on held-out sentences."""

    latent: str
    label: str
    accuracy: float
    shown: bool  # by `reading.RULE`


@dataclass(frozen=True)
class Property:
    """A property of a sentence: its true label, and the prediction of each latent's probe."""

    question: str
    truth: str
    readings: list[Reading]
    majority: float  # accuracy of always predicting the most frequent label
    tested: int  # sentences held out


def names(lang: str) -> list[str]:
    """The properties that a rule can label in a language; empty if it has too few sentences to learn from."""
    if len(corpus((lang,))) < MIN_SENTENCES:
        return []
    return [name for name, (_, task) in PROPERTIES.items() if not task.langs or lang in task.langs]


def read(loaded: Loaded, text: str, lang: str, name: str) -> Property:
    """One property of a sentence; its probes are fitted once for all sessions."""
    from app.core.results.reading import shows

    study = _study(lang, name)
    tested = sum(len(test) for _, _, test in study.cuts)
    majority = max(Counter(study.labels.tolist()).values()) / len(study.labels)
    readings = []
    for latent in loaded.latents:
        probe, accuracy = _fitted(loaded, lang, name, latent)
        predicted = int(probe.predict(embed(loaded, [text], lang, latent))[0])
        low, _ = wilson(accuracy * tested, tested)
        readings.append(Reading(latent, study.names[predicted], accuracy, shows(low, majority)))
    return Property(PROPERTIES[name][0], truth(text, lang, name, study.names), readings, majority, tested)


def truth(text: str, lang: str, name: str, labels: Sequence[str]) -> str:
    """The label of the rule; for a length, its bin, or the number itself if it is in none."""
    if name != "length":
        label = {"mark": mark, "negation": negated, "person": person}[name]
        return label(text, lang)
    count = count_words(text)
    bounds = {bin_: [int(end) for end in bin_.split("-")] for bin_ in labels}
    return next((bin_ for bin_, ends in bounds.items() if ends[0] <= count <= ends[-1]), str(count))


@st.cache_resource(max_entries=64, show_spinner=False)
def _study(lang: str, name: str) -> Study:
    """The sentences with their labels and their assignment to train and test, as in `bgt-probe`."""
    from probes.measures.study import ProbeConfig, prepare

    sentences = corpus((lang,))["text"].tolist()
    return prepare(PROPERTIES[name][1], sentences, lang=lang, config=ProbeConfig(seeds=FOLDS))


@st.cache_resource(max_entries=256, show_spinner=False, hash_funcs=BY_DIGEST)
def _fitted(loaded: Loaded, lang: str, name: str, latent: str) -> tuple[LinearProbe, float]:
    """The probe of the first fold, and the accuracy of the probes of all folds on their test sentences."""
    from bgt_core.vectors.linear_probe import LinearProbe

    study = _study(lang, name)
    vectors = of_corpus(loaded, study.items.sentences, lang, latent)
    probes, right = [], []
    for train, dev, test in study.cuts:
        probe = LinearProbe().fit(vectors[train], study.labels[train], dev=(vectors[dev], study.labels[dev]))
        probes.append(probe)
        right.append(probe.predict(vectors[test]) == study.labels[test])
    return probes[0], float(np.concatenate(right).mean())

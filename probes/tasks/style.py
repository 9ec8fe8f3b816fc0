"""Style: properties that one language shows and its translation need not, as many sentences of each value.

The rules are in `bgt_core.data.properties`; a sentence with no value, or with two, is skipped. "Right" and "spoke" are
of 100 sentences labelled by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from bgt_core.data.properties import PROPERTIES
from probes.data.items import balance, common
from probes.task import Items, ProbeTask


def style(name: str, question: str) -> ProbeTask:
    """The task of the property of that name, in the languages that its rules are of."""

    def build(sentences: Sequence[str], lang: str, rng: Random) -> Items:
        items = Items()
        for index, sentence in enumerate(sentences):
            if value := PROPERTIES[name].value(sentence, lang):
                items.add(sentence, value, index)
        return balance(common(items), rng)

    return ProbeTask(name, question, {"text": build}, tuple(filter(None, PROPERTIES[name].rules)), group="style")


# French tu or vous, German du or Sie, Spanish tú or usted (vos counts as tú), Turkish sen or siz: told by pronouns,
# possessives, and the endings of verbs that nothing else has (Brown & Gilman 1960, The pronouns of power and
# solidarity; for Turkish suffixes Göksel & Kerslake 2005, sec. 8.4). French vous and Turkish siz may also address
# several people. German plural ihr is neither. Right wherever it spoke, for 99 % of the French, 98 % of the German,
# 88 % of the Spanish and 83 % of the Turkish sentences that address somebody.
ADDRESS = style("address", "is the hearer addressed familiarly or formally (tu or vous)?")

# English: a contraction (don't, it's), against a full form that allows one (do not, it is, we will): Quirk et al.
# 1985, sec. 3.23 and 3.32. A noun with 's is neither, nor is a verb at the end of its clause. Right wherever it spoke,
# for 55 of the 57 that have one or could.
CONTRACTION = style("contraction", "is a verb or negation contracted, where it could be (it's, it is)?")

# Japanese: the last predicate ends in a form of desu or masu, or in a plain one (Shibatani 1990, The languages of
# Japan, ch. 12). What has no predicate is skipped. It spoke for 91, right for 90 of those.
POLITENESS = style("politeness", "is the sentence in polite or plain form (desu, masu)?")

# French: est-ce que, inversion of the verb and its pronoun, or the order of a statement ("intonation"), with or without
# a question word (Coveney 2002, Variability in spoken French). Questions whose subject is the question word, or with
# another order, are skipped. It spoke for 79 of 100 questions, right for 78 of those.
QUESTION_FORM = style("question-form", "est-ce que, inversion, or the order of a statement?")

# The label is the closing mark ( . ? ! in any script), read past quotes and brackets; sentences with another end are
# skipped. The semantic encoders of `bgt-bound` do not see it.
SENTENCE_TYPE = style("sentence-type", "statement, question or exclamation, by the closing mark?")

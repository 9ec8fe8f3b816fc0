"""The probing tasks of the group `style`: properties of a sentence that its translation need not have.

The rules that label sentences are in `bgt_core.data.properties`; a sentence with no value, or with two, is skipped. All
values have the same number of sentences. Correct labels were counted on 100 sentences per rule, labelled by hand.
"""

from collections.abc import Sequence
from random import Random

from bgt_core.data.properties import PROPERTIES
from probes.task import Items, ProbeTask, balance, common


def style(name: str, question: str) -> ProbeTask:
    """Make the probing task of a style property, for the languages that have a rule for it."""

    def build(sentences: Sequence[str], lang: str, rng: Random) -> Items:
        items = Items()
        for index, sentence in enumerate(sentences):
            if value := PROPERTIES[name].value(sentence, lang):
                items.add(sentence, value, index)
        return balance(common(items), rng)

    return ProbeTask(name, question, {"text": build}, tuple(filter(None, PROPERTIES[name].rules)), group="style")


# The labels are French tu or vous, German du or Sie, Spanish tú or usted (vos counts as tú), and Turkish sen or siz.
# They are found by pronouns, possessives, and unambiguous verb endings (Brown & Gilman 1960, The pronouns of power and
# solidarity; for Turkish suffixes Göksel & Kerslake 2005, sec. 8.4). French vous and Turkish siz may also address
# several people. German plural ihr is neither. Of the sentences that address somebody, the rules labelled 99 % in
# French, 98 % in German, 88 % in Spanish and 83 % in Turkish, all correctly.
ADDRESS = style("address", "is the hearer addressed familiarly or formally (tu or vous)?")

# English: the sentence has a contraction (don't, it's), or a full form that could be contracted (do not, it is, we
# will); see Quirk et al. 1985, sec. 3.23 and 3.32. A noun with 's counts as neither form, and so does a verb at the end
# of its clause. The rule labelled 55 of the 57 sentences with a contraction or a full form, all correctly.
CONTRACTION = style("contraction", "is a verb or negation contracted, where it could be (it's, it is)?")

# Japanese: the last predicate ends in a form of desu or masu, or in a plain form (Shibatani 1990, The languages of
# Japan, ch. 12). Sentences without a predicate are skipped. The rule labelled 91 of 100 sentences, 90 of them
# correctly.
POLITENESS = style("politeness", "is the sentence in polite or plain form (desu, masu)?")

# French: est-ce que, inversion of the verb and its pronoun, or the order of a statement ("intonation"), with or without
# a question word (Coveney 2002, Variability in spoken French). Questions in which the question word is the subject, and
# questions with another word order, are skipped. The rule labelled 79 of 100 questions, 78 of them correctly.
QUESTION_FORM = style("question-form", "est-ce que, inversion, or the order of a statement?")

# The label is the closing mark ( . ? ! in any script). Quotes and brackets after the mark are ignored; sentences that
# end otherwise are skipped. The semantic encoders of `bgt-bound` do not see this mark.
SENTENCE_TYPE = style("sentence-type", "statement, question or exclamation, by the closing mark?")

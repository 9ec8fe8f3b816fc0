"""Add to each pair of translations an altered sentence, which has nearly the same words but another meaning.

The rules drop or add a negation (English, French), or exchange two words (any language with spaces between words). The
shipped models were trained on altered sentences from older rules, which exchanged, for example, the subject and the
object of a parsed sentence (code: commit d1f45c03).
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from bgt_core.data import manifest
from bgt_core.data.clean import Cleaned
from bgt_core.data.columns import ALTERED
from bgt_core.data.parallel import Skipped, check_table, pair_file, read_pairs, source_files
from bgt_core.errors import DataError, UsageError

NEGATION, WORDS = "negation", "words"  # two kinds: change the negation, or exchange two words
NEGATED = 0.3  # probability that a negation rule is used, if one applies; else two words are exchanged
_FINITE = r"\b(am|is|are|was|were|will|would|could|should|must|does|did|do|has|have|had)"
_VERBE = r"(est|es|suis|sont|sommes|êtes|était|étaient|ai|as|a|avons|avez|ont|avait|peut|peux|veut|veux|doit|dois)\b"
_NEGATIONS = {  # language -> two pairs (pattern, replacement): the first drops a negation, the second adds a negation
    "en": ((_FINITE + r"(?: not|n['’]t)\b", r"\1"), (_FINITE + r"(?! not)(?= \w)", r"\1 not")),
    "fr": ((r"\bn(?:e |['’])(\w+) pas\b", r"\1"), (r"(?<= )" + _VERBE + r"(?! pas)(?= \w)", r"ne \1 pas")),
}


def altered(text: str, lang: str, rng: Random) -> tuple[str, str] | None:
    """Drop or add a negation, or exchange two words.

    Returns the kind of alteration, NEGATION or WORDS, and the altered text. Returns None if no two words of the text
    differ.

    >>> negated("The dog is late.", "en"), negated("Il n'est pas là.", "fr")
    ('The dog is not late.', 'Il est là.')
    """
    other = negated(text, lang)
    if other and rng.random() < NEGATED:
        return NEGATION, other
    other = exchanged(text, rng)
    return (WORDS, other) if other else None


def negated(text: str, lang: str) -> str:
    """Drop the negation of a sentence, such as "not", or add one if it has none. Return "" if no rule applies."""
    for pattern, other in _NEGATIONS.get(lang, ()):
        if re.search(pattern, text, re.IGNORECASE):
            negation = re.sub(pattern, other, text, count=1, flags=re.IGNORECASE)
            return re.sub(r"\bne (?=[aeéê])", "n'", negation) if "ne " in other else negation
    return ""


def exchanged(text: str, rng: Random) -> str:
    """Exchange two random words that differ; punctuation stays in place. Return "" if no two words differ."""
    words = text.split()
    cores = [word.strip(".,;:!?…\"'«»()") for word in words]
    places = [place for place, core in enumerate(cores) if core]
    if len({cores[place].casefold() for place in places}) < 2:
        return ""
    first = second = places[0]
    while cores[first].casefold() == cores[second].casefold():  # redraw both, so that unequal pairs are equally likely
        first, second = rng.sample(places, 2)
    for row, core in ((first, cores[second]), (second, cores[first])):
        words[row] = words[row].replace(cores[row], core, 1)
    return " ".join(words)


def alter_rows(source: Path, langs: Sequence[str], out: Path, *, of: str) -> tuple[Cleaned, Counter[str]]:
    """Add an altered sentence to each pair of translations. Write the file `out`, and its description to OUT.json.

    `source` is a file of pairs, as for `read_pairs`. Its columns are the two languages `langs`; those of `out` are
    `langs` and "altered". The sentences in the language `of` are altered. Returns the numbers of pairs written and
    dropped, and of rows with each kind of alteration. A pair is dropped if all words of its sentence are equal.
    """
    check_table(out)
    if len(langs) != 2 or langs[0] == langs[1] or of not in langs:
        raise UsageError(f"{of}: expected one of two different languages (got {','.join(langs)}).", parameter="of")
    rng, skipped, dropped, kinds = Random("altered"), Skipped(), Counter[str](), Counter[str]()
    with pair_file(out) as add:
        for pair in read_pairs(source, langs, skipped):
            change = altered(pair[langs.index(of)], of, rng)
            if change is None:
                dropped["one word"] += 1
                continue
            kind, text = change
            kinds[kind] += 1
            add([[part.encode() for part in (*pair, text)]])
        if not kinds:
            raise DataError(f"{source}: no sentence in {of} has two different words.")
    about = {"dropped": dict(dropped), "skipped": dict(skipped.counts), "altered": of, "kinds": dict(kinds)}
    manifest.write_card(out, (*langs, ALTERED), kinds.total(), source_files(source, langs), about)
    return Cleaned(kinds.total(), dict(dropped), skipped), kinds

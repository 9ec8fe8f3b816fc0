"""Swap a French or Spanish article for that of the other gender.

An article often looks like a pronoun. The rules skip an article rather than swap a pronoun:

- The elided l' has no gender and is never swapped, nor are du, au, des, del, al, or "un" in l'un, quelqu'un.
- An article is skipped if the swap would give "de le", "à le" or "de el". These are always wrong, because the words
  contract.
- "le", "la", "los" and "las" may be pronouns of a verb. They are skipped after a hyphen, after a word that only a verb
  follows (a subject pronoun, a negation, another such pronoun, "qui", "pour"), and before a frequent verb form or a
  word with the ending of a verb. So they are also skipped before nouns with such an ending: le dîner, el mar.
- "un" and "une" are skipped if no noun follows: un de, une des, un à, un ou.
- One space and a word must follow the article.

The swapped text is correct if its noun has both genders (un élève, une élève). A pronoun may be swapped before a verb
that is not in the lists.
"""

import re
from random import Random

from bgt_core.data.properties import WORDING

RULES = WORDING["articles"]
_WORDS = {  # language -> name of a list -> its words, in lower case
    lang: {name: frozenset(words.split()) for name, words in rules.items() if name not in ("other", "endings")}
    for lang, rules in RULES.items()
}
# "d'une" and "qu'un" contain an article; l'un, quelqu'un and donne-le do not
_ARTICLES = {
    lang: re.compile(rf"(?<![\w'’-])(?:(?:d|qu)['’])?({'|'.join(rules['other'])})(?![\w'’-])", re.IGNORECASE)
    for lang, rules in RULES.items()
}
_FOLLOWER = re.compile(r" ([^\W\d_]+(?:-[^\W\d_]+)*)")


def candidates(sentence: str, lang: str) -> list[re.Match[str]]:
    """Find the articles of a sentence that the rules above do not skip."""
    words, articles = _WORDS[lang], []
    for match in _ARTICLES[lang].finditer(sentence):
        article = match[1].lower()
        follower = _FOLLOWER.match(sentence, match.end())
        if not follower:
            continue
        following = follower[1].lower()
        before = (re.findall(r"[\w'’-]+|[^\w\s]", sentence[: match.start()].lower()) or [""])[-1]
        before = re.split("['’]", before)[-1] or before[:-1] + "e"  # "qu'il" -> il, "n'" -> ne
        pronoun = article in words["clitics"] and (
            before.rpartition("-")[2] in words["before-verbs"]
            or following in words["verbs"]
            or re.search(RULES[lang]["endings"], following)
        )
        contracts = article in words["contracted"] and before in words["contracts"]
        if not pronoun and not contracts and following not in words["alone"]:
            articles.append(match)
    return articles


def swap(sentence: str, lang: str, rng: Random) -> str | None:
    """Swap one random article, and keep its letter case; return None if the rules skip all articles."""
    articles = candidates(sentence, lang)
    if not articles:
        return None
    match = rng.choice(articles)
    article, (start, end) = match[1], match.span(1)
    other = RULES[lang]["other"][article.lower()]
    other = other.upper() if article.isupper() else other.capitalize() if article[0].isupper() else other
    return sentence[:start] + other + sentence[end:]

"""Swap a French or Spanish article to the other gender, by rules that rather skip an article than swap a pronoun:

- elided l' has no gender and is never touched, nor are du, au, des, del, al, or "un" in l'un, quelqu'un;
- articles are skipped if the swap would give "de le", "à le" or "de el", which are always wrong, because these words
  contract;
- "le", "la", "los", "las" may be a verb's pronouns. They are skipped after a hyphen, after a word that
  only a verb follows (a subject pronoun, a negation, another such pronoun, "qui", "pour"), and before a frequent verb
  form or a word with a verb's ending. So they are also skipped before nouns with such an ending: le dîner, el mar;
- "un" and "une" are skipped if no noun follows: un de, une des, un à, un ou;
- one space and a word must follow the article.

With a noun of both genders (un élève, une élève), the swapped text is correct. Before a verb that is not listed, a
pronoun may be swapped.
"""

from __future__ import annotations

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
    """Find the articles that the rules above allow to swap."""
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
    """Swap one random article and keep its letter case; return None if no article may be swapped."""
    articles = candidates(sentence, lang)
    if not articles:
        return None
    match = rng.choice(articles)
    article, (start, end) = match[1], match.span(1)
    other = RULES[lang]["other"][article.lower()]
    other = other.upper() if article.isupper() else other.capitalize() if article[0].isupper() else other
    return sentence[:start] + other + sentence[end:]

"""Swap a French or Spanish article to the other gender, by rules which prefer to skip an article rather than swap a
pronoun:

- elided l' has no gender and is never touched, nor are du, au, des, del, al, or "un" in l'un, quelqu'un;
- after "de" and "à" (es: "a", "de") a swap would give "de le", "à le", "de el", which give it away: they
  contract, whatever the noun;
- "le", "la", "los", "las" may be pronouns of a verb. They are skipped after a hyphen, after a word that
  only a verb follows (a subject pronoun, a negation, another such pronoun, "qui", "pour"), and before a word that
  looks like a verb: a frequent form, or an ending. Nouns with such an ending are lost too: le dîner, el mar;
- "un" and "une" are skipped where no noun follows: un de, une des, un à, un ou;
- what follows must be a word, after one space.

Nouns of both genders (un élève, une élève) stay right when swapped; an unlisted verb may let a pronoun pass.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class GenderRules:
    """The articles that one language swaps and skips; words in lower case."""

    other: dict[str, str]  # article -> the other gender
    clitics: frozenset[str]  # articles that may be pronouns
    contracted: frozenset[str]  # these are skipped after `contracts`
    contracts: frozenset[str]
    verbs: frozenset[str]  # a clitic is skipped after `before_verbs` and before `verbs` or `endings`
    before_verbs: frozenset[str]
    endings: re.Pattern[str]
    alone: frozenset[str]  # an article followed by one of these has no noun


_FR = GenderRules(
    other={"le": "la", "la": "le", "un": "une", "une": "un"},
    clitics=frozenset({"le", "la"}),
    contracted=frozenset({"le", "la"}),
    contracts=frozenset({"de", "à"}),
    before_verbs=frozenset(
        "je tu il elle on nous vous ils elles ne me te se y qui ça cela ceci pour sans peux peut peuvent veux veut "
        "veulent dois doit va vais vas vont allons allez faut fais fait laisse laissez vient viens pouvez voulez devez "
        "pourrais pourrait voudrais voudrait faire laisser voici voilà".split()
    ),
    verbs=frozenset(
        "fais fait font vois voit voient sais sait savent dis dit disent veux veut peux peut peut-être mets met prends "
        "prend prennent tiens tient suis connais connaît crois croit lis lit lui leur ferai fera feras feront sera "
        "regarde regardes trouve trouves donne donnes aime aimes pense penses porte portes garde gardes cherche "
        "cherches laisse laisses demande demandes mange manges vends vend rends rend perds perd sens sent sont "
        "comprends comprend reconnais déteste espère jure promets promet sut fit vit prit "
        "permet permettent voici voilà mit rendit mérite méritent fasse fassent sache sachent pensent peuvent tint "
        "faire dire lire boire croire suivre vivre perdre mordre battre résoudre connaître reconnaître suggère découvre"
        " regarda quitta frappa laissa demanda remarqua ramassa remit suit mène reconnaît rendent respecte".split()
    ),
    endings=re.compile(
        r"(er|ir|ez|ais|ait|aient|èrent|irent|rai|ras|ra|ront|rons|riez|indre|uire|endre|crire|aincre|mettre|"
        r"-(je|tu|il|elle|on|ce|nous|vous|ils|elles))$"
    ),
    alone=frozenset("de des du d à au aux ou et est en par n'est qui que".split()),
)
_ES = GenderRules(
    other={"el": "la", "la": "el", "los": "las", "las": "los"},
    clitics=frozenset({"la", "los", "las"}),
    contracted=frozenset({"el", "la"}),
    contracts=frozenset({"de", "a"}),
    before_verbs=frozenset(
        "yo tú él ella usted nosotros nosotras vosotros ellos ellas ustedes no ya nunca me te se nos os quien quién "
        "si siempre también jamás aún así".split()
    ),
    verbs=frozenset(
        "he has ha hemos han había vi vio veo ve ven vas va van voy quiero quiere quieres quieren tengo tiene tienes "
        "tienen hago hace haces hacen sé sabe saben conozco conoce dijo dice digo puso pongo pone llevo lleva llama "
        "compra compro amo ama odio odia necesito necesita encontró dejó deja leo lee hizo tuvo dio doy da pude puede "
        "puedo pueden que de del más cuales cual".split()
    ),
    endings=re.compile(
        r"(ar|er|ir|aba|aban|ía|ían|aron|ieron|ó|é|amos|emos|imos|ando|iendo|rá|rán|rás|ría|aste|iste)$"
    ),
    alone=frozenset("que de del más cuales cual".split()),
)
RULES = {"fr": _FR, "es": _ES}

# "d'une" and "qu'un" hold an article; l'un, quelqu'un and donne-le do not
_ARTICLES = {
    lang: re.compile(rf"(?<![\w'’-])(?:(?:d|qu)['’])?({'|'.join(rules.other)})(?![\w'’-])", re.IGNORECASE)
    for lang, rules in RULES.items()
}
_FOLLOWER = re.compile(r" ([^\W\d_]+(?:-[^\W\d_]+)*)")


def candidates(sentence: str, lang: str) -> list[re.Match[str]]:
    """The articles that may be swapped, by the rules above."""
    rules, articles = RULES[lang], []
    for match in _ARTICLES[lang].finditer(sentence):
        article = match[1].lower()
        follower = _FOLLOWER.match(sentence, match.end())
        if not follower:
            continue
        following = follower[1].lower()
        words = re.findall(r"[\w'’-]+|[^\w\s]", sentence[: match.start()].lower())
        before = words[-1] if words else ""
        before = re.split("['’]", before)[-1] or before[:-1] + "e"  # "qu'il" -> il, "n'" -> ne
        pronoun = article in rules.clitics and (
            before.rpartition("-")[2] in rules.before_verbs
            or following in rules.verbs
            or rules.endings.search(following)
        )
        contracts = article in rules.contracted and before in rules.contracts
        if not pronoun and not contracts and following not in rules.alone:
            articles.append(match)
    return articles


def swap(sentence: str, lang: str, rng: Random) -> str | None:
    """The sentence with one article of the other gender, its case kept; None if no article may be swapped."""
    articles = candidates(sentence, lang)
    if not articles:
        return None
    match = rng.choice(articles)
    article, (start, end) = match[1], match.span(1)
    other = RULES[lang].other[article.lower()]
    other = other.upper() if article.isupper() else other.capitalize() if article[0].isupper() else other
    return sentence[:start] + other + sentence[end:]

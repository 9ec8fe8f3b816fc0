"""Find and change, by rules, properties of wording that a translation may lose, such as the form of address.

Each property has a probing task of the same name (`probes.tasks`), which states where the rules come from, and how
accurate they are on labelled sentences. The rules ignore case, except in German, where only the capital S distinguishes
formal "Sie" (you) from "sie" (she, they). In German text without any capitals, "sie" with a plural verb counts as
formal.
"""

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from bgt_core.data.columns import primary

WORDING: dict[str, Any] = tomllib.loads(Path(__file__).with_name("wording.toml").read_text("utf-8"))
APOSTROPHES = str.maketrans(dict.fromkeys("’´`ʼ′", "'"))
_SAME_MARKS = str.maketrans({"。": ".", "．": ".", "۔": ".", "।": ".", "？": "?", "؟": "?", "！": "!"})
_CLOSING = " \u00a0\u202f\"'»”’)]」』"  # spaces, quotes and brackets that may follow a final mark

Rule = Callable[[str], str]  # takes a text, returns a property's value; "" if the text shows no value or several


def final_mark(text: str) -> str:
    """Return the final mark: ".", "?", "!", "..." or "". Quotes and brackets that follow the mark are ignored.

    >>> final_mark("« Où est-il ? »")
    '?'
    """
    text = text.rstrip(_CLOSING).translate(_SAME_MARKS)
    if text.endswith(("...", "…")):
        return "..."
    return text[-1] if text and text[-1] in ".?!" else ""


def _patterns(patterns: Mapping[str, Iterable[str]], flags: int = re.IGNORECASE) -> dict[str, re.Pattern[str]]:
    return {name: re.compile("|".join(alternatives), flags) for name, alternatives in patterns.items()}


def _one_of(patterns: Mapping[str, Iterable[str]]) -> Rule:
    """Make a rule that returns the value whose patterns match a text; "" if no value or several values match."""
    compiled = _patterns(patterns)

    def rule(text: str) -> str:
        occurring = [value for value, pattern in compiled.items() if pattern.search(text)]
        return occurring[0] if len(occurring) == 1 else ""

    return rule


_DE = _patterns(WORDING["address"]["de"], 0)


def _german_address(text: str) -> str:
    formal = _DE["lowered" if text == text.lower() else "formal"].search(text)
    informal = _DE["informal"].search(text)
    return "" if bool(formal) == bool(informal) else "du" if informal else "Sie"


_FR = _patterns(WORDING["question-form"]["fr"])
_ASKED = re.compile(rf"\W*(?:et )?{_FR['asking'].pattern}", re.IGNORECASE)
_STATED = re.compile(_ASKED.pattern + _FR["statement"].pattern, re.IGNORECASE)


def _question_form(text: str) -> str:
    if final_mark(text) != "?":
        return ""
    if _FR["est-ce-que"].search(text):
        return "est-ce que"
    if _FR["inverted"].search(text):
        return "inversion"
    return "intonation" if _STATED.match(text) or not _ASKED.match(text) else ""


_JA = _patterns(WORDING["politeness"]["ja"], 0)


def _politeness(text: str) -> str:
    text = text.rstrip(f"{_CLOSING}.。．?？!！…～~ー")
    return next((value for value, pattern in _JA.items() if pattern.search(text)), "")


class Property(NamedTuple):
    """A property of wording, with a rule for each language that has the property."""

    rules: Mapping[str, Rule]  # language -> rule; the key "" stands for all other languages

    def value(self, text: str, lang: str) -> str:
        """Return the property's value in a text; "" if a text has none or several, or if `lang` lacks the property."""
        rule = self.rules.get(primary(lang), self.rules.get(""))
        return rule(text.translate(APOSTROPHES)) if rule else ""


_OF_MARK = {".": "statement", "?": "question", "!": "exclamation"}
PROPERTIES = {
    "address": Property({lang: _one_of(by) for lang, by in WORDING["address"].items()} | {"de": _german_address}),
    "politeness": Property({"ja": _politeness}),
    "contraction": Property({"en": _one_of(WORDING["contraction"]["en"])}),
    "question-form": Property({"fr": _question_form}),
    "sentence-type": Property({"": lambda text: _OF_MARK.get(final_mark(text), "")}),
}


def values(text: str, lang: str) -> tuple[str, ...]:
    """Return the value of each of `PROPERTIES` in a text; "" for a property that the text does not show."""
    return tuple(each.value(text, lang) for each in PROPERTIES.values())


def signature(text: str, lang: str) -> tuple[str | bool, ...]:
    """Describe a sentence's style: the value of each property, and which of the wordings listed for its language occur.

    >>> signature("It's late.", "en") == signature("That's Tom.", "en") != signature("It is late.", "en")
    True
    """
    straight = text.translate(APOSTROPHES)
    wordings = (
        bool(re.search(pattern, straight, re.IGNORECASE)) for pattern in WORDING["wordings"].get(primary(lang), ())
    )
    return (*values(text, lang), *wordings)


# Change one property of a sentence: "I'm late." -> "I am late.". The two forms have the same meaning, so a decoder
# learns to take the property from the language latent. If the rules are unsure, they return no changed form.

Forms = Callable[[str], list[str]]

EXCHANGED = {  # language -> property to change; not French tu/vous, because paraphrases in the data differ in it
    "en": "contraction",
    "fr": "question-form",
    "es": "address",
    "de": "address",
    "tr": "address",
    "ja": "politeness",
}


def exchanger(lang: str, texts: Sequence[str], paraphrases: Sequence[Sequence[str]] = ()) -> Forms:
    """Make a function that changes a property of a sentence, as in English "I'm" -> "I am", German du -> Sie.

    Args:
        lang: A language in `EXCHANGED`, which names the property that changes in each language.
        texts: Thousands of sentences in this language, in which the rules for German and Japanese count word forms.
        paraphrases: Pairs of sentences in this language with the same meaning, from which the rule for German learns.
    """
    rules: dict[str, Forms] = {"en": _english, "fr": _french, "es": _spanish, "tr": _turkish}
    rule = _german(texts, paraphrases) if lang == "de" else _japanese(texts) if lang == "ja" else rules[lang]
    kind = PROPERTIES[EXCHANGED[lang]]

    def forms(text: str) -> list[str]:
        own = kind.value(text, lang)
        return [form for form in dict.fromkeys(rule(text)) if own and kind.value(form, lang) not in ("", own)]

    return forms


def capitalised_like(word: str, model: str) -> str:
    """Return `word`, with a capital as its first letter if `model` begins with a capital."""
    return word[:1].upper() + word[1:] if model[:1].isupper() else word


_RULES = WORDING["exchange"]


def _filled(lang: str, pattern: str) -> str:
    """Insert a language's named sub-patterns into a pattern: "{verb}" becomes the pattern named "verb"."""
    for name, part in _RULES[lang].items():
        if isinstance(part, str):
            pattern = pattern.replace(f"{{{name}}}", part)
    return pattern


# English: replace contractions by full forms, and the reverse. "I'm" <-> "I am", "don't" <-> "do not".

_EN = [[(_filled("en", one), other) for one, other in _RULES["en"][name]] for name in ("written-out", "contracted")]
_CUT = {"ca": "can", "wo": "will"}  # without "n't", "can't" is "ca", and "won't" is "wo"


def _english(text: str) -> list[str]:
    """Return two forms of a sentence: with all contractions written out, and with every possible contraction."""
    straight, forms = text.replace("’", "'"), []
    for rules in _EN:
        form = straight
        for pattern, replacement in rules:
            form = re.sub(pattern, replacement, form, flags=re.IGNORECASE)
        form = re.sub(r"\b(ca|wo)(?= |not\b)", lambda cut: _CUT[cut[0].lower()], form, flags=re.IGNORECASE)
        form = capitalised_like(form, straight)
        forms += [form] if form != straight else []
    return forms


# French: change the form of a question. "viens-tu ?" <-> "est-ce que tu viens ?" <-> "tu viens ?".

_QUESTIONS = [_filled("fr", question) for question in _RULES["fr"]["questions"]]
_VOWELS = "aàâeéèêiîoôuûùyh"
_NO_FRENCH_VERB = ("en", "y", "pas", "plus", "jamais")


def _french(text: str) -> list[str]:
    """Return a question in its other two forms: "viens-tu ?" -> ["est-ce que tu viens ?", "tu viens ?"]."""
    if text.count("?") != 1 or re.search(r"est-ce pas|\by a\b", text):
        return []
    straight = text.translate(APOSTROPHES).rstrip(" ?\u202f\u00a0")
    matches = (re.match(pattern, straight, re.IGNORECASE) for pattern in _QUESTIONS)
    if not (match := next(filter(None, matches), None)):
        return []
    asks, subject, clitics, verb = ((match[name] or "").lower() for name in ("asks", "subject", "clitics", "verb"))
    asks, subject = {"qu": "que", "qu'": "que"}.get(asks, asks), subject.replace("j'", "je")
    begin, rest = clitics + ("peux" if verb == "puis" else verb), match["rest"]
    verb = begin.removeprefix(clitics)
    statement = (_elided("je", begin) if subject == "je" else f"{subject} ") + begin + rest  # as in "tu viens demain"
    spaced = f"{asks} " if asks else ""
    elided = "qu'" if asks == "que" else spaced
    forms = [f"{elided}est-ce {_elided('que', statement)}{statement}"]
    plural = {"nous": "ons", "vous": "ez"}.get(subject, "")
    if subject != "je" and verb.endswith(plural) and verb not in _NO_FRENCH_VERB:  # else the form is uncertain
        link = "-t-" if subject in ("il", "elle", "on") and verb[-1] in "aeéè" else "-"
        forms.append(f"{_elided('que', begin) if asks == 'que' else spaced}{begin}{link}{subject}{rest}")
    forms += [] if asks else [statement]
    return [capitalised_like(f"{form} ?", text) for form in forms]


def _elided(word: str, following: str) -> str:
    """Return `word` elided before a vowel, as in "qu'", or followed by a space before a consonant, as in "que "."""
    return f"{word[:-1]}'" if following[:1].lower() in _VOWELS else f"{word} "


# German: change du to Sie. "Hast du Zeit?" -> "Haben Sie Zeit?".

_NO_DU_VERBS = frozenset(_RULES["de"]["no-du-verbs"].split())
_PLURALS = 3  # a plural form is used if it occurs at least this often in the texts
_WORDS = re.compile(r"\w+|[^\w\s]")


def _german(texts: Sequence[str], paraphrases: Sequence[Sequence[str]]) -> Callable[[str], list[str]]:
    """Make the rule for German, which changes the form of address from du to Sie.

    It learns verb forms for Sie from `paraphrases`. For other verbs, it uses plural forms that are frequent in `texts`.
    """
    plurals = Counter(word for text in texts for word in _WORDS.findall(text.lower()) if word.endswith("n"))
    learnt = _formal_verbs(paraphrases)

    def formal(verb: str) -> str:
        if verb in learnt:
            return learnt[verb]
        stems = (verb.removesuffix("est"), verb.removesuffix("st"), verb.removesuffix("t"))
        made = (stem + ending for stem in stems if stem != verb for ending in ("en", "n"))
        return next((form for form in made if plurals[form] >= _PLURALS), "")

    def forms(text: str) -> list[str]:
        addressed = re.search(r"\bdu\b", text, re.IGNORECASE)
        if addressed and re.search(r"\bdi(?:r|ch)\b", text, re.IGNORECASE):  # may become "Ihnen" or "sich"
            return []
        if PROPERTIES["address"].value(text, "de") != "du" or not (
            addressed or re.match(_RULES["de"]["no-imperative"], text)
        ):
            return []
        unknown: list[str] = []
        verbs: list[str] = []

        def exchanged(found: re.Match[str]) -> str:
            word, lowered = found[0], found[0].lower()
            noun = word[0].isupper() and found.start() > 0
            if lowered in _RULES["de"]["to-sie"]:
                return _RULES["de"]["to-sie"][lowered]
            if not lowered.endswith("st") or lowered in _NO_DU_VERBS or noun:
                return word
            form = formal(lowered)
            (verbs if form else unknown).append(word)
            return capitalised_like(form, word)

        form = re.sub(r"\w+", exchanged, text)
        return [] if unknown or (addressed and not verbs) else [form]

    return forms


def _formal_verbs(paraphrases: Sequence[Sequence[str]]) -> dict[str, str]:
    """Map verb forms for du to forms for Sie: the most frequent word at their position in equally long paraphrases."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in paraphrases:
        by_value = {PROPERTIES["address"].value(text, "de"): _WORDS.findall(text.lower()) for text in pair}
        informal, formal = by_value.get("du", []), by_value.get("Sie", [])
        if len(informal) == len(formal):
            for word, other in zip(informal, formal, strict=True):
                seen[word][other] += 1
    common = {word: forms.most_common(1)[0][0] for word, forms in seen.items()}
    return {word: form for word, form in common.items() if word.endswith("st") and form != word and form[-1] in "nd"}


# Spanish: change tú to usted, and the reverse. "¿Tienes casa?" <-> "¿Tiene usted casa?".

_ES = _RULES["es"]


def _spanish(text: str) -> list[str]:
    """Return the sentence in the other form of address, if the new form of its verb is certain; else []."""
    value = PROPERTIES["address"].value(text, "es")
    unsure, rule = {"tú": ("unsure-tu", _usted), "usted": ("unsure-usted", _tu)}.get(value, ("", None))
    form = rule(text) if rule and not re.search(_ES[unsure], text, re.IGNORECASE) else ""
    return [form] if form else []


def _replaced(pattern: str, other: str, text: str) -> str:
    """Replace the matches of a pattern by `other`, which begins with a capital if the match does."""
    return re.sub(pattern, lambda found: capitalised_like(found.expand(other), found[0]), text, flags=re.IGNORECASE)


def _usted(text: str) -> str:
    text = _replaced(r"\btu(s?)\b", r"su\1", text)
    if named := re.search(rf"\btú {_ES['between']}(\w+)\b", text, re.IGNORECASE):
        verb = _conjugated(named[1], True)
        return _replaced(r"\btú\b", "usted", text[: named.start(1)] + verb + text[named.end(1) :]) if verb else ""
    question = re.search(rf"¿(?:\w+ )?{_ES['between']}({_ES['second-person']})\b", text, re.IGNORECASE)
    if not question:
        return ""
    text = f"{text[: question.start(1)]}{_conjugated(question[1], True)} usted{text[question.end(1) :]}"
    return re.sub(r"\b(ha|va) usted (\w+(?:[aií]do|to|cho)|a \w+r)\b", r"\1 \2 usted", text, flags=re.IGNORECASE)


def _tu(text: str) -> str:
    text = _replaced(r"\bsu(s?)\b", r"tu\1", text)
    after = re.search(r"(?<=[¿ ])(\w+) usted\b", text, re.IGNORECASE) if "?" in text else None
    if after and (verb := _conjugated(after[1], False)):
        return text[: after.start()] + verb + text[after.end() :]
    named = re.search(rf"\busted {_ES['between']}(\w+)", text, re.IGNORECASE)
    if not named or not (verb := _conjugated(named[1], False)):
        return ""
    return _replaced(r"\busted\b", "tú", text[: named.start(1)] + verb + text[named.end(1) :])


def _conjugated(verb: str, formal: bool) -> str:
    """Change the person of a verb: "tienes" -> "tiene" if `formal`, else "tiene" -> "tienes"; "" for other words."""
    known = _ES["to-usted" if formal else "to-tu"].get(verb.lower())
    if known:
        return capitalised_like(known, verb)
    if formal:
        return verb[:-1] if re.fullmatch(r"\w+[aeáé]s", verb, re.IGNORECASE) else ""
    other = verb.lower() in ("para", "nunca", "la", "ya", "que", "me")
    return f"{verb}s" if re.fullmatch(r"\w+[aeáí]", verb, re.IGNORECASE) and not other else ""


# Turkish: change sen to siz, and the reverse. "nasılsın" <-> "nasılsınız".

_TO_SEN = _RULES["tr"]["to-sen"]
_TO_SIZ = {informal: formal for formal, informal in _TO_SEN.items()}
_NO_PERSON = frozenset(_RULES["tr"]["no-person"].split())


def _turkish(text: str) -> list[str]:
    value = PROPERTIES["address"].value(text, "tr")
    pronouns = {"siz": _TO_SEN, "sen": _TO_SIZ}.get(value)
    if pronouns is None:
        return []

    def other(match: re.Match[str]) -> str:
        word = match[0]
        lowered = word.replace("I", "ı").replace("İ", "i").lower()  # Turkish capitals: I for ı, İ for i
        if lowered in pronouns:
            return capitalised_like(pronouns[lowered], word)
        if lowered in _NO_PERSON:
            return word
        if value == "siz":
            return re.sub(_RULES["tr"]["polite"], "", word)
        endings = (re.fullmatch(pattern, lowered) for pattern in _RULES["tr"]["familiar"])
        return next((f"{word}{ending[1]}z" for ending in endings if ending), word)

    return [re.sub(r"[^\W\d_]+", other, text)]


# Japanese: change polite endings to plain endings. "行きます" -> "行く".

_ICHIDAN = ("る", "ない", "た")
_SURU = ("する", "しない", "した")
_POLITE_ENDINGS = (("ません", 1), ("ました", 2), ("ます", 0))  # ending, argument `number` of `plain`
_NA_ADJECTIVES = ("きれい", "嫌い", "くらい", "ぐらい", "みたい")  # these words end in い, but are not i-adjectives
_LONGEST = 4  # maximum length of the character sequences that are counted in the texts
_OCCURRENCES = 4  # minimum count of an ending in the texts; rarer endings are not used


def _japanese(texts: Sequence[str]) -> Callable[[str], list[str]]:
    """Make the rule for Japanese: of a verb's possible plain forms, choose the form with the most frequent ending."""
    lengths = range(2, _LONGEST + 1)
    pieces = Counter(text[at : at + length] for text in texts for at in range(len(text)) for length in lengths)

    def common(form: str) -> int:
        return pieces[form[-3:]] + (3 * pieces[form[-_LONGEST:]] if len(form) >= _LONGEST else 0)

    def plain(stem: str, number: int) -> str:
        """Return the dictionary form (`number` 0), the negative (1) or the past (2) of a verb; "" if uncertain."""
        if stem.endswith("来"):
            return stem + _ICHIDAN[number]
        if stem.endswith("あり"):
            return stem[:-2] + ("ある", "ない", "あった")[number]
        made = [stem + _ICHIDAN[number]]
        if stem[-1:] in _RULES["ja"]:
            made.append(stem[:-1] + _RULES["ja"][stem[-1]][number])
        if stem.endswith("し"):
            made.append(stem[:-1] + _SURU[number])
        if stem.endswith("行き") and number == 2:
            made.append(f"{stem[:-1]}った")
        best = max(made, key=common)
        return best if common(best) >= _OCCURRENCES else ""

    def ending(body: str, asks: bool) -> str:
        if body.endswith("ませんでした"):
            negative = plain(body.removesuffix("ませんでした"), 1)
            return f"{negative[:-1]}かった" if negative else ""
        for polite, number in _POLITE_ENDINGS:
            if body.endswith(polite):
                return plain(body.removesuffix(polite), number)
        if body.endswith("でした"):
            return f"{body.removesuffix('でした')}だった"
        if not body.endswith("です"):
            return ""
        noun = body.removesuffix("です")
        adjective = noun.endswith(("い", "かった")) and not noun.endswith(_NA_ADJECTIVES)
        return noun if adjective or (asks and not noun.endswith("ん")) else f"{noun}だ"

    def forms(text: str) -> list[str]:
        body, particle, mark = re.fullmatch(r"(.*?)([かねよ]?)([。！？?!]*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
        form = ending(body, particle == "か")
        return [f"{form}{particle}{mark}"] if form else []

    return forms


# Swap a French or Spanish article for the article of the other gender.
#
# Many articles look like pronouns. If unsure, the rules skip an article rather than swap a pronoun:
# - The elided l' shows no gender, so it is never swapped. Nor are du, au, des, del, al, and "un" in l'un and quelqu'un.
# - An article is skipped if the swap would give "de le", "à le" or "de el", which are always contracted.
# - "le", "la", "los" and "las" may be object pronouns. They are skipped after a hyphen, after a word that usually
#   precedes a verb (a subject pronoun, a negation, another object pronoun, "qui", "pour"), before a frequent verb form,
#   and before a word that ends like a verb. So they are also skipped before some nouns: le dîner, el mar.
# - "un" and "une" are skipped if no noun follows: un de, une des, un à, un ou.
# - An article is skipped unless one space and a word follow it.
# The swapped text is still correct if the noun can have both genders (un élève, une élève). By mistake, the rules may
# swap a pronoun before a verb that is not in the lists.

ARTICLES = WORDING["articles"]
_ARTICLE_WORDS = {  # language -> name of a list of words -> the words, in lower case
    lang: {name: frozenset(words.split()) for name, words in rules.items() if name not in ("other", "endings")}
    for lang, rules in ARTICLES.items()
}
# patterns that find the article in "d'une" and "qu'un", but no article in l'un, quelqu'un and donne-le
_ARTICLE = {
    lang: re.compile(rf"(?<![\w'’-])(?:(?:d|qu)['’])?({'|'.join(rules['other'])})(?![\w'’-])", re.IGNORECASE)
    for lang, rules in ARTICLES.items()
}
_FOLLOWER = re.compile(r" ([^\W\d_]+(?:-[^\W\d_]+)*)")


def swap(sentence: str, lang: str, rng: Random) -> str | None:
    """Swap the gender of one random article, and keep its letter case; return None if no article may be swapped."""
    words, articles = _ARTICLE_WORDS[lang], []
    for match in _ARTICLE[lang].finditer(sentence):
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
            or re.search(ARTICLES[lang]["endings"], following)
        )
        contracts = article in words["contracted"] and before in words["contracts"]
        if not pronoun and not contracts and following not in words["alone"]:
            articles.append(match)
    if not articles:
        return None
    match = rng.choice(articles)
    article, (start, end) = match[1], match.span(1)
    other = ARTICLES[lang]["other"][article.lower()]
    other = other.upper() if article.isupper() else other.capitalize() if article[0].isupper() else other
    return sentence[:start] + other + sentence[end:]

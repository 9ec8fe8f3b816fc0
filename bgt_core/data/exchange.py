"""Change one property of a sentence's wording by rules: "I'm late." -> "I am late.".

From such pairs, decoders learn to take the property from the language latent. If the rules are not sure, a sentence has
no other form. A form is kept only if its value of the property (`data.properties`) differs from that of the sentence.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from bgt_core.data.properties import APOSTROPHES, PROPERTIES, WORDING

Forms = Callable[[str], list[str]]

EXCHANGED = {  # language -> property that its rules change; French needs no rules for tu and vous: data have pairs
    "en": "contraction",
    "fr": "question-form",
    "es": "address",
    "de": "address",
    "tr": "address",
    "ja": "politeness",
}


def exchanger(lang: str, texts: Sequence[str], paraphrases: Sequence[Sequence[str]] = ()) -> Forms:
    """Make the rules of a language: a function of a sentence to its forms with another value of the property.

    Args:
        lang: One of `EXCHANGED`.
        texts: Thousands of sentences in this language, from which the rules of German and Japanese learn words.
        paraphrases: Pairs of sentences in this language with the same meaning.
    """
    if lang == "de":
        rule: Forms = _german(texts, paraphrases)
    elif lang == "ja":
        rule = _japanese(texts)
    else:
        rule = {"en": _english, "fr": _french, "es": _spanish, "tr": _turkish}[lang]
    kind = PROPERTIES[EXCHANGED[lang]]

    def forms(text: str) -> list[str]:
        own = kind.value(text, lang)
        return [form for form in dict.fromkeys(rule(text)) if own and kind.value(form, lang) not in ("", own)]

    return forms


def capitalised_like(word: str, model: str) -> str:
    """Return `word`, with a capital as its first letter if `model` has one."""
    return word[:1].upper() + word[1:] if model[:1].isupper() else word


_RULES = WORDING["exchange"]


def _pattern(lang: str, pattern: str) -> str:
    """Replace each {name} in a pattern by the pattern of that name."""
    for name, part in _RULES[lang].items():
        if isinstance(part, str):
            pattern = pattern.replace(f"{{{name}}}", part)
    return pattern


# English: "I'm" and "I am", "don't" and "do not".

_EN = [[(_pattern("en", one), other) for one, other in _RULES["en"][name]] for name in ("written-out", "contracted")]
_CUT = {"ca": "can", "wo": "will"}  # before n't


def _english(text: str) -> list[str]:
    """Return the sentence with every contraction written out, and the sentence with every possible contraction."""
    straight, forms = text.replace("’", "'"), []
    for rules in _EN:
        form = straight
        for pattern, replacement in rules:
            form = re.sub(pattern, replacement, form, flags=re.IGNORECASE)
        form = re.sub(r"\b(ca|wo)(?= |not\b)", lambda cut: _CUT[cut[0].lower()], form, flags=re.IGNORECASE)
        form = capitalised_like(form, straight)
        forms += [form] if form != straight else []
    return forms


# French questions: "viens-tu ?", "est-ce que tu viens ?", "tu viens ?".

_QUESTIONS = [_pattern("fr", question) for question in _RULES["fr"]["questions"]]
_VOWELS = "aàâeéèêiîoôuûùyh"
_NO_FRENCH_VERB = ("en", "y", "pas", "plus", "jamais")


def _french(text: str) -> list[str]:
    """Return the question in its other forms: "viens-tu ?" -> "est-ce que tu viens ?", "tu viens ?"."""
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
    statement = (_elided("je", begin) if subject == "je" else f"{subject} ") + begin + rest  # tu viens demain
    spaced = f"{asks} " if asks else ""
    elided = "qu'" if asks == "que" else spaced
    forms = [f"{elided}est-ce {_elided('que', statement)}{statement}"]
    plural = {"nous": "ons", "vous": "ez"}.get(subject, "")
    if subject != "je" and verb.endswith(plural) and verb not in _NO_FRENCH_VERB:  # else the inversion is uncertain
        link = "-t-" if subject in ("il", "elle", "on") and verb[-1] in "aeéè" else "-"
        forms.append(f"{_elided('que', begin) if asks == 'que' else spaced}{begin}{link}{subject}{rest}")
    forms += [] if asks else [statement]
    return [capitalised_like(f"{form} ?", text) for form in forms]


def _elided(word: str, following: str) -> str:
    """Elide a word before a vowel: "qu'"; before a consonant: "que "."""
    return f"{word[:-1]}'" if following[:1].lower() in _VOWELS else f"{word} "


# German du to Sie: "Hast du Zeit?" -> "Haben Sie Zeit?".

_NO_DU_VERBS = frozenset(_RULES["de"]["no-du-verbs"].split())
_PLURALS = 3  # minimum number of occurrences of a plural form in the texts
_WORDS = re.compile(r"\w+|[^\w\s]")


def _german(texts: Sequence[str], paraphrases: Sequence[Sequence[str]]) -> Callable[[str], list[str]]:
    """Make the rule; verb forms for Sie come from the paraphrases, or else from the plural forms in the texts."""
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
        if addressed and re.search(r"\bdi(?:r|ch)\b", text, re.IGNORECASE):  # perhaps "sich"
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
    """Map each verb form with du to its most common form with Sie, by paraphrases with equal numbers of words."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in paraphrases:
        by_value = {PROPERTIES["address"].value(text, "de"): _WORDS.findall(text.lower()) for text in pair}
        informal, formal = by_value.get("du", []), by_value.get("Sie", [])
        if len(informal) == len(formal):
            for word, other in zip(informal, formal, strict=True):
                seen[word][other] += 1
    common = {word: forms.most_common(1)[0][0] for word, forms in seen.items()}
    return {word: form for word, form in common.items() if word.endswith("st") and form != word and form[-1] in "nd"}


# Spanish tú and usted: "¿Tienes casa?" and "¿Tiene usted casa?".

_ES = _RULES["es"]


def _spanish(text: str) -> list[str]:
    """Return the sentence in the other form of address, if its verb in that form is certain."""
    value = PROPERTIES["address"].value(text, "es")
    unsure, rule = {"tú": ("unsure-tu", _usted), "usted": ("unsure-usted", _tu)}.get(value, ("", None))
    form = rule(text) if rule and not re.search(_ES[unsure], text, re.IGNORECASE) else ""
    return [form] if form else []


def _replaced(pattern: str, other: str, text: str) -> str:
    """Replace the matches of a pattern by `other`, and keep the capital at their beginning."""
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
    """Conjugate: "tienes" -> "tiene" if `formal`, else "tiene" -> "tienes"; return "" for other words."""
    known = _ES["to-usted" if formal else "to-tu"].get(verb.lower())
    if known:
        return capitalised_like(known, verb)
    if formal:
        return verb[:-1] if re.fullmatch(r"\w+[aeáé]s", verb, re.IGNORECASE) else ""
    other = verb.lower() in ("para", "nunca", "la", "ya", "que", "me")
    return f"{verb}s" if re.fullmatch(r"\w+[aeáí]", verb, re.IGNORECASE) and not other else ""


# Turkish sen and siz: "nasılsın" and "nasılsınız".

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
        lowered = word.replace("I", "ı").replace("İ", "i").lower()  # in Turkish, I is the capital of ı, and İ that of i
        if lowered in pronouns:
            return capitalised_like(pronouns[lowered], word)
        if lowered in _NO_PERSON:
            return word
        if value == "siz":
            return re.sub(_RULES["tr"]["polite"], "", word)
        endings = (re.fullmatch(pattern, lowered) for pattern in _RULES["tr"]["familiar"])
        return next((f"{word}{ending[1]}z" for ending in endings if ending), word)

    return [re.sub(r"[^\W\d_]+", other, text)]


# Japanese polite endings to plain ones: "行きます" -> "行く".

_ICHIDAN = ("る", "ない", "た")
_SURU = ("する", "しない", "した")
_POLITE_ENDINGS = (("ません", 1), ("ました", 2), ("ます", 0))  # polite ending, index of the plain form
_NA_ADJECTIVES = ("きれい", "嫌い", "くらい", "ぐらい", "みたい")  # they end in い like i-adjectives
_LONGEST = 4  # maximum number of last characters of a form that are counted in the texts
_OCCURRENCES = 4  # minimum count of the ending of a form


def _japanese(texts: Sequence[str]) -> Callable[[str], list[str]]:
    """Make the rule; of the possible forms of a stem, it chooses the one whose ending is most common in the texts."""
    lengths = range(2, _LONGEST + 1)
    pieces = Counter(text[at : at + length] for text in texts for at in range(len(text)) for length in lengths)

    def common(form: str) -> int:
        return pieces[form[-3:]] + (3 * pieces[form[-_LONGEST:]] if len(form) >= _LONGEST else 0)

    def plain(stem: str, number: int) -> str:
        """Return the dictionary form (`number` 0), the negative (1) or the past (2) of a verb; "" if it is not sure."""
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

"""Sentences with one property of their wording exchanged by rule: "I'm late." and "I am late.", "tu viens ?" and
"est-ce que tu viens ?". Decoders learn from such pairs to take the property from the language latent.

A rule that is not sure of a sentence returns nothing. A form is kept only if it shows another value of the property
(`data.properties`) than its sentence.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from bgt_core.data.properties import APOSTROPHES, PROPERTIES

Forms = Callable[[str], list[str]]

EXCHANGED = {  # the property that each language's rules exchange; of tu and vous there are many paraphrases
    "en": "contraction",
    "fr": "question-form",
    "es": "address",
    "de": "address",
    "tr": "address",
    "ja": "politeness",
}


def exchanger(lang: str, texts: Sequence[str], paraphrases: Sequence[Sequence[str]] = ()) -> Forms:
    """The rules of a language, with the words that German and Japanese take from text.

    Args:
        lang: One of `EXCHANGED`.
        texts: Sentences of that language, thousands.
        paraphrases: Pairs of them with one meaning.

    Returns:
        A function of a sentence: it with another value of the property, in each form that the rules know.
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
    """`word` with a first capital if `model` has one."""
    return word[:1].upper() + word[1:] if model[:1].isupper() else word


# English: "I'm" and "I am", "don't" and "do not".

_PARTICIPLE = (
    r"(?:been|\w+ed|had|done|gone|seen|made|got|lost|left|found|heard|known|taken|given|come|become"
    r"|never|just|already)\b"
)
_AUXILIARY = "do|does|did|is|are|was|were|have|has|had|would|could|should|must|need"
_PERSON = "i|you|he|she|it|we|they"
_SINGULAR = "he|she|it|that|there|here|who|what|where|how"
_CUT = {"ca": "can", "wo": "will"}  # before n't

_WRITTEN_OUT = (  # pattern and what stands for it, in this order
    (rf"\b({_AUXILIARY}|ca|wo)n't ({_PERSON}|there)\b", r"\1 \2 not"),
    (r"\b(ca)n't\b", r"\1not"),
    (rf"\b({_AUXILIARY}|wo)n't\b", r"\1 not"),
    (r"\b(i)'m\b", r"\1 am"),
    (r"\b(\w+)'re\b", r"\1 are"),
    (r"\b(\w+)'ve\b", r"\1 have"),
    (r"\b(\w+)'ll\b", r"\1 will"),
    (rf"\b({_PERSON})'d (?={_PARTICIPLE}|better)", r"\1 had "),
    (rf"\b({_PERSON})'d\b", r"\1 would"),
    (rf"\b({_SINGULAR})'s (?={_PARTICIPLE})", r"\1 has "),
    (rf"\b({_SINGULAR}|when|why)'s\b", r"\1 is"),
)
_CONTRACTED = (
    (rf"\b({_AUXILIARY}|can) ({_PERSON}|there) not\b", r"\1n't \2"),
    (r"\b(can) ?not\b", r"\1't"),
    (r"\bwill not\b", "won't"),
    (rf"\b({_AUXILIARY}) not\b(?= \w)", r"\1n't"),
    (r"\b(i) am(?= \w)", r"\1'm"),
    (r"\b(you|we|they) are(?= \w)", r"\1're"),
    (rf"\b({_SINGULAR}) is(?= \w)", r"\1's"),
    (rf"\b(i|you|we|they) have(?= {_PARTICIPLE})", r"\1've"),
    (rf"\b(he|she|it) has(?= {_PARTICIPLE})", r"\1's"),
    (rf"\b({_PERSON}) had(?= {_PARTICIPLE})", r"\1'd"),
    (rf"\b({_PERSON}|that|there|who) will(?= \w)", r"\1'll"),
    (r"\b(i|you|he|she|we|they|who) would(?= \w)", r"\1'd"),
)


def _english(text: str) -> list[str]:
    """The sentence with every contraction written out, and with every pair of words contracted."""
    straight = text.replace("’", "'")
    return [form for rules in (_WRITTEN_OUT, _CONTRACTED) if (form := _contraction(straight, rules)) != straight]


def _contraction(text: str, rules: tuple[tuple[str, str], ...]) -> str:
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text, flags=re.IGNORECASE)
    restored = re.sub(r"\b(ca|wo)(?= |not\b)", lambda cut: _CUT[cut[0].lower()], text, flags=re.IGNORECASE)
    return capitalised_like(restored, text)


# French questions: "viens-tu ?", "est-ce que tu viens ?", "tu viens ?".

_VOWELS = "aàâeéèêiîoôuûùyh"
_CLITICS = r"(?:(?:ne|n'|me|m'|te|t'|se|s'|nous|vous|le|la|l'|les|lui|leur|y|en) ?)*"
_PRONOUN = r"(?:je|j'|tu|il|elle|on|nous|vous|ils|elles)"
_ASKING = (
    r"(?:(?:à|de|avec|pour|par|chez|sur|dans|en|jusqu'|depuis|d')? ?"
    r"(?:qui|quoi|où|quand|comment|combien(?: d[e'] ?\w+)?|pourquoi|quel(?:le)?s? \w+))"
)
_FRENCH_VERB = rf"(?P<clitics>{_CLITICS})(?P<verb>\w+)"
_PRONOUN_FIRST = rf"(?P<subject>{_PRONOUN}) ?{_FRENCH_VERB}\b(?P<rest>.*)$"
_QUESTIONS = (
    rf"(?:(?P<asks>{_ASKING}) )?est-ce qu(?:e |'){_PRONOUN_FIRST}",
    rf"(?P<asks>qu)'est-ce qu(?:e |'){_PRONOUN_FIRST}",
    rf"(?:(?P<asks>{_ASKING}|que|qu')(?: |(?<=')))?{_FRENCH_VERB}-(?:t-)?(?P<subject>{_PRONOUN})\b(?P<rest>.*)$",
    rf"(?P<asks>){_PRONOUN_FIRST}",
)
_NO_FRENCH_VERB = ("en", "y", "pas", "plus", "jamais")


def _french(text: str) -> list[str]:
    """The question in the other forms; "viens-tu ?" -> "est-ce que tu viens ?", "tu viens ?"."""
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
    """ "que " or "qu'"."""
    return f"{word[:-1]}'" if following[:1].lower() in _VOWELS else f"{word} "


# German du to Sie: "Hast du Zeit?" -> "Haben Sie Zeit?".

_DU_TO_SIE = {"du": "Sie", "dich": "Sie", "dir": "Ihnen"} | {
    f"dein{ending}": f"Ihr{ending}" for ending in ("", "e", "en", "em", "er", "es")
}
_NO_DU_VERBS = frozenset(  # they end as a verb with du does
    "ist fast erst meist selbst sonst einst rest fest ernst west ost prost zuerst längst jüngst nächst last".split()
)
_NO_IMPERATIVE = r"(?:Ich|Wir|Er|Es|Das|Der|Die|Tom|Maria|Wo|Was|Wer|Wie|Wann|Ist|Sind|Hat|Dies\w*|Mein\w*|Kann|Hier)\b"
_PLURALS = 3  # times that a plural form must occur


def _german(texts: Sequence[str], paraphrases: Sequence[Sequence[str]]) -> Callable[[str], list[str]]:
    """The rule; the verb's form with Sie is that of paraphrases, or the plural that occurs in the texts."""
    plurals = Counter(word for text in texts for word in _words(text.lower()) if word.endswith("n"))
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
        if PROPERTIES["address"].value(text, "de") != "du" or not (addressed or re.match(_NO_IMPERATIVE, text)):
            return []
        unknown: list[str] = []
        verbs: list[str] = []

        def exchanged(found: re.Match[str]) -> str:
            word, lowered = found[0], found[0].lower()
            noun = word[0].isupper() and found.start() > 0
            if lowered in _DU_TO_SIE:
                return _DU_TO_SIE[lowered]
            if not lowered.endswith("st") or lowered in _NO_DU_VERBS or noun:
                return word
            form = formal(lowered)
            (verbs if form else unknown).append(word)
            return capitalised_like(form, word)

        form = re.sub(r"\w+", exchanged, text)
        return [] if unknown or (addressed and not verbs) else [form]

    return forms


def _words(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text)


def _formal_verbs(paraphrases: Sequence[Sequence[str]]) -> dict[str, str]:
    """The most common form with Sie of each verb form with du, from paraphrases of equally many words."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in paraphrases:
        by_value = {PROPERTIES["address"].value(text, "de"): _words(text.lower()) for text in pair}
        informal, formal = by_value.get("du", []), by_value.get("Sie", [])
        if len(informal) == len(formal):
            for word, other in zip(informal, formal, strict=True):
                seen[word][other] += 1
    common = {word: forms.most_common(1)[0][0] for word, forms in seen.items()}
    return {word: form for word, form in common.items() if word.endswith("st") and form != word and form[-1] in "nd"}


# Spanish tú and usted: "¿Tienes casa?" and "¿Tiene usted casa?".

_TO_USTED = {"eres": "es", "has": "ha", "vas": "va", "das": "da", "ves": "ve"}
_TO_TU = {"es": "eres", "ha": "has", "va": "vas", "da": "das", "fue": "fuiste"}
_BETWEEN = r"(?:(?:no|nunca|siempre|ya|también|me|lo|la|los|las|nos) )*"
_SECOND_PERSON = (
    r"(?:eres|estás|tienes|quieres|puedes|sabes|debes|vas|has|haces|dices|crees|piensas|necesitas|hablas|vienes|ibas|vives"
    r"|conoces|trabajas|estudias|juegas|comes|bebes|buscas|prefieres|entiendes|recuerdas|ves|oyes"
    r"|\w+[aei]rás|\w+ías|\w+abas)"
)
_UNSURE_TU = r"\b(?:te|ti|contigo|vos|tuy\w+|\w+te|\w+[ai]ste)\b"
_UNSURE_USTED = r"\b(?:ustedes|le|les|se|(?:a|con|de|para|que) usted|usted mismo)\b"


def _spanish(text: str) -> list[str]:
    """The sentence in the other form of address, where its one verb with that subject is sure."""
    value = PROPERTIES["address"].value(text, "es")
    unsure, rule = {"tú": (_UNSURE_TU, _usted), "usted": (_UNSURE_USTED, _tu)}.get(value, ("", None))
    if not rule or re.search(unsure, text, re.IGNORECASE):
        return []
    form = rule(text)
    return [form] if form else []


def _usted(text: str) -> str:
    text = re.sub(r"\btu(s?)\b", lambda found: capitalised_like(f"su{found[1]}", found[0]), text, flags=re.IGNORECASE)
    if named := re.search(rf"\btú {_BETWEEN}(\w+)\b", text, re.IGNORECASE):
        if not (verb := _conjugated(named[1], True)):
            return ""
        text = text[: named.start(1)] + verb + text[named.end(1) :]
        return re.sub(r"\btú\b", lambda found: capitalised_like("usted", found[0]), text, flags=re.IGNORECASE)
    question = re.search(rf"¿(?:\w+ )?{_BETWEEN}({_SECOND_PERSON})\b", text, re.IGNORECASE)
    if not question:
        return ""
    text = f"{text[: question.start(1)]}{_conjugated(question[1], True)} usted{text[question.end(1) :]}"
    return re.sub(r"\b(ha|va) usted (\w+(?:[aií]do|to|cho)|a \w+r)\b", r"\1 \2 usted", text, flags=re.IGNORECASE)


def _tu(text: str) -> str:
    text = re.sub(r"\bsu(s?)\b", lambda found: capitalised_like(f"tu{found[1]}", found[0]), text, flags=re.IGNORECASE)
    after = re.search(r"(?<=[¿ ])(\w+) usted\b", text, re.IGNORECASE) if "?" in text else None
    if after and (verb := _conjugated(after[1], False)):
        return text[: after.start()] + verb + text[after.end() :]
    named = re.search(rf"\busted {_BETWEEN}(\w+)", text, re.IGNORECASE)
    if not named or not (verb := _conjugated(named[1], False)):
        return ""
    text = text[: named.start(1)] + verb + text[named.end(1) :]
    return re.sub(r"\busted\b", lambda found: capitalised_like("tú", found[0]), text, flags=re.IGNORECASE)


def _conjugated(verb: str, formal: bool) -> str:
    """ "tienes" -> "tiene" if formal, else "tiene" -> "tienes"; "" for a word that is no such form."""
    known = (_TO_USTED if formal else _TO_TU).get(verb.lower())
    if known:
        return capitalised_like(known, verb)
    if formal:
        return verb[:-1] if re.fullmatch(r"\w+[aeáé]s", verb, re.IGNORECASE) else ""
    other = verb.lower() in ("para", "nunca", "la", "ya", "que", "me")
    return f"{verb}s" if re.fullmatch(r"\w+[aeáí]", verb, re.IGNORECASE) and not other else ""


# Turkish sen and siz: "nasılsın" and "nasılsınız".

_TO_SEN = dict(
    zip(
        "siz sizi size sizin sizde sizden sizinle sizce".split(),
        "sen seni sana senin sende senden seninle sence".split(),
        strict=True,
    )
)
_TO_SIZ = {informal: formal for formal, informal in _TO_SEN.items()}
_NO_PERSON = frozenset(  # they end as if they had the person's ending
    "henüz deniz beniz yalnız domuz temiz ucuz altın kadın aydın satın bütün üstün metin zeytin odun akın yakın için "
    "niçin uzun yarın kalın derin gelin insan olsun gitsin gelsin etsin kalsın versin".split()
)
_POLITE = r"(?<=\w\wn)[ıiuü]z(?=(?:[ae]|[ıiuü]|[dt][ae]n?|l[ae]|[ıiuü]n)?$)"
_FAMILIAR = (r"\w+s([ıiuü])n", r"\w{2,}[dt]([ıiuü])n")


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
            return re.sub(_POLITE, "", word)
        endings = (re.fullmatch(pattern, lowered) for pattern in _FAMILIAR)
        return next((f"{word}{ending[1]}z" for ending in endings if ending), word)

    return [re.sub(r"[^\W\d_]+", other, text)]


# Japanese polite endings to plain ones: "行きます" -> "行く".

# The last sound of a verb's stem before ます, and the ends of its dictionary, negative and past forms.
_GODAN = {
    "き": ("く", "かない", "いた"),
    "ぎ": ("ぐ", "がない", "いだ"),
    "し": ("す", "さない", "した"),
    "ち": ("つ", "たない", "った"),
    "に": ("ぬ", "なない", "んだ"),
    "び": ("ぶ", "ばない", "んだ"),
    "み": ("む", "まない", "んだ"),
    "り": ("る", "らない", "った"),
    "い": ("う", "わない", "った"),
}
_ICHIDAN = ("る", "ない", "た")
_SURU = ("する", "しない", "した")
_POLITE_ENDINGS = (("ません", 1), ("ました", 2), ("ます", 0))  # polite, and which of the forms is its plain one
_NA_ADJECTIVES = ("きれい", "嫌い", "くらい", "ぐらい", "みたい")  # they end in い like others
_LONGEST = 4  # characters at the end of a form that must occur in text
_OCCURRENCES = 4


def _japanese(texts: Sequence[str]) -> Callable[[str], list[str]]:
    """The rule; of the forms that a stem could have, that whose end is most common in the texts."""
    lengths = range(2, _LONGEST + 1)
    pieces = Counter(text[at : at + length] for text in texts for at in range(len(text)) for length in lengths)

    def common(form: str) -> int:
        return pieces[form[-3:]] + (3 * pieces[form[-_LONGEST:]] if len(form) >= _LONGEST else 0)

    def plain(stem: str, number: int) -> str:
        """The dictionary (0), negative (1) or past form (2) of a verb; "" if none is sure."""
        if stem.endswith("来"):
            return stem + _ICHIDAN[number]
        if stem.endswith("あり"):
            return stem[:-2] + ("ある", "ない", "あった")[number]
        made = [stem + _ICHIDAN[number]]
        if stem[-1:] in _GODAN:
            made.append(stem[:-1] + _GODAN[stem[-1]][number])
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

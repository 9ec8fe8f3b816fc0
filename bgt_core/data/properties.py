"""What a language adds to a meaning: properties of wording that a translation need not show, told by rules on text.

The probing tasks of the same names (`probes.tasks`) state each rule's source and its accuracy on sentences labelled by
hand. The rules ignore case, but for German, whose formal Sie only its capital tells from "she" and "they". Text without
any capital has lost it: there "sie" with a plural verb counts as formal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from bgt_core.data.columns import primary

APOSTROPHES = str.maketrans(dict.fromkeys("’´`ʼ′", "'"))
_SAME_MARKS = str.maketrans({"。": ".", "．": ".", "۔": ".", "।": ".", "？": "?", "؟": "?", "！": "!"})
_CLOSING = " \u00a0\u202f\"'»”’)]」』"  # quotes and brackets after a closing mark

Rule = Callable[[str], str]  # text -> one of the property's values, or "": it has none, or several


def final_mark(text: str) -> str:
    """ ".", "?", "!", "..." or "": the mark that ends the sentence, quotes and brackets ignored.

    >>> final_mark("« Où est-il ? »")
    '?'
    """
    text = text.rstrip(_CLOSING).translate(_SAME_MARKS)
    if text.endswith(("...", "…")):
        return "..."
    return text[-1] if text and text[-1] in ".?!" else ""


def _one_of(patterns: Mapping[str, str]) -> Rule:
    """The rule that a text has the value whose pattern alone occurs in it."""
    compiled = {value: re.compile(pattern, re.IGNORECASE) for value, pattern in patterns.items()}

    def rule(text: str) -> str:
        occurring = [value for value, pattern in compiled.items() if pattern.search(text)]
        return occurring[0] if len(occurring) == 1 else ""

    return rule


_DU = r"\b(?:du|dich|dir|dein(?:e[mnrs]?)?|[mkv]annst|willst|sollst|musst|darfst|bist|hast|wirst|weißt)\b"
_FORMAL = r"(?<=[\w,;:] )(?:Sie|Ihnen|Ihr(?:e[mnrs]?)?)\b"
_LOWERED = r"\b(?:\w+en|sind|tun) sie\b|\bsie (?:\w+en|sind|tun)\b|\bihnen\b"


def _german_address(text: str) -> str:
    formal = re.search(_LOWERED if text == text.lower() else _FORMAL, text)
    informal = re.search(_DU, text, re.IGNORECASE)
    return "" if bool(formal) == bool(informal) else "du" if informal else "Sie"


_BE = r"i am|(?:you|we|they) are|(?:he|she|it|that|there|here|who|what|where|how) is"
_HAVE = r"(?:i|you|we|they) have|(?:he|she|it) has|(?:i|you|he|she|it|we|they) had"
_WILL = r"(?:i|you|he|she|it|we|they|that|there|who) (?:will|would)"
_NOT = r"(?:do|does|did|is|are|was|were|have|has|had|will|would|can|could|should|must|need) ?not"
_PARTICIPLE = r"been|\w+ed|had|done|gone|seen|made|got|lost|left|found|heard|known|taken|given|come|become|never|just"
_ENGLISH = {
    "short": r"n't\b|\b(?:i'm|\w+'(?:re|ve|ll|d)|(?:he|she|it|that|there|here|who|what|where|how|when|why)'s)\b",
    "full": rf"\b(?:{_BE}|{_WILL})(?= \w)|\b(?:{_HAVE}) (?:{_PARTICIPLE})\b|\b{_NOT}\b",
}

_BEGIN = r"(?:^|[,;:.!?«] *)"
_ADDRESS: dict[str, Rule] = {
    "fr": _one_of(
        {
            "tu": r"\b(?:tu|te|toi|ton|ta|tes|tien(?:ne)?s?)\b|\bt'"
            rf"|{_BEGIN}\w{{2,}}(?<!ez)(?<!ons)(?<!mes)(?<!faites)(?<!dites)(?<!celui)(?<!celle)(?<!ceux)"
            r"-(?:moi|l[ae]|les|lui|leur|nous|en|y)\b",
            "vous": r"(?<!rendez-)\b(?:vous|votre|vos|vôtres?)\b"
            rf"|{_BEGIN}(?:\w{{2,}}(?<!ch)(?<!ass)ez|faites|dites)\b",
        }
    ),
    "de": _german_address,
    "es": _one_of(
        {
            "tú": r"\b(?:tú|te|ti|contigo|tus?|tuy[oa]s?|vos|eres|estás|tienes|quieres|puedes|sabes|debes|vas|has|haces"
            r"|dices|crees|piensas|necesitas|hablas|vienes|ibas|sos|querés|podés|tenés|sabés|\w+[ai]ste|\w+[aei]rás)\b"
            r"|(?<=¿)\w{2,}as\b",
            "usted": r"\b(?:ustedes|usted)\b",
        }
    ),
    "tr": _one_of(
        {
            "sen": r"\b(?:sen|seni|sana|senin|sende|senden|seninle|m[ıiuü]s[ıiuü]n|değilsin)\b"
            r"|(?:yor|[aeıiuü]r|m[ae]z|[ae]c[ae]k|m[ıiuü]ş|m[ae]l[ıi])s[ıiuü]n\b"
            r"|\b(?!kadın|aydın|altın|satın|bütün|üstün|metin|zeytin|odun)\w{2,}[dt][ıiuü]n(?= m[ıiuü]\b|\W*$)",
            "siz": r"\b(?:siz|sizi|size|sizin|sizde|sizden|sizinle|hepiniz)\b"
            r"|\b(?!henüz|deniz|beniz)\w+(?:[sdt][ıiuü]|[ae])n[ıiuü]z\b",
        }
    ),
}

_EST_CE = r"\best[- ]ce qu(?:[ei]\b|')"
_INVERTED = r"[\w'](?<!n'est)-(?:t-)?(?:je|tu|il|elle|on|nous|vous|ils|elles|ce)\b"
_ASKING = (
    r"(?:\w{1,5} )?(?:qu[ie]\b|qu'|quoi|où|quand|comment|combien|pourquoi|(?:le|la|les|du|des|aux?)?quel(?:le)?s?\b)"
)
_STATEMENT = r"(?:\w* (?:\w+ )?|')(?<!entre )(?:(?:je|tu|il|elle|on|nous|vous|ils|elles|ça) |[jt]')\w+"


def _question_form(text: str) -> str:
    if final_mark(text) != "?":
        return ""
    if re.search(_EST_CE, text, re.IGNORECASE):
        return "est-ce que"
    if re.search(_INVERTED, text, re.IGNORECASE):
        return "inversion"
    asks = rf"\W*(?:et )?{_ASKING}"
    plain = re.match(rf"{asks}{_STATEMENT}", text, re.IGNORECASE) or not re.match(asks, text, re.IGNORECASE)
    return "intonation" if plain else ""


_POLITE = re.compile(
    r"(?:です|ます|ません|でした|ました|ましょう|でしょう|ください|下さい|ございます|まして)"
    r"(?:か|ね|よ|が|から|けど|けれど|の|わ|な|っけ|し|も|、)*$"
)
_PLAIN = re.compile(r"[るただいうくすつぬぶむぐんろれえけせてぞぜかねよわなさのし]$")


def _politeness(text: str) -> str:
    text = text.rstrip(f"{_CLOSING}.。．?？!！…～~ー")
    return "polite" if _POLITE.search(text) else "plain" if _PLAIN.search(text) else ""


class Property(NamedTuple):
    """A property of wording: a rule for each language that has it."""

    rules: Mapping[str, Rule]  # no language: the same rule for all

    def value(self, text: str, lang: str) -> str:
        """The value that `text` shows; "" if it shows none or several, or if the language has no such property."""
        rule = self.rules.get(primary(lang), self.rules.get(""))
        return rule(text.translate(APOSTROPHES)) if rule else ""


_OF_MARK = {".": "statement", "?": "question", "!": "exclamation"}
PROPERTIES = {
    "address": Property(_ADDRESS),
    "politeness": Property({"ja": _politeness}),
    "contraction": Property({"en": _one_of(_ENGLISH)}),
    "question-form": Property({"fr": _question_form}),
    "sentence-type": Property({"": lambda text: _OF_MARK.get(final_mark(text), "")}),
}


def values(text: str, lang: str) -> tuple[str, ...]:
    """The value of each of `PROPERTIES` that a text shows, "" for those without one."""
    return tuple(each.value(text, lang) for each in PROPERTIES.values())


_WORDINGS = {  # further choices of wording that a lent language latent must share with its borrower
    "en": (r"\bgoing to\b", r"\bwill\b|'ll\b", r"\bplease\b"),
    "fr": (r"\bne\b|\bn'", r"\bcela\b", r"\bça\b|\bc'", r"\bon\b", r"\bnous\b"),
    "es": (r"\bno\b", r"\b(?:yo|tú|usted|nosotr[oa]s)\b"),
    "de": (r"\b(?:sie|ihnen)\b", r"\bihr\b", r"\bnicht\b|\bkein"),
    "tr": (r"\b(?:ben|biz|sen|siz)\b", r"\blütfen\b"),
    "ja": (r"のだ|んだ|のです|んです", r"ください|下さい", r"[よねわぞ][。！？]?$"),
}


def signature(text: str, lang: str) -> tuple[str | bool, ...]:
    """What tells a sentence's style in its language: the value of each property, and which wordings it has.

    >>> signature("It's late.", "en") == signature("That's Tom.", "en") != signature("It is late.", "en")
    True
    """
    straight = text.translate(APOSTROPHES)
    wordings = (bool(re.search(pattern, straight, re.IGNORECASE)) for pattern in _WORDINGS.get(primary(lang), ()))
    return (*values(text, lang), *wordings)

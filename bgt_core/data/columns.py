"""Columns of a corpus: their names, their languages, and the files that hold them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bgt_core.errors import UsageError, did_you_mean

LABEL = "label"  # a column with this in place of a language holds numbers
ALTERED = "altered"  # prefix of the names of columns whose sentences have another meaning than their row
SKIPPED = "_"  # a column with this in place of a name is skipped
KIND = r"[A-Za-z0-9_-]+"
UNSPACED = frozenset({"ja", "km", "lo", "my", "th", "zh"})  # languages that put no spaces between words
_JOINED = re.compile(r"[a-z]{2,3}(?:-(?:[A-Z][a-z]{3}|[A-Z]{2}|\d\w{2,3})(?!\w))+|[^-]+")


@dataclass(frozen=True)
class Source:
    """A file of rows (or prefix of line-aligned files), the columns it has, and vectors that belong to its rows."""

    path: Path
    columns: tuple[str, ...]  # names, in the order of the file; `SKIPPED` for a column that is not read
    targets: Path | None = None  # .npy, float32 (rows, D): a teacher's vectors of the rows
    kind: str = ""  # kind of text, as "news", which sampling may weight

    def __str__(self) -> str:
        return f"{self.kind}{'/' * bool(self.kind)}{'-'.join(self.columns)}={self.path}"


def altered_columns(columns: Mapping[str, str]) -> dict[str, str]:
    """Match columns of altered sentences with the columns that they alter.

    Args:
        columns: The language of each column.

    Returns:
        For each column whose name begins with "altered", the first other column of its language.

    Raises:
        UsageError: No other column has its language.
    """
    plain = {lang: name for name, lang in reversed([*columns.items()]) if not name.startswith(ALTERED)}
    altered = {name: lang for name, lang in columns.items() if name.startswith(ALTERED)}
    if missing := [name for name, lang in altered.items() if lang not in plain]:
        raise UsageError(
            f"{', '.join(columns)}: '{missing[0]}' needs another column of its language", parameter="columns"
        )
    return {name: plain[lang] for name, lang in altered.items()}


def read_columns(columns: Iterable[str]) -> tuple[str, ...]:
    """The names of a file's columns without the `SKIPPED` ones."""
    return tuple(column for column in columns if column != SKIPPED)


def split_langs(text: str) -> list[str]:
    """Split languages joined by hyphens: "en-fr" -> ["en", "fr"], "en-zh-Hant" -> ["en", "zh-Hant"].

    A script, a region or a year belongs to the language before it. They are recognised by their form in BCP 47:
    zh-Hant, pt-BR, es-419, de-1996.
    """
    return _JOINED.findall(text)


def lang_codes(langs: str) -> str:
    """Spell languages joined by hyphens as `lang_code` does: "eng_Latn-FR" -> "en-fr"."""
    return "-".join(map(lang_code, split_langs(langs)))


def canonical_column(column: str) -> str:
    """Spell the language of a column as `lang_code` does: "eng_Latn" -> "en", "a:EN" -> "a:en"."""
    name, colon, lang = column.rpartition(":")
    return f"{name.strip()}{colon}{lang_code(lang.strip())}"


def parse_column(column: str, parameter: str = "columns") -> tuple[str, str]:
    """The name and the language of "en" or "b:en"; UsageError for an entry without a language."""
    name, colon, lang = (part.strip() for part in column.partition(":"))
    lang = lang if colon else name
    if not LANG.fullmatch(lang):  # other codes stay as they are: a stored model may have them
        lang, name = lang_code(lang), name if colon else lang_code(name)
    if name == SKIPPED or not re.fullmatch(KIND, name) or not (lang == LABEL or LANG.fullmatch(lang)):
        raise UsageError(
            f"'{column}': expected a language code, as en, or NAME:LANGUAGE, as a:en.{lang_hint(lang)}",
            parameter=parameter,
        )
    return name, lang


def text_columns(langs: str) -> tuple[list[str], list[str]]:
    """The columns of a file of text: "a:en,_,fr" -> names, ["a", "_", "fr"], and languages, ["en", "fr"].

    Raises UsageError for an entry without a language, and for an empty list.
    """
    given = [column.strip() for column in langs.split(",")]
    parsed = [(SKIPPED, "") if column == SKIPPED else parse_column(column, "langs") for column in given]
    languages = [lang_code(lang) for name, lang in parsed if name != SKIPPED]
    if not languages or LABEL in languages:
        raise UsageError(f"'{langs}': expected languages, as in en,fr.", parameter="langs")
    return [name for name, _ in parsed], languages


def parse_columns(columns: Iterable[str]) -> dict[str, str]:
    """["en", "b:en", "gold:label"] -> {"en": "en", "b": "en", "gold": "label"}.

    Raises UsageError for an entry without a language, for a repeated name, and if no column holds text.
    """
    columns = [str(column) for column in columns]
    parsed: dict[str, str] = {}
    for column in columns:
        name, lang = parse_column(column)
        if name in parsed:
            raise UsageError(
                f"{', '.join(columns)}: '{name}' is repeated; use names, as in a:{lang},b:{lang}", parameter="columns"
            )
        parsed[name] = lang
    languages = list(parsed.values())
    if languages.count(LABEL) > 1:
        raise UsageError(f"{', '.join(columns)}: at most one may hold labels", parameter="columns")
    if languages.count(LABEL) == len(languages):
        raise UsageError("columns: expected at least one column of text, as en, or two, as en, fr")
    altered_columns(parsed)
    return parsed


def parse_source(text: str, columns: Sequence[str] = ()) -> Source:
    """ "en-fr=a.tsv" -> a file of these columns; "a.tsv" -> one of all `columns`; "news/en-fr=a.tsv" -> one of a kind;
    "a,b,_=a.tsv" -> one whose third column is skipped.

    `columns` are the known names; if empty, any name is allowed. Raises UsageError for an unknown column.
    """
    head, equals, path = text.partition("=")
    named = re.fullmatch(rf"(?:({KIND})/)?([A-Za-z0-9_,-]+)", head)
    if named and re.fullmatch("[a-z]{2}_[a-z]{2}", named[2]) and not matching(named[2], columns):
        named = None  # en_fr is meant as en-fr, not as the English of a country
    if not equals or is_file(text) or not named:
        if equals and not is_file(text) and (is_file(path) or not columns):
            raise UsageError(f"'{text}': expected COLUMNS=FILE, as en-fr={path or 'FILE'}", parameter="data")
        if not columns:
            raise UsageError(f"'{text}': give its columns, as en-fr={text}", parameter="data")
        return Source(Path(text), tuple(columns))
    plain = named[2].split("," if "," in head else "-")
    plain = plain if "," in head or {*plain} <= {*columns} else split_langs(named[2])
    names = tuple(matching(name, columns) or canonical_column(name) for name in plain)
    if columns and (unknown := [name for name in names if name not in (*columns, SKIPPED)]):
        raise UsageError(f"'{text}': no column '{unknown[0]}'; expected {', '.join(columns)}", parameter="data")
    return Source(Path(path), names, kind=named[1] or "")


def is_file(text: str) -> bool:
    """Whether a file or folder of that name exists; False for a name that the system rejects."""
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False


def parse_weights(text: str) -> dict[str, float]:
    """ "news:3,docs:0.5" -> {"news": 3.0, "docs": 0.5}; UsageError for another form, and for weights not above 0."""
    weights: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        kind, _, weight = part.partition(":")
        if not re.fullmatch(KIND, kind) or not re.fullmatch(r"\d+(\.\d+)?", weight) or not float(weight):
            raise UsageError(
                f"'{part}': expected KIND:WEIGHT, above 0, as news:3 or docs:0.5", parameter="kind_weights"
            )
        if kind in weights:
            raise UsageError(f"'{text}': '{kind}' is repeated", parameter="kind_weights")
        weights[kind] = float(weight)
    return weights


# Codes of languages: one spelling for each, whatever convention a user follows.

LANG = re.compile(r"[a-z]{2,3}(-\w+)*")
_LANGUAGES = (  # ISO 639-1, ISO 639-3, name
    "aa aar Afar; ab abk Abkhazian; ae ave Avestan; af afr Afrikaans; ak aka Akan; am amh Amharic; an arg Aragonese; "
    "ar ara Arabic; as asm Assamese; av ava Avaric; ay aym Aymara; az aze Azerbaijani; ba bak Bashkir; "
    "be bel Belarusian; bg bul Bulgarian; bi bis Bislama; bm bam Bambara; bn ben Bengali; bo bod Tibetan; "
    "br bre Breton; bs bos Bosnian; ca cat Catalan; ce che Chechen; ch cha Chamorro; co cos Corsican; cr cre Cree; "
    "cs ces Czech; cu chu Church Slavic; cv chv Chuvash; cy cym Welsh; da dan Danish; de deu German; dv div Divehi; "
    "dz dzo Dzongkha; ee ewe Ewe; el ell Greek; en eng English; eo epo Esperanto; es spa Spanish; et est Estonian; "
    "eu eus Basque; fa fas Persian; ff ful Fulah; fi fin Finnish; fj fij Fijian; fo fao Faroese; fr fra French; "
    "fy fry Western Frisian; ga gle Irish; gd gla Scottish Gaelic; gl glg Galician; gn grn Guarani; gu guj Gujarati; "
    "gv glv Manx; ha hau Hausa; he heb Hebrew; hi hin Hindi; ho hmo Hiri Motu; hr hrv Croatian; ht hat Haitian; "
    "hu hun Hungarian; hy hye Armenian; hz her Herero; ia ina Interlingua; id ind Indonesian; ie ile Interlingue; "
    "ig ibo Igbo; ii iii Sichuan Yi; ik ipk Inupiaq; io ido Ido; is isl Icelandic; it ita Italian; iu iku Inuktitut; "
    "ja jpn Japanese; jv jav Javanese; ka kat Georgian; kg kon Kongo; ki kik Kikuyu; kj kua Kuanyama; kk kaz Kazakh; "
    "kl kal Kalaallisut; km khm Khmer; kn kan Kannada; ko kor Korean; kr kau Kanuri; ks kas Kashmiri; "
    "ku kur Kurdish; kv kom Komi; kw cor Cornish; ky kir Kyrgyz; la lat Latin; lb ltz Luxembourgish; lg lug Ganda; "
    "li lim Limburgish; ln lin Lingala; lo lao Lao; lt lit Lithuanian; lu lub Luba-Katanga; lv lav Latvian; "
    "mg mlg Malagasy; mh mah Marshallese; mi mri Maori; mk mkd Macedonian; ml mal Malayalam; mn mon Mongolian; "
    "mr mar Marathi; ms msa Malay; mt mlt Maltese; my mya Burmese; na nau Nauru; nb nob Norwegian Bokmål; "
    "nd nde North Ndebele; ne nep Nepali; ng ndo Ndonga; nl nld Dutch; nn nno Norwegian Nynorsk; no nor Norwegian; "
    "nr nbl South Ndebele; nv nav Navajo; ny nya Nyanja; oc oci Occitan; oj oji Ojibwa; om orm Oromo; or ori Odia; "
    "os oss Ossetian; pa pan Punjabi; pi pli Pali; pl pol Polish; ps pus Pashto; pt por Portuguese; qu que Quechua; "
    "rm roh Romansh; rn run Rundi; ro ron Romanian; ru rus Russian; rw kin Kinyarwanda; sa san Sanskrit; "
    "sc srd Sardinian; sd snd Sindhi; se sme Northern Sami; sg sag Sango; sh hbs Serbo-Croatian; si sin Sinhala; "
    "sk slk Slovak; sl slv Slovenian; sm smo Samoan; sn sna Shona; so som Somali; sq sqi Albanian; sr srp Serbian; "
    "ss ssw Swati; st sot Southern Sotho; su sun Sundanese; sv swe Swedish; sw swa Swahili; ta tam Tamil; "
    "te tel Telugu; tg tgk Tajik; th tha Thai; ti tir Tigrinya; tk tuk Turkmen; tl tgl Tagalog; tn tsn Tswana; "
    "to ton Tongan; tr tur Turkish; ts tso Tsonga; tt tat Tatar; tw twi Twi; ty tah Tahitian; ug uig Uyghur; "
    "uk ukr Ukrainian; ur urd Urdu; uz uzb Uzbek; ve ven Venda; vi vie Vietnamese; vo vol Volapük; wa wln Walloon; "
    "wo wol Wolof; xh xho Xhosa; yi yid Yiddish; yo yor Yoruba; za zha Zhuang; zh zho Chinese; zu zul Zulu"
)
_ROWS = [row.split(" ", 2) for row in _LANGUAGES.split("; ")]
NAMES = {name.lower(): two for two, _, name in _ROWS}
# ISO 639-1 -> ISO 639-3; of three macrolanguages the one that data sets mean
THREE_LETTERS = {two: three for two, three, _ in _ROWS} | {"fa": "pes", "lv": "lvs", "zh": "cmn"}
_OTHERS = (  # single languages of macrolanguages as in FLORES-200, bibliographic codes of ISO 639-2, former codes
    "als sq arb ar ayr ay azj az cmn zh ekk et fuv ff gaz om gug gn khk mn kmr ku lvs lv npi ne ory or pbt ps pes "
    "fa plt mg quy qu swh sw uzn uz ydd yi zsm ms alb sq arm hy baq eu bur my chi zh cze cs dut nl fre fr geo ka "
    "ger de gre el ice is mac mk mao mi may ms per fa rum ro slo sk tib bo wel cy iw he in id ji yi mo ro "
).split()
_TWO_LETTERS = {three: two for two, three, _ in _ROWS} | dict(zip(_OTHERS[::2], _OTHERS[1::2], strict=True))
_SCRIPTS = {  # the usual script of languages that are not written in Latin letters; Chinese has none
    "Arab": "ar fa ks ps sd ug ur", "Armn": "hy", "Avst": "ae", "Beng": "as bn", "Cans": "cr iu oj",
    "Cyrl": "ab av ba be bg ce cu cv kk kv ky mk mn os ru sr tg tt uk", "Deva": "hi mr ne sa", "Ethi": "am ti",
    "Geor": "ka", "Grek": "el", "Gujr": "gu", "Guru": "pa", "Hang": "ko", "Hebr": "he yi", "Jpan": "ja", "Khmr": "km",
    "Knda": "kn", "Laoo": "lo", "Mlym": "ml", "Mymr": "my", "Orya": "or", "Sinh": "si", "Taml": "ta", "Telu": "te",
    "Thaa": "dv", "Thai": "th", "Tibt": "bo dz", "Yiii": "ii", "": "zh",
}  # fmt: skip
_USUAL = {lang: script for script, langs in _SCRIPTS.items() for lang in langs.split()}


@cache
def lang_code(text: str) -> str:
    """Spell a language as this toolkit does: BCP 47, with two letters where there are two, without the usual script.

    Other text, and a code of no known language, stay as they are but for letter case and "_".

    >>> [lang_code(text) for text in ("EN", "eng_Latn", "zho_Hans", "pt_br", "fre", "English")]
    ['en', 'en', 'zh-Hans', 'pt-BR', 'fr', 'English']
    """
    first, *rest = re.split("[-_]", text)
    if not re.fullmatch("[A-Za-z]{2,3}", first):
        return text
    lang = _TWO_LETTERS.get(first.lower(), first.lower())
    parts = [part.title() if len(part) == 4 else part.upper() if len(part) == 2 else part for part in rest]
    if parts and parts[0] == _USUAL.get(lang, "Latn"):
        del parts[0]
    return "-".join([lang, *parts])


def matching(lang: str, known: Iterable[str]) -> str | None:
    """Find the known name of a language, by the name itself or by its code; None if it is unknown."""
    known = tuple(known)
    if lang in known:
        return lang
    return next((each for each in known if lang_code(each) == lang_code(lang)), None)


def known_lang(lang: str, known: Collection[str], who: str, parameter: str = "lang") -> str:
    """The language as `known` spells it; without any, `lang`. UsageError if `who` does not have it, or for no code."""
    shown = lang if str(lang) and not re.search(r"\s", str(lang)) else f"'{lang}'"
    if not known:
        if not isinstance(lang, str) or not LANG.fullmatch(lang_code(lang)):
            raise UsageError(f"{shown}: expected a language code, as en.{lang_hint(str(lang))}", parameter=parameter)
        return lang
    if isinstance(lang, str) and re.search(r"[,;\s]\w", lang.strip()):
        raise UsageError(f"{shown}: expected one language, as {next(iter(known))}", parameter=parameter)
    if not isinstance(lang, str) or (same := matching(lang, known)) is None:
        raise UsageError(f"{shown}: {who} has {', '.join(known)}.{lang_hint(str(lang), known)}", parameter=parameter)
    return same


def takes(known: Collection[str], lang: str) -> bool:
    """Whether an encoder of these languages takes one; an encoder without a list takes any."""
    return not known or matching(lang, known) is not None


def lang_hint(text: str, known: Collection[str] = ()) -> str:
    """The end of a message about an unknown language: Did you mean 'en'? "" if nothing is close.

    It is the language of that name, among those known if there are some, or another form of it, as 'zh' for zh-Hans.
    """
    code = NAMES.get(text.lower(), "")
    if not known:
        return f" Did you mean '{code}'?" if code else ""
    close = [each for each in known if primary(each) == (code or primary(text))]
    return f" Did you mean '{close[0]}'?" if close else did_you_mean(text, known)


def primary(lang: str) -> str:
    """Remove script and region from a language code: "pt-BR" -> "pt"."""
    return lang_code(lang).partition("-")[0]

"""OPUS's own index: which corpora there are for two languages, and how large. Language codes are those of OPUS."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

import requests

from bgt_core.data.fetch.transfer import TIMEOUT
from bgt_core.errors import NotFound, UsageError

API = "https://opus.nlpl.eu/opusapi/"
CODE = r"[a-z]{2,3}(?:_[A-Za-z]+)?"  # fr, pt_BR
ISO = {  # two letters -> three, as LASER's files are named; the rest is spelled out by the user
    "ar": "ara",
    "bg": "bul",
    "cs": "ces",
    "da": "dan",
    "de": "deu",
    "el": "ell",
    "en": "eng",
    "eo": "epo",
    "es": "spa",
    "et": "est",
    "fa": "pes",
    "fi": "fin",
    "fr": "fra",
    "he": "heb",
    "hi": "hin",
    "hu": "hun",
    "id": "ind",
    "it": "ita",
    "ja": "jpn",
    "ko": "kor",
    "lt": "lit",
    "lv": "lvs",
    "nl": "nld",
    "pl": "pol",
    "pt": "por",
    "ro": "ron",
    "ru": "rus",
    "sk": "slk",
    "sl": "slv",
    "sv": "swe",
    "th": "tha",
    "tr": "tur",
    "uk": "ukr",
    "vi": "vie",
    "zh": "cmn",
}


class Corpus(NamedTuple):
    """One release of a corpus in two languages."""

    name: str
    release: str
    pairs: int
    bytes: int  # of the archive, about
    address: str


def languages(pair: str) -> tuple[str, str]:
    """ "en-fr" -> ("en", "fr"), in the order given."""
    found = re.fullmatch(f"({CODE})-({CODE})", pair)
    if not found or found[1] == found[2]:
        raise UsageError(f"--pair {pair}: expected two language codes, as in en-fr.")
    return found[1], found[2]


def corpora(
    asks: requests.Session, langs: tuple[str, str], name: str | None = None, release: str = "latest"
) -> list[Corpus]:
    """What OPUS has, largest first, of all corpora or of one; BgtError where it can't be asked or has nothing."""
    source, target = sorted(langs)  # OPUS names a pair by the alphabet
    query = {"source": source, "target": target, "preprocessing": "moses", "version": release}
    try:
        answer = asks.get(API, params=query | ({"corpus": name} if name else {}), timeout=TIMEOUT)
        answer.raise_for_status()
        found = [
            Corpus(
                item["corpus"],
                item["version"],
                int(item["alignment_pairs"] or 0),
                1024 * int(item["size"]),  # OPUS counts in KiB
                item["url"],
            )
            for item in json.loads(answer.content)["corpora"]
        ]
    except requests.RequestException as error:
        raise NotFound(f"{API}: OPUS can't be asked ({type(error).__name__}); try later.") from error
    except (KeyError, TypeError, ValueError) as error:
        raise NotFound(f"{API}: OPUS answers in another form than expected ({error!r}).") from error
    if not found:
        what = f"{name} {release}" if name else "nothing"
        raise NotFound(f"OPUS has no {what} for {source}-{target}." if name else f"OPUS has {what} for that pair.")
    return sorted(found, key=lambda corpus: (-corpus.pairs, corpus.name))

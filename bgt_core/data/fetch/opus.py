"""OPUS's index: its corpora in two languages, and their sizes. Language codes are those of OPUS."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import requests

from bgt_core.data.columns import split_langs
from bgt_core.data.fetch.transfer import TIMEOUT, one_line, unreachable
from bgt_core.data.languages import lang_code, lang_hint
from bgt_core.errors import NotFound, UsageError
from bgt_core.files import parse_json

API = "https://opus.nlpl.eu/opusapi/"
LABEL = r"[A-Za-z0-9](?:[\w.-]{0,98}[A-Za-z0-9])?"  # of a corpus or release: also a part of our files' names
CODE = r"[a-z]{2,3}(?:_[A-Za-z]+)?"  # fr, pt_BR


class OpusEntry(NamedTuple):
    """One release of a corpus in two languages."""

    name: str
    release: str
    pairs: int
    bytes: int  # approximate size of the archive
    address: str


def languages(pair: str) -> tuple[str, str]:
    """ "en-fr" or "eng_Latn-fra_Latn" -> ("en", "fr"), in the order given; regions stay as they are, as in pt_BR."""
    given = split_langs(pair)
    first, *rest = [code if "-" not in (code := lang_code(lang)) else lang for lang in given] or [""]
    if len(rest) != 1 or rest[0] == first or not all(re.fullmatch(CODE, lang) for lang in (first, *rest)):
        hint = next(filter(None, map(lang_hint, given)), "")
        raise UsageError(f"{pair}: expected two language codes, as in en-fr.{hint}", parameter="pair")
    return first, rest[0]


def label(text: str) -> str:
    """Check the name of a corpus or release; ValueError for one that would be unsafe as a part of a file name."""
    if not isinstance(text, str) or not re.fullmatch(LABEL, text) or ".." in text:
        raise ValueError(f"{text!r}: expected letters, digits, '.', '_' and '-'")
    return text


def protected(address: str) -> str:
    """Check that an address is at least as protected as the index itself; ValueError if not."""
    schemes = ("https://", API.partition("//")[0] + "//")
    if not isinstance(address, str) or not address.startswith(schemes):
        raise ValueError(f"{address!r}: expected an address that begins with {schemes[0]}")
    return address


def corpora(
    http: requests.Session, langs: Sequence[str], name: str | None = None, release: str = "latest"
) -> list[OpusEntry]:
    """List OPUS's corpora in two languages, or the releases of one corpus, largest first.

    Raises NotFound if OPUS does not answer or has none.
    """
    source, target = sorted(langs)  # OPUS names a pair by the alphabet
    query = {"source": source, "target": target, "preprocessing": "moses", "version": release}
    try:
        response = http.get(API, params=query | ({"corpus": name} if name else {}), timeout=TIMEOUT)
        response.raise_for_status()
        entries = [
            OpusEntry(
                label(item["corpus"]),
                label(item["version"]),
                int(item["alignment_pairs"] or 0),
                1024 * int(item["size"]),  # OPUS counts in KiB
                protected(item["url"]),
            )
            for item in parse_json(response.content, API)["corpora"]
        ]
    except (requests.ConnectionError, requests.Timeout) as error:
        raise unreachable(API, error) from error
    except requests.RequestException as error:
        raise NotFound(f"{API}: OPUS does not answer ({one_line(error)}); try later.") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotFound(f"{API}: OPUS's answer has an unexpected form ({error!r}).") from error
    if not entries:
        raise NotFound(f"OPUS has {f'no {name} {release}' if name else 'nothing'} for {source}-{target}.")
    return sorted(entries, key=lambda entry: (-entry.pairs, entry.name))

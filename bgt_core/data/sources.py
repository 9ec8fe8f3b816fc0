"""The data sets of `bgt data download`, with their licences (sources.tsv); OPUS's index; requests to servers.

Addresses come from public code of 2020-2026, and licences from the sources' own pages; none was checked against the
server when this was written. If a checksum is published (published.tsv: as recorded by the `datasets` library in the
dataset_infos.json of open_subtitles, giga_fren, sick), it decides; otherwise the first download is trusted, and later
ones must have the same SHA-256.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bgt_core.data.columns import THREE_LETTERS, lang_code, lang_hint, split_langs
from bgt_core.errors import NotFound, UsageError
from bgt_core.files import parse_json

if TYPE_CHECKING:
    import requests

API = "https://opus.nlpl.eu/opusapi/"
OPUS = "https://object.pouta.csc.fi/OPUS-{corpus}/{release}/moses/{opus_pair}.txt.zip"
LABEL = r"[A-Za-z0-9](?:[\w.-]{0,98}[A-Za-z0-9])?"  # of a corpus or release: also a part of our files' names
CODE = r"[a-z]{2,3}(?:_[A-Za-z]+)?"  # a language of OPUS: fr, pt_BR
TIMEOUT = (10.0, 60.0)  # seconds: to connect, and between two blocks
HEADERS = {"Accept-Encoding": "identity", "User-Agent": "bgt"}  # as stored, so that sizes fit the file


class DataSource(NamedTuple):
    """One data set. Addresses may contain {opus_pair}, {release} and {iso} (of the language other than English)."""

    name: str  # the name that users type
    what: str
    licence: str
    addresses: tuple[str, ...]
    layout: str = "files"  # how its files become ours: one of `fetch.LAYOUTS`
    pairs: str = ""  # languages: "any" pair, "any pair with en", one pair, or "" if there is no choice
    release: str = ""  # the default release; "latest" is looked up at OPUS


def _table(name: str) -> list[list[str]]:
    """The rows of a table of the package, without its header."""
    lines = Path(__file__).with_name(name).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines[1:]]


SOURCES = tuple(
    DataSource(name, what, licence, tuple(addresses.split()), *rest)
    for name, what, licence, addresses, *rest in _table("sources.tsv")
)
PUBLISHED = dict(_table("published.tsv"))


def source(name: str) -> DataSource:
    """Find a source by name, or "opus:NAME" for any other corpus of OPUS, spelled as there; UsageError for another
    name."""
    if name.lower().startswith("opus:") and len(name) > 5:
        address = OPUS.replace("{corpus}", name[5:])
        licence = "not known here; see its LICENSE and https://opus.nlpl.eu"
        return DataSource(name[5:].lower(), "a corpus of OPUS", licence, (address,), "aligned", "any", "latest")
    for known in SOURCES:
        if known.name == name.lower():
            return known
    names = ", ".join(known.name for known in SOURCES)
    raise UsageError(f"No data {name!r}; choose from {names}, or opus:NAME for another corpus of OPUS.")


def languages(pair: str) -> tuple[str, str]:
    """ "en-fr" or "eng_Latn-fra_Latn" -> ("en", "fr"), in the order given; regions stay as they are, as in pt_BR."""
    given = split_langs(pair)
    first, *rest = [code if "-" not in (code := lang_code(lang)) else lang for lang in given] or [""]
    if len(rest) != 1 or rest[0] == first or not all(re.fullmatch(CODE, lang) for lang in (first, *rest)):
        hint = next(filter(None, map(lang_hint, given)), "")
        raise UsageError(f"{pair}: expected two language codes, as in en-fr.{hint}", parameter="pair")
    return first, rest[0]


class Choice(NamedTuple):
    """A source with the languages and the release that a user chose."""

    source: DataSource
    langs: tuple[str, ...] = ()  # in the order of the columns
    release: str = ""

    @property
    def stem(self) -> str:
        """Base name of its files, and its name in the manifest: "opensubtitles.v2018.en-fr"."""
        parts = [self.source.name, self.release, "-".join(self.langs)]
        return ".".join(filter(None, parts))

    def resolve(self) -> tuple[Choice, list[str]]:
        """Fill in the addresses; asks OPUS for the latest release."""
        if self.release == "latest":
            corpus = self.source.addresses[0].partition("OPUS-")[2].partition("/")[0]
            largest = opus_corpora(self.langs, corpus)[0]
            return self._replace(release=largest.release), [largest.address]
        other = next((lang for lang in self.langs if lang != "en"), "")
        values = {"opus_pair": "-".join(sorted(self.langs)), "iso": THREE_LETTERS.get(other, other)}
        return self, [address.format(**values, release=self.release) for address in self.source.addresses]


def choose(name: str, *, pair: str | None = None, release: str | None = None) -> Choice:
    """Check what a user chose of a source; UsageError for choices that it does not have."""
    chosen = source(name)
    only = chosen.pairs if "-" in chosen.pairs else None
    pair = pair or only
    langs = languages(pair) if pair else ()
    with_english = chosen.pairs == "any pair with en"
    problems: Sequence[tuple[object, str, str]] = (
        (chosen.pairs and not pair, "pair", f"is needed: {chosen.name} has many pairs; choose one, as in en-fr."),
        (pair and not chosen.pairs, "pair", f"{pair}: {chosen.name} has no language pairs; leave it out."),
        (only and sorted(langs) != sorted(only.split("-")), "pair", f"{pair}: {chosen.name} has {only} only."),
        (
            with_english and "en" not in langs,
            "pair",
            f"{pair}: {chosen.name} is aligned with en; include it, as in en-fr.",
        ),
        (release and not chosen.release, "release", f"{release}: {chosen.name} has no releases; leave it out."),
        (
            release and not _is_label(release),
            "release",
            f"{release!r}: expected letters, digits, '.', '_', '-', as in v2018.",
        ),
    )
    for wrong, parameter, message in problems:
        if wrong:
            raise UsageError(message, parameter=parameter)
    return Choice(chosen, langs, release or chosen.release)


class OpusEntry(NamedTuple):
    """One release of a corpus in two languages."""

    name: str
    release: str
    pairs: int
    bytes: int  # approximate size of the archive
    address: str


def opus_corpora(langs: Sequence[str], name: str | None = None) -> list[OpusEntry]:
    """List OPUS's corpora in two languages, or the latest release of one, largest first.

    Raises NotFound if OPUS does not answer, answers in another form, or has none.
    """
    first, second = sorted(langs)  # OPUS names a pair by the alphabet
    query = {"source": first, "target": second, "preprocessing": "moses", "version": "latest"}
    content = request("GET", API, params=query | ({"corpus": name} if name else {})).content
    try:
        entries = [_entry(item) for item in parse_json(content, API)["corpora"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotFound(f"{API}: OPUS's answer has an unexpected form ({error!r}).") from error
    if not entries:
        raise NotFound(f"OPUS has {f'no {name}' if name else 'nothing'} for {first}-{second}.")
    return sorted(entries, key=lambda entry: (-entry.pairs, entry.name))


def _entry(item: Any) -> OpusEntry:
    """Read an entry of the index; ValueError for names that would be unsafe in a path, and for a plain http address."""
    name, release, address = (item[key] for key in ("corpus", "version", "url"))
    protected = isinstance(address, str) and address.startswith(("https://", API.partition("//")[0] + "//"))
    if not (_is_label(name) and _is_label(release) and protected):
        raise ValueError(f"{name!r} {release!r} {address!r}: expected plain names and an address in https")
    return OpusEntry(name, release, int(item["alignment_pairs"] or 0), 1024 * int(item["size"]), address)  # KiB


def _is_label(text: object) -> bool:
    return isinstance(text, str) and bool(re.fullmatch(LABEL, text)) and ".." not in text


# Requests to servers, with errors that name the address, the reason and the way out.


def remote_size(url: str) -> int | None:
    """The size of the file at `url`, or None if the server doesn't give it; NotFound if the file does not exist."""
    length = request("HEAD", url).headers.get("Content-Length", "")
    return int(length) if re.fullmatch(r"[0-9]{1,18}", length) else None


def request(method: str, url: str, **options: Any) -> requests.Response:
    """Send a request; NotFound if the server can't be reached, refuses it, or redirects it to an unencrypted address.

    Proxies and certificates come from the environment.
    """
    import requests

    with explained(url):
        response = requests.request(method, url, headers=HEADERS, timeout=TIMEOUT, allow_redirects=True, **options)
        response.raise_for_status()
    for hop in [*response.history, response]:
        if url.startswith("https:") and not hop.url.startswith("https:"):
            raise NotFound(f"{url}: redirects to {hop.url}, which is not encrypted; nothing was read.")
    return response


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Turn the errors of requests into NotFound, with the reason and a way out."""
    import requests
    import urllib3

    try:
        yield
    except requests.HTTPError as error:
        status, reason = getattr(error.response, "status_code", 0), getattr(error.response, "reason", "")
        hint = "try again later" if status == 429 or status >= 500 else "is there such a file?"
        raise NotFound(f"{url}: the server says {status} {reason}; {hint}") from error
    except requests.exceptions.ChunkedEncodingError as error:
        raise NotFound(f"{url}: the connection broke; the same command starts this file again.") from error
    except (requests.ConnectionError, requests.Timeout) as error:
        inner, reason = error, type(error).__name__
        while inner is not None:  # the system's error is the innermost
            reason = inner.strerror if isinstance(inner, OSError) and inner.strerror else reason
            inner = inner.__cause__ or inner.__context__  # type: ignore[assignment]
        proxy = proxy_of(url)
        way_out = "check that variable, or unset it" if proxy else "check the network, or try again later"
        raise NotFound(f"{url}: no connection{proxy} ({reason}); {way_out}.") from error
    except (requests.RequestException, urllib3.exceptions.HTTPError, UnicodeError) as error:
        raise NotFound(f"{url}: can't be requested ({' '.join(str(error).split())[:200]}).") from error


def proxy_of(url: str) -> str:
    """The proxy for an address and the variable that names it, as messages show them; "" without one."""
    from requests.utils import get_environ_proxies, select_proxy

    proxy = select_proxy(url, get_environ_proxies(url))
    if not proxy:
        return ""
    variables = [name for name, value in os.environ.items() if name.lower().endswith("_proxy") and value == proxy]
    return f" through the proxy {proxy.rpartition('@')[2]} ({', '.join(variables) or 'of the system'})"  # no password

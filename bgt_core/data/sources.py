"""The data sets of `bgt data download`: parallel corpora and evaluation sets, with their licences; OPUS's index.

Addresses come from public code of 2020-2026, and licences from the sources' own pages; none was checked against the
server when this was written. If a checksum is published (`PUBLISHED`), it decides; otherwise the first download is
trusted, and later ones must have the same SHA-256.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from bgt_core.data.columns import THREE_LETTERS, lang_code, lang_hint, split_langs
from bgt_core.data.web import request
from bgt_core.errors import NotFound, UsageError
from bgt_core.files import parse_json

API = "https://opus.nlpl.eu/opusapi/"
OPUS = "https://object.pouta.csc.fi/OPUS-{corpus}/{release}/moses/{opus_pair}.txt.zip"
LABEL = r"[A-Za-z0-9](?:[\w.-]{0,98}[A-Za-z0-9])?"  # of a corpus or release: also a part of our files' names
CODE = r"[a-z]{2,3}(?:_[A-Za-z]+)?"  # a language of OPUS: fr, pt_BR
STS_WIKI = "http://ixa2.si.ehu.es/stswiki/images/"
STS_LICENCE = "none stated for the whole; texts keep their own terms (2012 MSR: Microsoft Research; headlines: EMM)"
SENTEVAL = "https://raw.githubusercontent.com/facebookresearch/SentEval/main/data/probing/"
LASER = "https://raw.githubusercontent.com/facebookresearch/LASER/main/data/tatoeba/v1/tatoeba.{iso}-eng."
PROBES = (
    "bigram_shift coordination_inversion obj_number odd_man_out past_present sentence_length subj_number "
    "top_constituents tree_depth word_content"
).split()


class DataSource(NamedTuple):
    """One data set. Addresses may contain {opus_pair}, {release} and {iso} (of the language other than English)."""

    name: str  # the name that users type
    what: str
    licence: str
    addresses: tuple[str, ...]
    layout: str = "files"  # how its files become ours: one of `fetch.LAYOUTS`
    pairs: str = ""  # languages: "any" pair, "any pair with en", one pair, or "" if there is no choice
    release: str = ""  # the default release; "latest" is looked up at OPUS


# SHA-256 as recorded by the `datasets` library in the dataset_infos.json of open_subtitles, giga_fren, sick.
PUBLISHED = {
    OPUS.format(corpus=corpus, release=release, opus_pair=pair): digest
    for corpus, release, pair, digest in (
        ("OpenSubtitles", "v2018", "en-fr", "96e547fe3f710c444639bbf594569634931c46ffdbeb7b3e0766cb2c72171240"),
        ("OpenSubtitles", "v2018", "en-es", "e35e174b135b0fe2d48a0c9275dc456babd9732529e8de3d80141d241704e983"),
        ("OpenSubtitles", "v2018", "de-en", "b1bdd09f3667a85ba9fd0688c8a943c710317e11e5f0f722b7f0f3f0bc38300c"),
        ("giga-fren", "v2", "en-fr", "26b03b0b944829cc125c37542a50a62a47fcf77ca1ebab0c41eb1f84f8a4e6d1"),
    )
}
SICK = "https://zenodo.org/record/2787612/files/SICK.zip"
PUBLISHED[SICK] = "da272af924399fc2de4889ed55383e38822c10d16c4a949a89d597d09a0b7912"


def _opus(corpus: str, release: str, what: str, licence: str, pairs: str = "any") -> DataSource:
    address = OPUS.replace("{corpus}", corpus)
    return DataSource(corpus.lower(), what, licence, (address,), "moses", pairs, release)


# fmt: off
SOURCES = (
    _opus("OpenSubtitles", "v2018", "film subtitles, 62 languages; the paper's data",
          "none stated; OPUS asks for a link to www.opensubtitles.org in what you publish"),
    _opus("giga-fren", "v2", "web pages of institutions, the 10^9 corpus of WMT 2010; 22.5 million pairs",
          "none stated", "en-fr"),
    _opus("Tatoeba", "v2023-04-12", "short sentences by volunteers", "CC BY 2.0 FR"),
    _opus("TED2020", "v1", "transcripts of talks", "CC BY-NC-ND 4.0 (TED's terms)"),
    _opus("Europarl", "v8", "proceedings of the European Parliament",
          "none stated; no restriction known to its authors"),
    _opus("News-Commentary", "v16", "opinion pieces, from WMT", "none stated"),
    _opus("GlobalVoices", "v2018q4", "citizens' news", "CC BY (Global Voices; the version is in the archive)"),
    _opus("WikiMatrix", "v1", "sentences mined from Wikipedia", "CC BY-SA (Wikipedia)"),
    _opus("CCMatrix", "v1", "sentences mined from the web, very large", "none stated; Common Crawl's terms of use"),
    _opus("UNPC", "v1.0", "United Nations documents, six languages", "free use that acknowledges the United Nations"),
    _opus("JParaCrawl", "latest", "Japanese and English from the web", "NTT's own: research only", "en-ja"),
    *(
        DataSource(f"sts{year}", f"SemEval {year} semantic textual similarity, English{note}", STS_LICENCE,
                   (f"{STS_WIKI}{image}/STS{year}-en-test.zip",), "sts")
        for year, image, note in (
            (2012, "4/40", ""), (2013, "2/2f", "; without the SMT set, which the LDC sells"), (2014, "8/8c", ""),
            (2015, "d/da", ""), (2016, "9/98", ""),
        )
    ),
    DataSource("sts2017", "SemEval 2017: Arabic, Spanish, English, Turkish, within and across languages",
               "CC BY-SA 4.0 (most sentences come from SNLI)",
               (STS_WIKI + "2/20/Sts2017.eval.v1.1.zip", STS_WIKI + "7/70/Sts2017.gs.zip"), "tracks"),
    DataSource("stsb", "STS Benchmark: train, dev, test", "scores CC BY-SA 4.0; texts keep their own terms",
               (STS_WIKI + "4/48/Stsbenchmark.tar.gz",)),
    DataSource("senteval-sts", "STS 2012-2016, STS Benchmark, SICK and more in SentEval's layout, tokenised; as SimCSE "
               "packs it", "none stated; that of each set",
               ("https://huggingface.co/datasets/princeton-nlp/datasets-for-simcse/resolve/main/senteval.tar",)),
    DataSource("sick", "SICK: relatedness and entailment", "CC BY-NC-SA 3.0", (SICK,)),
    DataSource("senteval-probing", "SentEval's ten probing tasks, English, 120,000 sentences each",
               "none stated for the sentences, which are from books: use them, don't pass them on",
               tuple(f"{SENTEVAL}{task}.txt" for task in PROBES)),
    DataSource("tatoeba-1000", "LASER's retrieval test: up to 1,000 translations of English", "CC BY 2.0 FR (Tatoeba)",
               (LASER + "eng", LASER + "{iso}"), "tatoeba", "any pair with en"),
)
# fmt: on


def source(name: str) -> DataSource:
    """Find a source by name, or "opus:NAME" for any other corpus of OPUS, spelled as there; UsageError for another
    name."""
    if name.lower().startswith("opus:") and len(name) > 5:
        return _opus(name[5:], "latest", "a corpus of OPUS", "not known here; see its LICENSE and https://opus.nlpl.eu")
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
    problems: dict[str, list[tuple[object, str]]] = {
        "pair": [
            (chosen.pairs and not pair, f"is needed: {chosen.name} has many pairs; choose one, as in en-fr."),
            (pair and not chosen.pairs, f"{pair}: {chosen.name} has no language pairs; leave it out."),
            (only and sorted(langs) != sorted(only.split("-")), f"{pair}: {chosen.name} has {only} only."),
            (
                chosen.pairs == "any pair with en" and "en" not in langs,
                f"{pair}: {chosen.name} is aligned with en; include it, as in en-fr.",
            ),
        ],
        "release": [
            (release and not chosen.release, f"{release}: {chosen.name} has no releases; leave it out."),
            (release and not _is_label(release), f"{release!r}: expected letters, digits, '.', '_', '-', as in v2018."),
        ],
    }
    for parameter, checks in problems.items():
        for wrong, message in checks:
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

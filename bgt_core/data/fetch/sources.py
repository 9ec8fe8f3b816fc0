"""The sources of `bgt data download`: parallel corpora and evaluation sets, with their licences.

Addresses come from public code of 2020-2026, and licences from the sources' own pages; none was checked against
the server when this was written. The server is asked for the size before a download. If a checksum is
published (`PUBLISHED`), it decides; otherwise the first download is trusted, its SHA-256 is kept in the manifest beside
it, and later downloads must have the same.
"""

from __future__ import annotations

from bgt_core.data.fetch import layouts
from bgt_core.data.fetch.request import DataSource
from bgt_core.errors import UsageError

OPUS = "https://object.pouta.csc.fi/OPUS-{corpus}/{release}/moses/{opus_pair}.txt.zip"
STS_WIKI = "http://ixa2.si.ehu.es/stswiki/images/"
STS_LICENCE = "none stated for the whole; texts keep their own terms (2012 MSR: Microsoft Research; headlines: EMM)"
SENTEVAL = "https://raw.githubusercontent.com/facebookresearch/SentEval/main/data/probing/"
LASER = "https://raw.githubusercontent.com/facebookresearch/LASER/main/data/tatoeba/v1/tatoeba.{iso}-eng."
PROBES = (
    "bigram_shift coordination_inversion obj_number odd_man_out past_present sentence_length subj_number "
    "top_constituents tree_depth word_content"
).split()

# Bytes and SHA-256 as recorded by the `datasets` library in the dataset_infos.json of open_subtitles, giga_fren, sick.
PUBLISHED = {
    OPUS.format(corpus="OpenSubtitles", release="v2018", opus_pair="en-fr"): (
        1_296_192_799,
        "96e547fe3f710c444639bbf594569634931c46ffdbeb7b3e0766cb2c72171240",
    ),
    OPUS.format(corpus="OpenSubtitles", release="v2018", opus_pair="en-es"): (
        1_888_798_249,
        "e35e174b135b0fe2d48a0c9275dc456babd9732529e8de3d80141d241704e983",
    ),
    OPUS.format(corpus="OpenSubtitles", release="v2018", opus_pair="de-en"): (
        710_557_991,
        "b1bdd09f3667a85ba9fd0688c8a943c710317e11e5f0f722b7f0f3f0bc38300c",
    ),
    OPUS.format(corpus="giga-fren", release="v2", opus_pair="en-fr"): (
        2_701_536_198,
        "26b03b0b944829cc125c37542a50a62a47fcf77ca1ebab0c41eb1f84f8a4e6d1",
    ),
    "https://zenodo.org/record/2787612/files/SICK.zip": (
        217_584,
        "da272af924399fc2de4889ed55383e38822c10d16c4a949a89d597d09a0b7912",
    ),
}


def _opus(corpus: str, release: str, what: str, licence: str, pairs: str = "any") -> DataSource:
    address = OPUS.replace("{corpus}", corpus)
    return DataSource(corpus.lower(), what, licence, (address,), layouts.moses, pairs, release)


def _sts(year: int, image: str, note: str = "") -> DataSource:
    what = f"SemEval {year} semantic textual similarity, English{note}"
    address = f"{STS_WIKI}{image}/STS{year}-en-test.zip"
    return DataSource(f"sts{year}", what, STS_LICENCE, (address,), layouts.sts)


SOURCES = (
    _opus(
        "OpenSubtitles",
        "v2018",
        "film subtitles, 62 languages; the paper's data",
        "none stated; OPUS asks for a link to www.opensubtitles.org in what you publish",
    ),
    _opus(
        "giga-fren",
        "v2",
        "web pages of institutions, the 10^9 corpus of WMT 2010; 22.5 million pairs",
        "none stated",
        "en-fr",
    ),
    _opus("Tatoeba", "v2023-04-12", "short sentences by volunteers", "CC BY 2.0 FR"),
    _opus("TED2020", "v1", "transcripts of talks", "CC BY-NC-ND 4.0 (TED's terms)"),
    _opus(
        "Europarl", "v8", "proceedings of the European Parliament", "none stated; no restriction known to its authors"
    ),
    _opus("News-Commentary", "v16", "opinion pieces, from WMT", "none stated"),
    _opus("GlobalVoices", "v2018q4", "citizens' news", "CC BY (Global Voices; the version is in the archive)"),
    _opus("WikiMatrix", "v1", "sentences mined from Wikipedia", "CC BY-SA (Wikipedia)"),
    _opus("CCMatrix", "v1", "sentences mined from the web, very large", "none stated; Common Crawl's terms of use"),
    _opus("UNPC", "v1.0", "United Nations documents, six languages", "free use that acknowledges the United Nations"),
    _opus("JParaCrawl", "latest", "Japanese and English from the web", "NTT's own: research only", "en-ja"),
    _sts(2012, "4/40"),
    _sts(2013, "2/2f", "; without the SMT set, which the LDC sells"),
    _sts(2014, "8/8c"),
    _sts(2015, "d/da"),
    _sts(2016, "9/98"),
    DataSource(
        "sts2017",
        "SemEval 2017: Arabic, Spanish, English, Turkish, within and across languages",
        "CC BY-SA 4.0 (most sentences come from SNLI)",
        (STS_WIKI + "2/20/Sts2017.eval.v1.1.zip", STS_WIKI + "7/70/Sts2017.gs.zip"),
        layouts.tracks,
    ),
    DataSource(
        "stsb",
        "STS Benchmark: train, dev, test",
        "scores CC BY-SA 4.0; texts keep their own terms",
        (STS_WIKI + "4/48/Stsbenchmark.tar.gz",),
        layouts.as_is,
    ),
    DataSource(
        "senteval-sts",
        "STS 2012-2016, STS Benchmark, SICK and more in SentEval's layout, tokenised; as SimCSE packs it",
        "none stated; that of each set",
        ("https://huggingface.co/datasets/princeton-nlp/datasets-for-simcse/resolve/main/senteval.tar",),
        layouts.as_is,
    ),
    DataSource(
        "sick",
        "SICK: relatedness and entailment",
        "CC BY-NC-SA 3.0",
        ("https://zenodo.org/record/2787612/files/SICK.zip",),
        layouts.as_is,
    ),
    DataSource(
        "senteval-probing",
        "SentEval's ten probing tasks, English, 120,000 sentences each",
        "none stated for the sentences, which are from books: use them, don't pass them on",
        tuple(f"{SENTEVAL}{task}.txt" for task in PROBES),
        layouts.as_is,
    ),
    DataSource(
        "tatoeba-1000",
        "LASER's retrieval test: up to 1,000 translations of English",
        "CC BY 2.0 FR (Tatoeba)",
        (LASER + "eng", LASER + "{iso}"),
        layouts.tatoeba,
        "any pair with en",
    ),
)


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

"""Opened models and cached vectors, which all sessions share, and the lock that admits one request to the models at a
time. The least recently used vectors are dropped if memory is short."""

import hashlib
import os
import threading
import unicodedata
import uuid
from collections import OrderedDict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

import bgt_core
from app.core import inventory, rows
from app.core.display import NOTES
from bgt_core.contracts import SEMANTIC, UNK, GenerativeModel, SentenceEncoder, TranslationModel, VectorModel
from bgt_core.data.examples import LANGS, example_sentences
from bgt_core.data.text import normalise
from bgt_core.encoders import KINDS, with_kind
from bgt_core.errors import Busy, NotFound, UsageError
from bgt_core.evaluation.facts import Check, checks
from bgt_core.files import atomic_file, json_lines

if TYPE_CHECKING:
    from bgt_core.generation.generate import Candidate

PATIENCE = 60  # seconds that a request waits for another session's request
AT_ONCE = 5_000  # sentences per request; many small requests have more batch shapes, each of which takes oneDNN memory
KEPT_BYTES = 400_000_000  # maximum size in bytes of all cached vectors; the newest always stay
CACHE = Path(os.environ.get("BGT_CACHE") or os.path.expanduser("~/.cache/bgt"))  # folder with vectors of examples
HASH, FILES = 32, 40  # bytes of a hash; maximum number of files in `CACHE`, of up to 5 MB each
LISTED = 1_000  # maximum number of sentences of a text that are listed, or searched for neighbours
FEW = 64  # embedding up to this many sentences is faster than looking up cached vectors
RUNS = {f"{name}:": kind.runs for name, kind in KINDS.items()}  # kind of encoder -> a sentence about where it runs
MAX_LENGTH = 60  # maximum number of generated tokens
MAX_CHARACTERS = 500  # maximum characters of a source sentence; training sentences are far shorter
UNREAD_SHARE = 0.1  # the user is warned if a model can't read this share of the characters
STORED = "The encoder is a file of vectors. New sentences, also those with a word left out, need the encoder itself."
_inference = threading.Lock()


@dataclass(frozen=True, eq=False)
class Loaded:
    """An opened model, with the interface of an encoder. Vectors are cached, and requests wait for each other."""

    title: str  # a short name without a path, unique in the session
    reader: SentenceEncoder  # the encoder that `open_encoder` returned
    langs: Sequence[str]  # the model's languages; if it reads any language, those of the app's texts
    info: Mapping[str, Any]  # the checkpoint's description; empty for encoders from other libraries
    log: list[dict[str, Any]]  # the rows of its training log; empty for encoders from other libraries
    device: str  # a sentence that says where the model runs
    spec: str = ""  # the model's name for `open_encoder`; it may contain a path, so it is only shown as help
    held_out: Mapping[Any, np.ndarray] = field(default_factory=dict)  # text -> rows not used to fit a split encoder
    corpus: inventory.ParallelText | None = None  # pairs with stored vectors; the held-out pairs of a split come first

    @property
    def bgt(self) -> Any:
        """The `Embedder` of a model of this toolkit; None for encoders from other libraries."""
        from bgt_core.embedder import Embedder

        return self.reader if isinstance(self.reader, Embedder) else None

    @cached_property
    def digest(self) -> str:
        """The key of the model's vectors in caches; random for an encoder without a fingerprint."""
        files = self.info.get("files", {})
        return " ".join(files.values()) or self.reader.fingerprint or uuid.uuid4().hex

    @property
    def short(self) -> str:
        """The start of a SHA-256 hash of the weights, or else of `digest`, for file names."""
        files = self.info.get("files")
        return (files["model.safetensors"] if files else content([self.digest]))[:8]

    @property
    def second_latent(self) -> str:
        """The name of the latent besides the semantic latent, such as "language"; "" for a model with one latent."""
        return next((latent for latent in self.latents if latent != SEMANTIC), "")

    @property
    def translates(self) -> str:
        """The languages that the model translates, as in "French into English"; "" if it does not translate."""
        model = self.bgt and self.bgt.model
        written = " and ".join(map(rows.language_name, model.translates if isinstance(model, TranslationModel) else ()))
        return f"{self.languages} into {written}" if written else ""

    @property
    def cannot_write(self) -> str:
        """The reason why the model can't generate a sentence in the style of another one; "" if it can."""
        if not self.bgt:
            return "This encoder can't generate sentences. A writer trained for it can: open one on “Your encoder”."
        if self.translates:
            return f"This model translates {self.translates}, and has no latent for style."
        if not self.second_latent:
            return "This model has no latent for style."
        if not (isinstance(self.bgt.model, GenerativeModel) and self.bgt.model.writes):
            return "This model can't generate sentences: its decoder is a bag of words, without word order."
        return ""

    @property
    def name(self) -> str:
        return f"{self.info['recipe']}, {self.info['step']:,} updates" if self.info else self.title

    @property
    def latents(self) -> Sequence[str]:
        return self.reader.latents

    @property
    def reads(self) -> str:
        """The model's languages; if unknown, the languages for which the app uses it."""
        stated = "" if self.reader.langs else "Its languages are unknown. Shown: "
        return self.translates or stated + self.languages

    @property
    def languages(self) -> str:
        return ", ".join(map(rows.language_name, self.langs))

    @property
    def about(self) -> Mapping[str, Any]:
        """The method, numbers of rows and scores of a split encoder; empty for any other model."""
        return getattr(self.reader, "about", {})

    def fitted_on(self, text: inventory.ParallelText) -> str:
        """Say whether a split encoder was made from the pairs of a text; "" for any other model."""
        if text in self.held_out:
            count = len(self.held_out[text])
            return f"{self.title} was made from these pairs, except for {count:,} held-out pairs."
        return f"{self.title} may have been made from some of these pairs." * bool(self.about)

    @property
    def sentences(self) -> Container[str]:
        """The only sentences that the encoder can embed, normalised, if it looks up vectors; () for any other model."""
        return getattr(self.reader, "sentences", ())

    def embeds(self, *sentences: str) -> bool:
        return not self.sentences or all(normalise(each) in self.sentences for each in sentences)

    def texts(self, least: int = 1) -> dict[str, inventory.ParallelText]:
        """Return the texts with `least` columns in the model's languages, except those that the model can't embed."""
        texts = inventory.readable(self.langs, least)
        few = {name: inventory.columns_of(text, FEW)[0] for name, text in texts.items() if self.sentences}
        ends = {name: [column[end] for column in columns for end in (0, -1)] for name, columns in few.items()}
        return {name: text for name, text in texts.items() if self.embeds(*ends.get(name, ()))}

    def listed(self, lang: str) -> pd.DataFrame:
        """Return sentences in a language whose vectors are stored: of a text, or of a split's held-out pairs."""
        texts = self.texts().values() if self.sentences else [self.corpus] if self.corpus else ()
        tables = (inventory.sentences(text.alone(lang), LISTED) for text in texts if lang in text.langs)
        return next(tables, rows.table([], lang, None))

    @property
    def fingerprint(self) -> str:
        return self.reader.fingerprint

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        return embed(self, sentences, lang, latent)

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return self.reader.similarity(left, right)

    def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return self.reader.similarity_pairwise(left, right)


# Streamlit's caches hash a model by its attribute `digest`.
BY_DIGEST: dict[str | type, Callable[[Any], Any]] = {Loaded: attrgetter("digest")}


def titles() -> list[str]:
    """Return the titles of the models named when the app was started, then of those opened or split in this session."""
    return [*dict.fromkeys([*inventory.read().models, *inventory.of_session().models])]


def model() -> Loaded:
    """Return the model chosen in this session, by default the first. Raises BgtError if it can't be opened."""
    chosen, names = st.session_state.get("ckpt"), titles()
    return opened(chosen if chosen in names else names[0])


def second() -> Loaded | None:
    """Return the model chosen under "Compare with"; None if no model, or the first one, is chosen there."""
    return st.session_state.get("second")


def opened(title: str) -> Loaded:
    """Open the model with this title, once for all sessions. Raises BgtError if it can't be opened."""
    if own := inventory.of_session().models.get(title):
        return own
    with st.spinner("Loading the model"):
        return _load(title, inventory.read().models[title])


def default() -> Loaded:
    """Open the first model before there is a session. Raises BgtError if it can't be opened."""
    return _load(*next(iter(inventory.read().models.items())))


@st.cache_resource(max_entries=6, show_spinner=False)
def _load(title: str, spec: str) -> Loaded:
    return of_spec(title, spec)


def of_spec(title: str, spec: str) -> Loaded:
    """Open an encoder of any kind. Raises UsageError if it has no semantic latent, and the errors of `open_encoder`."""
    spec = with_kind(spec)
    kind = inventory.path_kind(spec)
    if not kind:
        return checkpoint(title, spec, bgt_core.open_encoder)
    reader = bgt_core.open_encoder(spec)
    if SEMANTIC not in reader.latents:
        raise UsageError(f"{spec}: has the latents {', '.join(reader.latents)}; the app needs one called semantic.")
    return Loaded(title, reader, reader.langs or inventory.read().langs, {}, [], RUNS[kind], spec)


def checkpoint(title: str, path: str, opens: Callable[[Path], SentenceEncoder]) -> Loaded:
    """Open a model of this toolkit with its training log. `opens` opens the folder, and may raise BgtError."""
    info = bgt_core.info(path)
    folder = Path(info["folder"])
    logs = [folder / "metrics.jsonl", folder.parent / "metrics.jsonl"]  # the checkpoint's folder, or the training run's
    log = next((read_log(file, info["step"]) for file in logs if file.is_file()), [])
    reader: Any = opens(folder)
    reader.embed([], lang=reader.langs[0])  # raises an error if the vectors' encoder has changed
    device = f"Runs on {'the CPU' if reader.device.type == 'cpu' else reader.device}"
    if isinstance(reader.model, VectorModel):
        device += f", from vectors of {inventory.short_name(reader.model.stored.encoder)}"
    return Loaded(title, reader, reader.langs, info, log, device, path)


def read_log(path: Path, last: int) -> list[dict[str, Any]]:
    """Read the rows of a training log up to the step `last` of the checkpoint: training may have continued after it. A
    row about held-out pairs is skipped if one of its values is not a number."""
    rows = [row for _, row in json_lines(path) if row.get("kind") and isinstance(row.get("step"), int)]
    return [
        row
        for row in rows
        if row["step"] <= last
        and (row["kind"] != "valid" or all(isinstance(row[name], int | float) for name in row if name != "kind"))
    ]


@contextmanager
def inference() -> Iterator[None]:
    """Admit one request to the models at a time. Raises Busy after a wait of a minute."""
    if not _inference.acquire(timeout=PATIENCE):
        raise Busy("The model is busy with another request; try again in a moment.")
    try:
        yield
    finally:
        _inference.release()


def embed(loaded: Loaded, texts: Sequence[str], lang: str, latent: str) -> np.ndarray:
    """Embed sentences; return vectors (N, D). For over `FEW` sentences, they are read-only, and sessions share them."""
    return embed_parts(loaded, [(lang, list(texts))], latent)


def embed_parts(loaded: Loaded, parts: Sequence[tuple[str, Sequence[str]]], latent: str) -> np.ndarray:
    """Embed the (language, sentences) of each part in order; return vectors (N, D), shared like those of `embed`."""
    if sum(len(texts) for _, texts in parts) <= FEW:
        return np.concatenate([computed(loaded, latent, texts, lang) for lang, texts in parts])
    hashes = " ".join(f"{lang} {content(texts)}" for lang, texts in parts)
    on_disk = loaded.info and all(examples(lang).keys() >= {*texts} for lang, texts in parts)
    return filled(f"{loaded.digest} {latent} {hashes}", parts, partial(stored if on_disk else computed, loaded, latent))


def computed(loaded: Loaded, latent: str, texts: Sequence[str], lang: str) -> np.ndarray:
    with inference():  # each batch takes the lock anew, so that a long text does not block other users
        return loaded.reader.embed(texts, lang=lang, latent=latent)


def stored(loaded: Loaded, latent: str, texts: Sequence[str], lang: str) -> np.ndarray:
    """Return the vectors (N, D) from their file in `CACHE`. If it is missing or damaged, compute and write them. A file
    contains a SHA-256 hash, and then float32 numbers. If there are more than `FILES` files, delete the oldest ones."""
    name = content([bgt_core.__version__, loaded.digest, loaded.device, latent, lang, *texts])
    path = CACHE / f"{name}.vectors"
    with suppress(OSError):
        data = path.read_bytes()
        if hashlib.sha256(data[HASH:]).digest() == data[:HASH]:
            return np.frombuffer(data, np.float32, offset=HASH).reshape(len(texts), -1)
    vectors = computed(loaded, latent, texts, lang)
    with suppress(NotFound, OSError):  # the app also works if it can't write
        with atomic_file(path) as unfinished:
            unfinished.write_bytes(hashlib.sha256(vectors.tobytes()).digest() + vectors.tobytes())
        for old in sorted(CACHE.glob("*.vectors"), key=os.path.getmtime)[:-FILES]:
            old.unlink()
    return vectors


@cache
def examples(lang: str) -> dict[str, None]:
    """Return the example sentences of a language in order, each once, as the keys of a dictionary."""
    return dict.fromkeys(text for (text,) in example_sentences([lang])) if lang in LANGS else {}


def candidates(loaded: Loaded, semantic: np.ndarray, second: np.ndarray, lang: str) -> "list[list[Candidate]]":
    """Generate candidates in `lang` for each row of `semantic` (N, L) and `second` (N, M), the most faithful first."""
    from bgt_core.generation import generate  # importing this module is slow

    latents = {SEMANTIC: semantic, loaded.second_latent: second}
    with inference():
        return generate.candidates(loaded.bgt, latents, lang=lang, max_length=MAX_LENGTH)


def write(loaded: Loaded, semantic: np.ndarray, second: np.ndarray, lang: str) -> list[str]:
    """Generate a sentence from each row of both latents: the candidate that keeps the latents best."""
    return [best.text for best, *_ in candidates(loaded, semantic, second, lang)]


@st.cache_data(max_entries=64, show_spinner=False, hash_funcs=BY_DIGEST)
def usual_cosine(loaded: Loaded, langs: tuple[str, str]) -> float:
    """Return the semantic cosine that four of five translations of example sentences exceed; -1 without examples."""
    if not (translations := example_sentences(langs) if {*langs} <= {*LANGS} else []):
        return -1.0
    vectors = {lang: embed(loaded, list(examples(lang)), lang, SEMANTIC) for lang in langs}  # of all, as the start page
    rows = {lang: {text: row for row, text in enumerate(examples(lang))} for lang in langs}
    sides = zip(langs, zip(*translations, strict=True), strict=True)
    left, right = (vectors[lang][[rows[lang][text] for text in texts]] for lang, texts in sides)
    return float(np.quantile(loaded.similarity_pairwise(left, right), 0.2))


def verdicts(loaded: Loaded, source: str, source_lang: str, text: str, lang: str, cosine: float) -> list[Check]:
    """Compare a generated text with its source by rules and, across languages, by the cosine of semantic latents."""
    far = source_lang != lang and cosine < usual_cosine(loaded, (source_lang, lang))
    return checks(source, source_lang, text, lang) + [Check(False, "farther in meaning than 4 of 5 translations")] * far


@dataclass(eq=False)
class Matrix:
    """A cache entry: vectors (N, D), or None until they are computed."""

    vectors: np.ndarray | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


@st.cache_resource(show_spinner=False)
def _kept() -> OrderedDict[str, Matrix]:
    """Return the cache of vectors, in which the most recently used entry is last."""
    return OrderedDict()


def filled(
    key: str, parts: Sequence[tuple[str, Sequence[str]]], embed: Callable[[Sequence[str], str], np.ndarray]
) -> np.ndarray:
    """Return the vectors (N, D), read-only, that are cached under a key. If there are none, embed the sentences of all
    parts in order, each (language, sentences), and show the progress. `embed` gets up to 5,000 sentences at once."""
    kept = _kept()
    matrix = kept.setdefault(key, Matrix())
    kept.move_to_end(key)
    with matrix.lock:
        if matrix.vectors is None:
            count, done, bar = sum(len(texts) for _, texts in parts), 0, st.empty()
            for lang, texts in parts:
                for at in range(0, len(texts), AT_ONCE):
                    if done:
                        bar.progress(done / count, f"Embedding: {done:,} of {count:,} sentences")
                    of_batch = embed(texts[at : at + AT_ONCE], lang)
                    if not done:  # the array is allocated as soon as the size of the vectors is known
                        vectors = np.empty((count, of_batch.shape[1]), np.float32)
                    vectors[done : done + len(of_batch)] = of_batch
                    done += len(of_batch)
            bar.empty()
            vectors.setflags(write=False)  # all sessions share this array
            matrix.vectors = vectors
    while len(kept) > 1 and sum(one.vectors.nbytes for one in [*kept.values()] if one.vectors is not None) > KEPT_BYTES:
        kept.popitem(last=False)
    return matrix.vectors


def warning(loaded: Loaded, texts: Sequence[str], lang: str) -> str:
    """Return a warning if texts are not in `lang` or have characters that the model can't read; else return ""."""
    if other := rows.other_language(texts, lang):
        looks = f"This looks like {rows.language_name(other)}"
        known = f"{looks}, not {rows.language_name(lang)}: choose its language."
        return known if other in loaded.langs else f"{looks}, which this model does not know."
    if loaded.bgt is None:  # the tokens and training data of external encoders are unknown
        return ""
    characters = list(unicodedata.normalize("NFKC", "".join("".join(rows.sample(texts)).split())))
    kinds = list(dict.fromkeys(characters))
    tokens = zip(kinds, loaded.bgt.tokenizer.encode(kinds), strict=True)
    unread = {kind: rows.foreign_letters(kind, lang) or kind * (UNK in ids) for kind, ids in tokens}
    named = dict.fromkeys(filter(None, unread.values()))
    count = sum(bool(unread[kind]) for kind in characters)
    if not count or count < UNREAD_SHARE * len(characters):
        return ""
    return NOTES["unread"].format(", ".join([*named][:5]), rows.language_name(lang), count, len(characters))


def content(texts: Sequence[str]) -> str:
    """Hash a list of texts."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()

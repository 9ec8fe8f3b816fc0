"""Build a store: embed questions once, and calibrate probabilities."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from bgt_core import __version__
from bgt_core.adapters.named import identity
from bgt_core.bulk import embed_file
from bgt_core.contracts import SentenceEncoder
from bgt_core.errors import UsageError
from bgt_core.evaluation.pairs.measures import LabelledPairs
from bgt_core.files import alone, lasting_name, sha256_file, write_text, writing
from bgt_core.mining.bitext import read_sentences
from bgt_core.mining.neighbours import load_faiss
from bgt_core.questions.ranking import UNCALIBRATED, Platt, Ranking, fit_platt, ranking_of
from bgt_core.questions.store import CARD, QUESTIONS, VECTORS, StoreCard


def build(
    source: Path,
    out: Path,
    encoder: SentenceEncoder,
    *,
    model: str = "",
    lang: str = "en",
    dev: LabelledPairs | None = None,
    report: Callable[[int, int], None] = lambda rows, total: None,
) -> StoreCard:
    """Store the distinct questions of a text, one per line, in the folder `out`.

    A trained `var-siamese` compares them by the probability that they are duplicates, any other encoder by cosine.
    Labelled pairs `dev` turn scores into probabilities (`calibration`), which hold for similar pairs. Without `dev`,
    the probabilities of a siamese network are used as they are, and cosines give none. `model` is the spec of
    `encoder`, which is stored.

    A stopped build continues; a build of the same questions by the same encoder keeps the vectors. Raises UsageError if
    `out` holds another store or other files, DataError for a text without questions and for labelled pairs that can't
    be calibrated on, and otherwise as `bulk.embed_file`.
    """
    load_faiss()
    ranking = ranking_of(encoder)
    questions = read_sentences(source).texts
    check_folder(out)
    calibration = calibrate(ranking, dev, lang)
    with alone(out / CARD):
        text = "\n".join(questions) + "\n"
        keep_other_stores(out, identity(encoder), text)
        with writing(out):
            (out / CARD).unlink(missing_ok=True)  # until the store is complete again
        write_text(out / QUESTIONS, text)
        embed_file(ranking.encoder, out / QUESTIONS, out / VECTORS, lang=lang, report=report)
        card = StoreCard(
            questions=len(questions),
            text=sha256_file(out / QUESTIONS),
            encoder=identity(encoder),
            model=lasting_name(model),
            by=ranking.by,
            lang=lang,
            calibration=calibration,
            calibrated_on=dev.name if dev else "",
            version=__version__,
        )
        card.save(out)
        return card


def calibrate(ranking: Ranking, dev: LabelledPairs | None, lang: str) -> Platt | None:
    """Calibrate on labelled pairs; without any, a siamese network's probabilities stay as they are, and cosines give
    none."""
    if dev is None:
        return UNCALIBRATED if ranking.by == "probability" else None
    left, right = (ranking.encoder.embed(list(side), lang=lang) for side in (dev.left, dev.right))
    scores = [ranking.scores(one, other[None])[0] for one, other in zip(left, right, strict=True)]
    return fit_platt(np.array(scores), dev.labels)


def check_folder(out: Path) -> None:
    """Raise UsageError if the folder holds files that do not belong to a store."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out}: is a file; choose a folder for the store.")
    names = {path.name for path in out.iterdir()} if out.is_dir() else set()
    if names and not any(name.startswith((CARD, QUESTIONS)) for name in names):  # a killed build leaves its lock
        raise UsageError(f"{out}: holds other files; choose another folder for the store.")


def keep_other_stores(out: Path, encoder: str, text: str) -> None:
    """Raise UsageError rather than overwrite a complete store of other questions, or by another encoder."""
    if not (out / CARD).exists():
        return
    card = StoreCard.load(out)
    if card.encoder != encoder or (out / QUESTIONS).read_text(encoding="utf-8") != text:
        raise UsageError(
            f"{out}: holds a store of {card.questions:,} questions, other ones or by another model; "
            "choose another folder, or remove it."
        )

"""mteb can evaluate our models: its scores on small tasks are right, and are stored under the checkpoint's hash."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mteb")
with warnings.catch_warnings():  # importing mteb raises warnings
    warnings.simplefilter("ignore")
    import mteb
    from mteb.abstasks.sts import AbsTaskSTS
    from mteb.abstasks.task_metadata import TaskMetadata
    from mteb.abstasks.text.bitext_mining import AbsTaskBitextMining
    from mteb.cache import ResultCache

from datasets import Dataset, DatasetDict
from scipy.stats import pearsonr, spearmanr

import bgt_core
from bgt_core import checkpoint
from bgt_core.encoders.mteb import load_mteb
from bgt_core.errors import BgtError
from bgt_core.grammar import Pair
from tests.close import FLOAT32, assert_close

pytestmark = [  # mteb raises these warnings for any model
    pytest.mark.filterwarnings("ignore:The fill_missing parameter is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The `get_sentence_embedding_dimension` method:FutureWarning"),
    pytest.mark.filterwarnings("ignore:To copy construct from a tensor:UserWarning"),
]

LEFT = ["The dog sleeps.", "Where is the station?", "He is my friend.", "It is late.", "I see a house."]
RIGHT = ["A dog is sleeping.", "What time is it?", "She knows him.", "It's getting late.", "The old house is empty."]
GOLD = [4.8, 1.0, 2.0, 4.5, 2.5]


UNKNOWN = dict.fromkeys(("reference", "date", "license", "annotations_creators", "sample_creation"))
UNKNOWN |= {"dialect": [], "domains": [], "task_subtypes": [], "bibtex_citation": "", "modalities": ["text"]}


def metadata(name: str, kind: str, score: str, langs: Any) -> TaskMetadata:
    data: Any = {"path": "none", "revision": "1"}
    return TaskMetadata(
        name=name, type=kind, main_score=score, eval_langs=langs, description="Made by a test.", dataset=data,
        category="t2t", eval_splits=["test"], **UNKNOWN,
    )  # fmt: skip


class SmallSts(AbsTaskSTS):
    metadata = metadata("SmallSts", "STS", "cosine_spearman", ["eng-Latn"])

    def load_data(self, **_: object) -> None:
        rows = {"sentence1": LEFT, "sentence2": RIGHT, "score": GOLD}
        self.dataset, self.data_loaded = DatasetDict({"test": Dataset.from_dict(rows)}), True


class SmallBitext(AbsTaskBitextMining):
    metadata = metadata("SmallBitext", "BitextMining", "f1", {"en-fr": ["eng-Latn", "fra-Latn"]})
    pairs: tuple[Pair, ...] = ()

    def load_data(self, **_: object) -> None:
        rows = {key: [p.texts[lang] for p in self.pairs] for key, lang in (("sentence1", "en"), ("sentence2", "fr"))}
        self.dataset, self.data_loaded = {"en-fr": DatasetDict({"test": Dataset.from_dict(rows)})}, True


def run(model: Any, task: Any, cache: Path) -> tuple[Any, dict[str, float]]:
    """Evaluate a model on a task that has only one subset. Return the result, and the scores on this subset."""
    result = mteb.evaluate(model, task, cache=ResultCache(cache), show_progress_bar=False, co2_tracker=False)
    return result, result.task_results[0].scores["test"][0]


@pytest.mark.parametrize("latent", ["semantic", "language"])
def test_sts_scores_are_scipy_s_and_stored_under_the_hash(saved: Path, tmp_path: Path, latent: str) -> None:
    result, scores = run(load_mteb(saved, latent=latent, precision="fp32"), SmallSts(), tmp_path)
    ours = bgt_core.load(saved, precision="fp32")
    cosines = ours.similarity_pairwise(*(ours.embed(side, lang="en", latent=latent) for side in (LEFT, RIGHT)))
    assert_close(scores["cosine_pearson"], pearsonr(cosines, GOLD)[0], FLOAT32, scale=1)  # mteb computes in float32
    assert_close(scores["main_score"], spearmanr(cosines, GOLD)[0], FLOAT32, scale=1)
    weights = checkpoint.read_config(saved)["files"]["model.safetensors"]
    name = "bgt/model" if latent == "semantic" else "bgt/model-language"
    assert (result.model_name, result.model_revision) == (name, weights)
    assert list(tmp_path.rglob(f"{name.replace('/', '__')}/{weights}/SmallSts.json"))


def test_bitext_mining_counts_nearest_translations(saved: Path, tmp_path: Path, grammar: list[Pair]) -> None:
    task = SmallBitext()
    distinct = {pair.texts["en"]: pair for pair in grammar}
    task.pairs = tuple(distinct.values())[:40]
    _, scores = run(load_mteb(saved, precision="fp32"), task, tmp_path)
    ours = bgt_core.load(saved, precision="fp32")
    left, right = (ours.embed([pair.texts[lang] for pair in task.pairs], lang=lang) for lang in ("en", "fr"))
    unit = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in (left, right)]
    nearest = (unit[0] @ unit[1].T).argmax(1)
    assert scores["accuracy"] == pytest.approx((nearest == np.arange(40)).mean())
    with pytest.raises(BgtError, match="compares en and fr; the language latent can only be compared within one"):
        run(load_mteb(saved, latent="language"), task, tmp_path)

"""The notebook widgets return the selected points as a data frame, and refuse columns of different lengths."""

from types import SimpleNamespace

import numpy as np
import pytest

import bgt_core
from app.maps.selection import packed
from bgt_core.contracts import SentenceEncoder
from bgt_core.data.examples import example_sentences
from bgt_core.errors import UsageError
from bgt_core.notebook import maps, pairs
from tests.close import FLOAT32, assert_close

EN, FR = (list(column) for column in zip(*example_sentences(("en", "fr"))[:30], strict=True))


@pytest.fixture(scope="module")
def model() -> SentenceEncoder:
    return bgt_core.load()


def test_points_selected_on_the_maps_are_rows_with_the_users_columns(model: SentenceEncoder) -> None:
    widget = maps(model, {"en": EN, "fr": FR}, {"topic": range(30)}, colour="topic")
    assert widget.selection.empty
    chosen = np.isin(np.arange(60), [3, 7, 37])
    widget.picked = {"rows": packed(chosen)}
    assert widget.selection["text"].tolist() == [EN[3], EN[7], FR[7]]
    assert widget.selection["topic"].tolist() == [3, 7, 7]
    assert {part["name"] for part in widget.data["maps"]} == {"semantic", "language"}


def test_pairs_selected_on_the_plane_are_rows_with_their_similarities(model: SentenceEncoder) -> None:
    widget = pairs(model, EN, EN[1:] + EN[:1], ("en", "en"))
    given = widget.figure.data[0]
    widget._select(given, SimpleNamespace(point_inds=[0, 4]), None)  # plotly calls this for each trace
    assert len(widget.selection) == 2
    row = widget.selection.iloc[1]
    left, right = (model.embed([row[side]], lang="en") for side in ("left", "right"))
    assert_close(row["semantic"], model.similarity(left, right)[0, 0], FLOAT32, scale=1)


def test_unequal_columns_and_unknown_methods_are_refused(model: SentenceEncoder) -> None:
    with pytest.raises(UsageError, match=r"\[29, 30\] rows"):
        maps(model, {"en": EN, "fr": FR[1:]})
    with pytest.raises(UsageError, match="pca: expected t-SNE, UMAP, PCA"):
        maps(model, {"en": EN}, method="pca")
    with pytest.raises(UsageError, match="30 and 29 sentences"):
        pairs(model, EN, FR[1:], ("en", "fr"))

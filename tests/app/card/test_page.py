"""The page about a model shows its scores with intervals, the training log, the data, files and settings."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.core import state
from app.core.display import verbatim
from bgt_core.evaluation.bootstrap import wilson

Open = Callable[..., Any]
Start = Callable[..., None]


def test_it_shows_scores_the_training_log_data_files_and_settings(
    start: Start, opened: Open, saved: Path, tmp_path: Path
) -> None:
    """The page ignores steps of the training log that are later than the checkpoint."""
    folder = Path(shutil.copytree(saved, tmp_path / "model"))
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["card"] = {
        "scores": {"STS": {"semantic": 71.25, "language": 12.5}, "Retrieval": {"semantic": 93.75}},
        "data": [
            {"source": "A", "pairs": 2_000, "licence": "CC BY 2.0 FR"},
            {"source": "T, big", "kind": "teacher"},
        ],
        "fidelity": [
            {"written": "en", "style of": "its own", "by": by, "chrF": chrf}
            for by, chrf in {"model": "66.4 [63.4, 69.4]", "source copied": "16.7 [15.7, 17.6]"}.items()
        ],
        "transfer": [{"written": "fr", "style": "tu", "taken over %": "81.5 [70.0, 90.0]"}],
        "limits": "short sentences",
    }
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    kl = {"kl/semantic": 12.0, "kl/en": 0.05, "kl/fr": 1.0, "reconstruct/en": 4.25}
    log = [{"kind": "valid", "step": step, "steps": 9, "elbo": -90.0 + step, **kl} for step in (2, 4, 9)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in log) + '{"kind": "val', "utf-8")
    start("--model", folder)
    app = opened("card")
    assert {metric.label: metric.value for metric in app.metric}["Updates"] == "7"
    assert any("for 7 updates, on 2,000 pairs. T was its teacher. " in text.value for text in app.markdown)
    tables = {frozenset(table.value.columns): table.value for table in app.table}
    scores = tables[frozenset(["Measure", "Semantic", "Language"])].set_index("Measure")
    assert scores.loc["STS"].tolist() == ["71.2", "12.5"] and scores.loc["Retrieval"].tolist() == ["93.8", ""]
    parts = tables[frozenset(["Bound and its parts", "Nats per pair"])].set_index("Bound and its parts").iloc[:, 0]
    assert parts["ELBO"] == "-86.0"  # the value at step 4, because the checkpoint is older than step 9
    assert [name for name, value in parts.items() if "collapse" in value] == ["KL of the language latent, English"]
    assert parts["Negative log-likelihood, English"] == "4.2"
    assert any("higher is better" in caption.value for caption in app.caption)
    everything = "\n".join(table.value.to_string() for table in (*app.dataframe, *app.table))
    assert "CC BY 2.0 FR" in everything and config["files"]["model.safetensors"] in everything
    assert "objective.elbo.warmup_steps" in everything
    assert verbatim("66.4 [63.4, 69.4] (16.7)") in everything and "style: its own" in everything
    (lang,) = (group for group in app.button_group if group.label == "Language of the text")
    french = "".join(table.value.to_string() for table in app.put(lang, "fr").table)
    assert verbatim("81.5 [70.0, 90.0]") in french and "66.4" not in french
    assert {"Style taken over", "Fidelity of generated text"} <= {box.label for box in app.expander}
    assert "short sentences" in [text.value for text in app.text]
    assert any("@inproceedings" in code.value for code in app.code)
    app.session_state["second"] = replace(state.model(), title="copy")
    assert any("copy has the same weights" in caption.value for caption in app.run().caption)


def test_the_shipped_scores_have_intervals_that_follow_from_what_is_stored(start: Start, opened: Open) -> None:
    start()
    app = opened("card")
    (scores,) = (table.value.set_index("Measure") for table in app.table if "Measure" in table.value)
    low, high = wilson(918, 1_000)
    assert scores.loc["Retrieval en to fr, %", "Semantic"] == verbatim(f"91.8 [{100 * low:.1f}, {100 * high:.1f}]")
    low, high = wilson(1_565, 2_739)
    assert scores.loc["Length probe, accuracy %", "Language"] == verbatim(f"57.1 [{100 * low:.1f}, {100 * high:.1f}]")
    assert list(scores) == ["Semantic", "Language", "Baseline"] and not scores.isin(["nan"]).any().any()

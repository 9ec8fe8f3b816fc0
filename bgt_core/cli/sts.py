"""`bgt sts`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from bgt_core import PRETRAINED
from bgt_core.cli.options import DeviceOption, JsonOption, LangOption, ModelOption, load
from bgt_core.errors import BadInput


def sts(
    data: Annotated[Path, typer.Option(help="A folder of YEAR/DATASET.tsv: gold, sentence, sentence.")],
    years: Annotated[str, typer.Option(help="As in 2012-2016 or 2012,2014.")] = "2012-2016",
    lang: LangOption = "en",
    latent: Annotated[str, typer.Option(help="semantic, language or both.")] = "both",
    model: ModelOption = PRETRAINED,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Score on semantic textual similarity, aggregated as in the paper."""
    from bgt_core.evaluation import sts as evaluation
    from bgt_core.tables import show

    sets = evaluation.read_sts(data, parse_years(years))
    bgt = load(model, device)
    latents = list(bgt.latents) if latent == "both" else [latent]
    scores = {name: evaluation.sts(bgt, sets, lang=lang, latent=name) for name in latents}
    note = evaluation.aggregation(sets)
    if as_json:
        found = {
            name: {
                "datasets": {f"{year}/{dataset}": value for (year, dataset), value in score.datasets.items()},
                "years": score.years,
                "average": score.average,
            }
            for name, score in scores.items()
        }
        print(json.dumps({"schema": "bgt-sts/1", "aggregation": note, "latents": found}, indent=2))
        return
    rows: list[list[str]] = []
    first = scores[latents[0]]
    for year in first.years:
        for item in (item for item in sets if item.year == year):
            rows.append(
                [
                    f"{year} {item.name}",
                    str(len(item.gold)),
                    *(f"{s.datasets[year, item.name]:.1f}" for s in scores.values()),
                ]
            )
        rows.append([f"{year} mean", "", *(f"{s.years[year]:.1f}" for s in scores.values())])
    rows.append(["average", "", *(f"{s.average:.1f}" for s in scores.values())])
    show(["STS", "pairs", *latents], rows)
    print(note, file=sys.stderr)


def parse_years(text: str) -> list[str]:
    """ "2012-2014" -> ["2012", "2013", "2014"]; "2012,2015" -> ["2012", "2015"]."""
    years: list[str] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{4})(?:-(\d{4}))?", part)
        if not match or int(match[1]) > int(match[2] or match[1]):
            raise BadInput(f"--years {text}: expected years as in 2012-2016 or 2012,2014.", 2)
        years += [str(year) for year in range(int(match[1]), int(match[2] or match[1]) + 1)]
    return years

"""`bgt diagnose`."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from bgt_core import PRETRAINED
from bgt_core.cli.options import DeviceOption, JsonOption, ModelOption
from bgt_core.errors import DataError, NotFound, UsageError

if TYPE_CHECKING:
    from bgt_core.checkpoint import Checkpoint
    from bgt_core.data.store import Corpus
    from bgt_core.diagnose import Diagnosis, Mean

MICRO_TOKENS = 4_000


def diagnose(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE...]",
            help="Translations: TSV, Parquet, or X for X.en and X.fr.",
            show_default="those the model's run held out",
        ),
    ] = None,
    model: ModelOption = PRETRAINED,
    langs: Annotated[
        str | None, typer.Option(help="The languages of the columns, as in en,fr.", show_default="the model's")
    ] = None,
    pairs: Annotated[
        int, typer.Option(help="At most so many, at even distances. Information is at most their log.")
    ] = 1_000,
    samples: Annotated[
        int, typer.Option(help="Draws a pair for its likelihood; each is a pass through the model.")
    ] = 20,
    seed: Annotated[int, typer.Option(help="Of all draws.")] = 0,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Say what each latent of a generative model holds, and how likely it finds held-out text.

    active: units whose posterior mean varies with the sentence. KL to the prior = information about the sentence
    + aggregate, what all sentences' posteriors together differ from the prior. All in nats, computed in fp32.
    """
    from bgt_core import checkpoint, diagnose
    from bgt_core.checkpoint import hub
    from bgt_core.data.batching import validation
    from bgt_core.device import pick_device

    for name, value, least in (("--pairs", pairs, 2), ("--samples", samples, 1), ("--seed", seed, 0)):
        if value < least:
            raise UsageError(f"{name} {value}: must be at least {least}.")
    where = pick_device(device)
    found = checkpoint.load(hub.folder(model), where)
    with TemporaryDirectory() if files else nullcontext() as work:
        corpus = encoded(found, files, langs, Path(work)) if files else held_out(found)
        if len(corpus) < 2:
            raise DataError(f"{len(corpus)} pairs to look at, of a length that the model takes; it needs 2 or more.")
        batches = validation(corpus, MICRO_TOKENS, pairs)
        told = diagnose.diagnose(found.model.eval(), batches, where, samples, seed)
    print(
        f"{told.pairs:,} pairs, {told.sentences:,} sentences reconstructed; nats, ± a standard error.", file=sys.stderr
    )
    if as_json:
        print(json.dumps({"schema": "bgt-diagnose/1", **document(told, samples, seed)}, indent=2))
        return
    show(told, samples)


def held_out(found: Checkpoint) -> Corpus:
    """The pairs that the run of this checkpoint did not train on."""
    from bgt_core.data.store import Corpus

    store = found.folder.parent / "data"
    if not store.is_dir():
        raise NotFound(f"{found.folder}: not in its run's folder, so its held-out pairs are not here; give a FILE.")
    return Corpus.open(store, "valid")


def encoded(found: Checkpoint, files: Sequence[Path], langs: str | None, work: Path) -> Corpus:
    """The pairs of these files, those of lengths that the model was made for."""
    from bgt_core.data.store import prepare

    columns = langs.split(",") if langs else found.recipe.langs
    if sorted(columns) != sorted(found.recipe.langs):
        raise UsageError(f"--langs {langs}: expected the model's, {','.join(found.recipe.langs)}, in any order.")
    data = found.recipe.data
    limits = {"min_pieces": data.min_pieces, "max_pieces": data.max_pieces}
    return prepare(files, columns, found.tokenizer, work / "store", **limits, valid_pairs=0, seed=0)


def show(told: Diagnosis, samples: int) -> None:
    """Two tables: the latents, then the likelihood where there is one."""
    from bgt_core import tables

    head = ["latent", "units", "active", "KL", f"information (≤ {math.log(told.pairs):.2f})", "aggregate"]
    rows = [
        [name, str(one.units), str(one.active), cell(one.kl), cell(one.information), f"{one.aggregate:z.2f}"]
        if one.information
        else [name, str(one.units), str(one.active), cell(one.kl), "", ""]
        for name, one in told.latents.items()
    ]
    tables.show(head, rows)
    if told.at_mean is None:
        return
    likelihoods = {"NLL at posterior means": told.at_mean}
    if told.evidence:
        likelihoods |= {
            "-ELBO": told.evidence.bound,
            f"importance-weighted NLL, {samples} draws": told.evidence.weighted,
        }
    print()
    tables.show(
        ["nats", "a pair", "a sentence", "a piece"],
        [
            [name, cell(mean), *(f"{mean.nats * told.pairs / count:.3f}" for count in (told.sentences, told.pieces))]
            for name, mean in likelihoods.items()
        ],
    )
    if told.evidence:
        print(f"weights spread over {told.evidence.effective:.1f} of {samples} draws", file=sys.stderr)


def cell(mean: Mean | None) -> str:
    """As in 31.52 ± 0.12."""
    return f"{mean.nats:z.2f} ± {mean.error:.2f}" if mean else ""


def document(told: Diagnosis, samples: int, seed: int) -> dict[str, object]:
    """The same as JSON; everything in nats a pair, but for counts."""
    found = asdict(told)
    for name, one in told.latents.items():
        found["latents"][name]["aggregate"] = one.aggregate
    return {"samples": samples, "seed": seed, "information_limit": math.log(told.pairs), **found}

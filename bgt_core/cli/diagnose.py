"""`bgt diagnose`: measure how much a model's latents encode, and how well the model predicts held-out text."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, cast

from typer import Argument, Option

from bgt_core import PRETRAINED
from bgt_core.cli import options
from bgt_core.errors import DataError, NotFound, UsageError, check_least

if TYPE_CHECKING:
    from bgt_core.checkpoint import Checkpoint
    from bgt_core.data.store import Corpus, Mixture
    from bgt_core.diagnose import MeanEstimate

MICRO_TOKENS = 4_000


def diagnose(
    files: Annotated[
        list[Path] | None,
        Argument(
            metavar="[FILE...]",
            help=f"Translations: {options.PAIRS}.",
            show_default="the pairs that the model's run held out",
        ),
    ] = None,
    model: options.ModelOption = PRETRAINED,
    langs: Annotated[
        str | None, Option(help="Languages of the columns, as in en,fr.", show_default="the model's")
    ] = None,
    limit: Annotated[
        int,
        Option(
            help="Maximum number of pairs, evenly spaced in the data. The estimate of the information can't exceed the "
            "logarithm of this number."
        ),
    ] = 1_000,
    samples: Annotated[
        int, Option(help="Number of posterior samples per pair for the likelihood; decoders run once per sample.")
    ] = 20,
    seed: options.SeedOption = 0,
    device: options.DeviceOption = "auto",
    as_json: options.JsonOption = False,
) -> None:
    """Measure the information in each latent of a generative model, and the likelihood of held-out text.

    A unit is active if its posterior mean varies with the sentence. The KL to the prior is the sum of two terms: the
    information about the sentence, and "aggregate", the KL from the average posterior to the prior. All values are in
    nats, and are computed in fp32.
    """
    from bgt_core import checkpoint, diagnose, tables
    from bgt_core.backend import pick_device
    from bgt_core.contracts import VectorModel
    from bgt_core.data.batching import validation
    from bgt_core.data.store import open_corpus

    check_least(2, limit=limit)
    check_least(1, samples=samples)
    torch_device = pick_device(device)
    trained = checkpoint.load(model, torch_device)
    if isinstance(trained.model, VectorModel):
        raise UsageError(f"{model}: a writer has no prior; examples/ledger.py measures it instead.", parameter="model")
    with TemporaryDirectory() as work:
        corpus: Corpus | Mixture
        if files:
            corpus = encoded(trained, files, langs, Path(work))
        else:
            store = trained.folder.parent / "data"  # the held-out pairs of the training run
            if not store.is_dir():
                raise NotFound(f"{trained.folder}: only the folder of a run has held-out pairs; give a FILE.")
            corpus = open_corpus(store, "valid")
        if len(corpus) < 2:
            raise DataError(f"{len(corpus)} pairs have a length that the model accepts, but at least 2 are needed.")
        batches = validation(corpus, MICRO_TOKENS, limit)
        diagnosis = diagnose.diagnose(trained.model.eval(), batches, torch_device, samples, seed)
    print(f"{diagnosis.pairs:,} pairs; values are nats per pair, ± one standard error.", file=sys.stderr)
    if as_json:
        options.print_json("bgt-diagnose/3", {"samples": samples, "seed": seed, **asdict(diagnosis)})
        return
    latents = []
    for name, units in diagnosis.units.items():
        kl, gain = diagnosis.kl[name], diagnosis.information.get(name)
        known = [estimate(gain), f"{kl.nats - gain.nats:z.2f}"] if gain else ["", ""]
        latents.append([name, str(units), str(diagnosis.active[name]), estimate(kl), *known])
    bound = f"information (≤ {math.log(diagnosis.pairs):.2f})"
    tables.show(["latent", "units", "active", "KL", bound, "aggregate"], latents)
    rows = {
        "NLL at posterior means": diagnosis.at_mean,
        "-ELBO": diagnosis.neg_elbo,
        f"importance-weighted NLL, {samples} draws": diagnosis.iwae_nll,
    }
    if diagnosis.at_mean:
        print()
        tables.show(["", "nats"], [[name, estimate(mean)] for name, mean in rows.items() if mean])


def encoded(trained: Checkpoint, files: Sequence[Path], langs: str | None, work: Path) -> Corpus:
    """Tokenize sentence pairs. Leave out pairs that the model can't encode, and print their number on stderr."""
    from bgt_core.data.store import tokenise

    data = trained.recipe.data
    columns = langs.split(",") if langs else list(data.langs_of)
    if not set(columns) <= set(data.langs_of):
        text = f"{langs}: expected columns of the model, {','.join(data.langs_of)}, in any order."
        raise UsageError(text, parameter="langs")
    store = tokenise(
        files, [f"{column}:{data.langs_of[column]}" for column in columns], trained.tokenizer, work / "store",
        min_tokens=data.min_tokens, max_tokens=data.max_tokens, valid_pairs=0, seed=0,
    )  # fmt: skip
    corpus = cast("Corpus", store)  # all files have the same columns, so the result is not a Mixture
    pairs, settings = corpus.store["pairs"], corpus.store["settings"]
    counts = {
        f"with a sentence of under {settings['min_tokens']} tokens": pairs["too short"],
        f"with a sentence of over {settings['max_tokens']} tokens": pairs["too long"],
        "unreadable": sum(corpus.store["skipped"].values()),
    }
    if missing := sum(counts.values()):
        total = missing + pairs["kept"]
        print(f"{missing:,} of {total:,} pairs are left out: {options.counted(counts)}.", file=sys.stderr)
    return corpus


def estimate(mean: MeanEstimate) -> str:
    """Format a mean and its standard error, as in 31.52 ± 0.12."""
    return f"{mean.nats:z.2f} ± {mean.error:.2f}"

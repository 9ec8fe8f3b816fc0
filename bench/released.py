"""Run the code released with the paper, by its own `Trainer`, on a CPU. No part of this code is stored here; clone it:

    git clone https://github.com/jwieting/bilingual-generative-transformer
    python -m bench training --released bilingual-generative-transformer

The code is a fork of fairseq from 2019. We patch a temporary copy for numpy 2 (`np.float` becomes `float`). Two of its
parts are not used: the compiled extension that cuts batches (`workload.released_batches` follows the same rule), and
`train.py`, which needs STS files.

The released code has other ids for special tokens, counts positions from 2, and pads encoder inputs on the left.
Otherwise it computes the same function of the same weights; `difference` checks this.
"""

import contextlib
import io
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn

from bench.straight import CLIP, DROPOUT, SMOOTHING, Form, StraightBGT, relative_errors
from bench.workload import Pair, batch_of, released_batches, tokens_of
from bgt_core.contracts import BOS, EOS, PAD, UNK
from bgt_core.errors import DataError, NotFound
from bgt_core.models.bgt import BGT

FIRST_POSITION = 2
SPECIAL = (BOS, PAD, EOS, UNK)  # our ids, in the order of the released code
DIFFERENT = 1e-5  # maximum relative difference of the losses


def load(clone: Path) -> None:
    """Import `fairseq` from a copy of `clone`, patched for the installed numpy. NotFound if it is not a clone."""
    if not (clone / "fairseq" / "criterions" / "bgt_loss.py").is_file():
        raise NotFound(f"--released {clone}: no fairseq/criterions/bgt_loss.py; pass a clone of the released code.")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(clone / "fairseq", Path(folder) / "fairseq")
        old = Path(folder) / "fairseq" / "data" / "indexed_dataset.py"
        old.write_text(re.sub(r"\bnp\.float\b", "float", old.read_text(encoding="utf-8")), encoding="utf-8")
        sys.path.insert(0, folder)
        try:
            for name in ("options", "tasks.bgt", "trainer", "data.dictionary", "data.language_pair_dataset_bgt"):
                import_module(f"fairseq.{name}")
        finally:
            sys.path.remove(folder)


class Released:
    """The released model, criterion and trainer, with the weights of a `bgt` model that reconstructs from the mean.

    Call `load` first.
    """

    def __init__(self, model: BGT):
        self.ours = model
        options, dictionaries, tasks, trainers = (
            import_module(f"fairseq.{name}") for name in ("options", "data.dictionary", "tasks.bgt", "trainer")
        )
        body = model.encoders["semantic"].body
        vocab, width = body.words.table.weight.shape
        layers = {"encoder": len(body.layers), "decoder": len(model.decoders["en"].layers)}
        sizes = {"embed-dim": width, "ffn-embed-dim": body.layers[0].feed[0].out_features}
        sizes["attention-heads"] = body.layers[0].attention.heads
        flags = {f"{side}-{name}": size for side in layers for name, size in sizes.items()}
        flags |= {f"{side}-layers": count for side, count in layers.items()}
        sides = " ".join(f"--{name} {size}" for name, size in flags.items())
        command = (
            "DATA --cpu --task bgt -a bgt-emnlp --bgt-setting bgt -s en -t fr --criterion bgt_loss --sentence-avg "
            "--optimizer adam --adam-betas (0.9,0.98) --lr 0.0005 --lr-scheduler inverse_sqrt --warmup-updates 4000 "
            "--warmup-init-lr 1e-07 --min-lr 1e-09 --weight-decay 0.0001 --translation-loss 1.0 "
            f"{sides} --latent-size {width} --dropout {DROPOUT} --label-smoothing {SMOOTHING} --clip-norm {CLIP} "
            "--x0 2"  # updates until the KL has its full weight
        )
        args = options.parse_args_and_arch(options.get_training_parser(), command.split())
        words = dictionaries.Dictionary()
        for number in range(len(SPECIAL), vocab):
            words.add_symbol(str(number))
        task = tasks.BGTTask(args, words, words)
        self.model = task.build_model(args)
        with contextlib.redirect_stdout(io.StringIO()):
            self.trainer = trainers.Trainer(args, task, self.model, task.build_criterion(args))
        self.order = torch.tensor([*SPECIAL, *range(len(SPECIAL), vocab)])  # our token for each of its ids
        self.numbers = self.order.argsort()
        self.restart()
        with torch.no_grad():
            for theirs, parts, tokens in self.weights():
                whole = torch.cat(parts, dim=-1)
                theirs.copy_(whole[self.order] if tokens else whole)

    def restart(self) -> None:
        """Reset the counters. Then the KL of the next batch has half of its final weight, and the anchor is English."""
        self.model.num_updates, self.model.counter = 1, 0

    def weights(self) -> Iterator[tuple[nn.Parameter, list[nn.Parameter], bool]]:
        """Yield each parameter in use, our parameters that it concatenates, and whether its rows are tokens."""
        ours, theirs = self.ours, self.model
        for encoder, name in ((theirs.encoder_sem, "semantic"), (theirs.encoder_en, "en"), (theirs.encoder_fr, "fr")):
            body, head = ours.encoders[name].body, ours.encoders[name].head
            yield encoder.embed_tokens.weight, [body.words.table.weight], True
            yield encoder.hidden2mean.weight, [head.mean.weight], False
            yield encoder.hidden2logv.weight, [head.log_variance.weight], False
            for layer, own in zip(encoder.layers, body.layers, strict=True):
                yield from layer_weights(layer, own)
        for decoder, own_decoder in (  # they name a translator by the language it reads, we by the language it writes
            (theirs.decoder_en, ours.decoders["en"]),
            (theirs.decoder_fr, ours.decoders["fr"]),
            (theirs.decoder_trans_en, ours.translators["fr"]),
            (theirs.decoder_trans_fr, ours.translators["en"]),
        ):
            yield decoder.embed_tokens.weight, [own_decoder.words.table.weight], True
            yield decoder.embed_out, [own_decoder.layer.latent.weight, own_decoder.layer.hidden.weight], True
            for layer, own in zip(decoder.layers, own_decoder.layers, strict=True):
                yield from layer_weights(layer, own)
                yield layer.decoder_fc1.weight, [own.fuse_hidden.weight, own.fuse_latent.weight], False
                yield layer.decoder_fc1.bias, [own.fuse_hidden.bias], False
                yield layer.encoder_attn_layer_norm.weight, [own.norm_fuse.weight], False
                yield layer.encoder_attn_layer_norm.bias, [own.norm_fuse.bias], False

    def sample(self, rows: Sequence[Pair]) -> dict[str, Any]:
        """Make a batch with the collater of the released code."""
        data = import_module("fairseq.data.language_pair_dataset_bgt")
        sides = [{lang: self.numbers[torch.tensor(row[lang])] for lang in ("en", "fr")} for row in rows]
        items = [{"id": n, "source": side["en"], "target": side["fr"]} for n, side in enumerate(sides)]
        return data.collate(items, pad_idx=SPECIAL.index(PAD), eos_idx=SPECIAL.index(EOS))

    def form(self, pairs: Sequence[Pair], tokens: int) -> Form:
        """Return the update in batches of `tokens` (`--max-tokens` of the released code). At the end of an update, the
        released code also divides the gradients by the number of pairs; this is not timed."""
        batches, trainer = released_batches(pairs, tokens), self.trainer
        samples = [self.sample(rows) for rows in batches]

        def step(number: int) -> None:
            trainer.task.train_step(samples[number], trainer.model, trainer.criterion, trainer.optimizer)

        used = [theirs for theirs, _, _ in self.weights()]
        return Form(step, list(map(tokens_of, batches)), used, trainer.optimizer.optimizer, CLIP)

    def difference(self, straight: StraightBGT, rows: Sequence[Pair]) -> str:
        """Describe how far its loss and gradients are from those of the straight form, without dropout.

        The straight form counts positions as the released code does. All gradients are cleared afterwards. Raises
        DataError if the losses differ by more than rounding.
        """
        self.restart()
        for part in (self.model, straight):
            part.eval()
            part.zero_grad()
        first, straight.first_position = straight.first_position, FIRST_POSITION
        expected = straight(batch_of(rows, 0), self.trainer.criterion.kl_anneal_function(1, 2), SMOOTHING)
        expected.backward()
        loss, *_ = self.trainer.criterion(self.model, self.sample(rows))
        loss.backward()
        straight.first_position = first
        own = straight.gradients()
        names = {id(parameter): name for name, parameter in self.ours.named_parameters()}
        gradients: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
        for theirs, parts, tokens in self.weights():
            slope = torch.cat([own[names[id(part)]] for part in parts], dim=-1)
            gradients[str(len(gradients))] = theirs.grad, slope[self.order] if tokens else slope
        off = relative_errors(loss.item(), expected.item(), gradients)
        for part in (self.model, straight):
            part.train()
            part.zero_grad()
        if not off[0] <= DIFFERENT:
            raise DataError(f"The released code has loss {loss}, the straight form {expected}; they must be equal.")
        return f"the straight form at its positions: loss {off[0]:.0e}, gradient {off[1]:.0e} off, relative"


def layer_weights(theirs: nn.Module, ours: nn.Module) -> Iterator[tuple[nn.Parameter, list[nn.Parameter], bool]]:
    """Yield the parameters of attention, feed-forward and their norms."""
    yield theirs.self_attn.in_proj_weight, [ours.attention.qkv.weight], False
    yield theirs.self_attn.in_proj_bias, [ours.attention.qkv.bias], False
    for part, own in (
        (theirs.self_attn.out_proj, ours.attention.out),
        (theirs.self_attn_layer_norm, ours.norm_attention),
        (theirs.fc1, ours.feed[0]),
        (theirs.fc2, ours.feed[2]),
        (theirs.final_layer_norm, ours.norm_feed),
    ):
        yield part.weight, [own.weight], False
        yield part.bias, [own.bias], False

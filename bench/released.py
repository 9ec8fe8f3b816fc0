"""On a CPU, run the released code of BGT's paper with its own `Trainer`. This repository has no copy; clone the code:

    git clone https://github.com/jwieting/bilingual-generative-transformer
    python -m bench training --released bilingual-generative-transformer

The released code is a fork of fairseq from 2019. We do not use two of its parts: the compiled extension that cuts
batches, because `workload.released_batches` follows the same rule, and `train.py`, because it needs STS files. The
released code has other ids for special tokens, counts positions from 2, and pads encoder inputs on the left. Apart from
this, it computes the same loss as our code if the weights are equal. `difference` checks this.
"""

import contextlib
import io
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from bench.straight import CLIP, DROPOUT, SMOOTHING, Form, StraightBGT, relative_errors
from bench.workload import Pair, batch_of, released_batches, tokens_of
from bgt_core.contracts import BOS, EOS, PAD, UNK
from bgt_core.errors import DataError, NotFound
from bgt_core.models.bgt import BGT

FIRST_POSITION = 2
SPECIAL = (BOS, PAD, EOS, UNK)  # our ids of the special tokens, in the order that the released code gives them
DIFFERENT = 1e-5  # maximum relative difference between both losses; a larger one raises an error


def load(clone: Path) -> None:
    """Import `fairseq` from a clone of the released code. Raises NotFound if the folder is not a clone."""
    if not (clone / "fairseq" / "criterions" / "bgt_loss.py").is_file():
        raise NotFound(f"--released {clone}: no fairseq/criterions/bgt_loss.py; pass a clone of the released code.")
    vars(np).setdefault("float", float)  # the released code uses np.float, which numpy 2 does not have
    sys.path.insert(0, folder := str(clone.resolve()))
    for name in ("options", "tasks.bgt", "trainer", "data.dictionary", "data.language_pair_dataset_bgt"):
        import_module(f"fairseq.{name}")
    sys.path.remove(folder)


class Released:
    """The released model and trainer, with the weights of a `bgt` model that decodes from the posterior mean."""

    def __init__(self, model: BGT):
        self.ours = model
        names = ("options", "data.dictionary", "tasks.bgt", "trainer")
        options, dictionaries, tasks, trainers = (import_module(f"fairseq.{name}") for name in names)
        body = model.encoders["semantic"].body
        vocab, width = body.words.table.weight.shape
        heads, ffn = body.layers[0].attention.heads, body.layers[0].feed[0].out_features
        sides = " ".join(
            f"--{side}-layers {count} --{side}-embed-dim {width} --{side}-ffn-embed-dim {ffn} "
            f"--{side}-attention-heads {heads}"
            for side, count in (("encoder", len(body.layers)), ("decoder", len(model.decoders["en"].layers)))
        )
        command = (
            "DATA --cpu --task bgt -a bgt-emnlp --bgt-setting bgt -s en -t fr --criterion bgt_loss --sentence-avg "
            "--optimizer adam --adam-betas (0.9,0.98) --lr 0.0005 --lr-scheduler inverse_sqrt --warmup-updates 4000 "
            "--warmup-init-lr 1e-07 --min-lr 1e-09 --weight-decay 0.0001 --translation-loss 1.0 "
            f"{sides} --latent-size {width} --dropout {DROPOUT} --label-smoothing {SMOOTHING} --clip-norm {CLIP} "
            "--x0 2"  # number of updates until the KL's weight reaches 1
        )
        args = options.parse_args_and_arch(options.get_training_parser(), command.split())
        words = dictionaries.Dictionary()
        for number in range(len(SPECIAL), vocab):
            words.add_symbol(str(number))
        task = tasks.BGTTask(args, words, words)
        self.model = task.build_model(args)
        with contextlib.redirect_stdout(io.StringIO()):
            self.trainer = trainers.Trainer(args, task, self.model, task.build_criterion(args))
        self.order = torch.tensor([*SPECIAL, *range(len(SPECIAL), vocab)])  # our token ids, by the released code's ids
        self.numbers = self.order.argsort()
        with torch.no_grad():
            for theirs, parts in self.weights():
                theirs.copy_(self.joined(parts))

    def joined(self, parts: Sequence[torch.Tensor]) -> torch.Tensor:
        """Concatenate the parts of a parameter. If its rows are tokens, order them by the released code's token ids."""
        whole = torch.cat(list(parts), dim=-1)
        return whole[self.order] if len(whole) == len(self.order) else whole

    def weights(self) -> Iterator[tuple[nn.Parameter, list[nn.Parameter]]]:
        """Yield each parameter that the released model uses, with the list of our parameters that it consists of."""
        ours, theirs = self.ours, self.model
        for encoder, name in ((theirs.encoder_sem, "semantic"), (theirs.encoder_en, "en"), (theirs.encoder_fr, "fr")):
            body, head = ours.encoders[name].body, ours.encoders[name].head
            yield encoder.embed_tokens.weight, [body.words.table.weight]
            yield encoder.hidden2mean.weight, [head.mean.weight]
            yield encoder.hidden2logv.weight, [head.log_variance.weight]
            for layer, own in zip(encoder.layers, body.layers, strict=True):
                yield from layer_weights(layer, own)
        for decoder, own_decoder in (  # the released code names translators by source language, ours by target language
            (theirs.decoder_en, ours.decoders["en"]),
            (theirs.decoder_fr, ours.decoders["fr"]),
            (theirs.decoder_trans_en, ours.translators["fr"]),
            (theirs.decoder_trans_fr, ours.translators["en"]),
        ):
            yield decoder.embed_tokens.weight, [own_decoder.words.table.weight]
            yield decoder.embed_out, [own_decoder.layer.latent.weight, own_decoder.layer.hidden.weight]
            for layer, own in zip(decoder.layers, own_decoder.layers, strict=True):
                yield from layer_weights(layer, own)
                yield layer.decoder_fc1.weight, [own.fuse_hidden.weight, own.fuse_latent.weight]
                yield layer.decoder_fc1.bias, [own.fuse_hidden.bias]
                yield layer.encoder_attn_layer_norm.weight, [own.norm_fuse.weight]
                yield layer.encoder_attn_layer_norm.bias, [own.norm_fuse.bias]

    def sample(self, rows: Sequence[Pair]) -> dict[str, Any]:
        """Make a batch with the function `collate` of the released code."""
        data = import_module("fairseq.data.language_pair_dataset_bgt")
        sides = [{lang: self.numbers[torch.tensor(row[lang])] for lang in ("en", "fr")} for row in rows]
        items = [{"id": n, "source": side["en"], "target": side["fr"]} for n, side in enumerate(sides)]
        return data.collate(items, pad_idx=SPECIAL.index(PAD), eos_idx=SPECIAL.index(EOS))

    def form(self, pairs: Sequence[Pair], tokens: int) -> Form:
        """Return a training step of the released code, in batches of at most `tokens` (its option `--max-tokens`). The
        measured time does not include the division of gradients by the number of pairs."""
        batches, trainer = released_batches(pairs, tokens), self.trainer
        samples = [self.sample(rows) for rows in batches]

        def step(number: int) -> None:
            trainer.task.train_step(samples[number], trainer.model, trainer.criterion, trainer.optimizer)

        used = [theirs for theirs, _ in self.weights()]
        return Form(step, list(map(tokens_of, batches)), used, trainer.optimizer.optimizer, CLIP)

    def difference(self, straight: StraightBGT, rows: Sequence[Pair]) -> str:
        """Describe how much loss and gradients differ between the released code and `StraightBGT`.

        Both count positions from 2, and run without dropout. All gradients are cleared afterwards. Raises DataError if
        the losses differ by more than rounding.
        """
        self.model.num_updates, self.model.counter = 1, 0  # then the KL has half its weight, and English is the anchor
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
        gradients = {}
        for number, (theirs, parts) in enumerate(self.weights()):
            gradients[str(number)] = theirs.grad, self.joined([own[names[id(part)]] for part in parts])
        off = relative_errors(loss.item(), expected.item(), gradients)
        for part in (self.model, straight):
            part.train()
            part.zero_grad()
        if not off[0] <= DIFFERENT:
            raise DataError(f"the released code and StraightBGT must have the same loss (got {loss}, {expected})")
        return f"the straight form at its positions: loss {off[0]:.0e}, gradient {off[1]:.0e} off, relative"


def layer_weights(theirs: nn.Module, ours: nn.Module) -> Iterator[tuple[nn.Parameter, list[nn.Parameter]]]:
    """Yield the parameters of a layer's attention, feed-forward network and layer norms, as `weights` does."""
    yield theirs.self_attn.in_proj_weight, [ours.attention.qkv.weight]
    yield theirs.self_attn.in_proj_bias, [ours.attention.qkv.bias]
    for part, own in (
        (theirs.self_attn.out_proj, ours.attention.out),
        (theirs.self_attn_layer_norm, ours.norm_attention),
        (theirs.fc1, ours.feed[0]),
        (theirs.fc2, ours.feed[2]),
        (theirs.final_layer_norm, ours.norm_feed),
    ):
        yield part.weight, [own.weight]
        yield part.bias, [own.bias]

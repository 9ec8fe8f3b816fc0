"""A student's start: layers of a BERT-like teacher, and its vectors for our tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from bgt_core.contracts import BOS, EOS, PAD, UNK, Tokens
from bgt_core.data.text import Tokenizer
from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.nets.layers import NormedEmbedding, make_embedding
from bgt_core.nets.packing import PackedLayout
from bgt_core.nets.pooling import SIFPooling
from bgt_core.nets.transformer import Bert, EncoderLayer

if TYPE_CHECKING:
    from tokenizers import Tokenizer as WordPieces


class Teacher(NamedTuple):
    """A pretrained BERT: its weights by name, and what splits text for it."""

    weights: dict[str, Tensor]
    tokenizer: WordPieces
    layers: int

    @property
    def vectors(self) -> Tensor:
        """Of its tokens, (V, H)."""
        return self.weights["embeddings.word_embeddings.weight"]


def read_teacher(folder: Path | str, width: int) -> Teacher:
    """Open a folder with `model.safetensors` of a BERT and its `tokenizer.json`, as sentence-transformers has them.

    Raises:
        NotFound: A file is missing.
        DataError: The weights are not those of a BERT, or have another width than is asked for.
    """
    from safetensors.torch import load_file
    from tokenizers import Tokenizer as WordPieces

    folder = Path(folder)
    for name in ("model.safetensors", "tokenizer.json"):
        if not (folder / name).is_file():
            raise NotFound(f"student_of: {folder / name} is missing; expected a BERT as sentence-transformers saves it")
    weights = {name.removeprefix("bert."): value for name, value in load_file(folder / "model.safetensors").items()}
    embedding = "embeddings.word_embeddings.weight"
    if embedding not in weights:
        raise DataError(f"{folder / 'model.safetensors'}: no '{embedding}' in it, so it is not a BERT")
    if weights[embedding].shape[1] != width:
        wide = weights[embedding].shape[1]
        raise DataError(f"student_of {folder}: width {wide}, the student has {width}; set average_dim")
    tokenizer = WordPieces.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()  # it may fill up every text to one length
    layers = {name.split(".")[2] for name in weights if name.startswith("encoder.layer.")}
    return Teacher(weights, tokenizer, len(layers))


def start_as_student(student: Bert | SIFPooling, folder: Path | str, layers: tuple[int, ...], ours: Tokenizer) -> None:
    """Fill a student with what a pretrained encoder knows.

    A `Bert` gets the chosen layers in their order, and for each of our tokens the mean of the teacher's vectors for
    the tokens into which it splits the same text. An average gets the vector that the whole teacher gives that text,
    less the mean of all (as model2vec does).

    Args:
        student: What to fill; a `Bert` has as many layers as are chosen.
        folder: Of the teacher, as in `read_teacher`.
        layers: Which of the teacher's layers, from 0; an average takes none.
        ours: The student's tokenizer.

    Raises:
        NotFound, DataError: As `read_teacher`.
        UsageError: The teacher does not have such a layer.
    """
    teacher = read_teacher(folder, student.width)
    if wrong := [layer for layer in layers if not 0 <= layer < teacher.layers]:
        raise UsageError(f"student_layers: no layer {wrong[0]}; the teacher has 0 to {teacher.layers - 1}")
    with torch.no_grad():
        if isinstance(student, Bert):
            fill_body(student, teacher, layers, token_vectors(teacher, ours))
        else:
            student.table.weight.copy_(text_vectors(teacher, ours))


def fill_body(body: Bert, teacher: Teacher, layers: Sequence[int], vectors: Tensor) -> None:
    """Token vectors (V, H), positions, norms and the chosen layers."""
    words, weights = body.words, teacher.weights
    assert isinstance(words, NormedEmbedding)  # a Bert's
    words.table.weight.copy_(vectors)
    positions = words.positions.weight
    positions.copy_(weights["embeddings.position_embeddings.weight"][: len(positions)])
    positions.add_(weights["embeddings.token_type_embeddings.weight"][0])
    fill(words.norm, weights, "embeddings.LayerNorm")
    for layer, number in zip(body.layers, layers, strict=True):
        fill_layer(layer, weights, f"encoder.layer.{number}.")  # type: ignore[arg-type]


def text_vectors(teacher: Teacher, ours: Tokenizer) -> Tensor:
    """What the whole teacher gives the text of each of our tokens, less the mean of all, (V, H); zero for padding."""
    body = Bert(make_embedding(*teacher.vectors.shape), teacher.layers).eval()
    fill_body(body, teacher, range(teacher.layers), teacher.vectors)
    begin, end = (teacher.tokenizer.get_vocab()[name] for name in ("[CLS]", "[SEP]"))
    texts = teacher.tokenizer.encode_batch([text.strip() for text in ours.texts()], add_special_tokens=False)
    sentences = [[begin, *text.ids, end] for text in texts]
    table = torch.zeros(len(sentences), body.width)
    for batch in torch.arange(len(sentences)).split(256):
        side = Tokens.pad([sentences[token] for token in batch.tolist()], "")
        layout = PackedLayout.of(side)
        table[batch] = layout.mean(body.states(side, layout))
    table -= table.mean(0)
    table[PAD] = 0
    return table


def token_vectors(teacher: Teacher, ours: Tokenizer) -> Tensor:
    """The teacher's mean vector for the text of each of our tokens, (V, H); zero for padding."""
    vectors, vocabulary = teacher.vectors, teacher.tokenizer.get_vocab()
    table = torch.zeros(ours.vocab_size, vectors.shape[1])
    for token, text in enumerate(ours.texts()):
        inside = f"##{text}"
        if not text.startswith(" ") and inside in vocabulary:  # goes on with a word
            ids = [vocabulary[inside]]
        else:
            ids = teacher.tokenizer.encode(text.strip(), add_special_tokens=False).ids
        if ids:
            table[token] = vectors[ids].mean(0)
    for token, name in ((UNK, "[UNK]"), (BOS, "[CLS]"), (EOS, "[SEP]")):
        table[token] = vectors[vocabulary[name]]
    return table


def fill_layer(layer: EncoderLayer, weights: dict[str, Tensor], prefix: str) -> None:
    """One layer from the teacher's."""
    for kind in ("weight", "bias"):
        parts = [weights[f"{prefix}attention.self.{name}.{kind}"] for name in ("query", "key", "value")]
        getattr(layer.attention.qkv, kind).copy_(torch.cat(parts))
    fill(layer.attention.out, weights, f"{prefix}attention.output.dense")
    fill(layer.norm_attention, weights, f"{prefix}attention.output.LayerNorm")
    fill(layer.feed[0], weights, f"{prefix}intermediate.dense")
    fill(layer.feed[2], weights, f"{prefix}output.dense")
    fill(layer.norm_feed, weights, f"{prefix}output.LayerNorm")


def fill(module: torch.nn.Module, weights: dict[str, Tensor], name: str) -> None:
    """Weight and bias of one module."""
    for kind in ("weight", "bias"):
        getattr(module, kind).copy_(weights[f"{name}.{kind}"])

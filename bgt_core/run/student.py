"""A student's start: layers of a BERT-like teacher, and its vectors for our tokens."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from bgt_core.contracts import BOS, EOS, UNK
from bgt_core.data.text import Tokenizer
from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.nets.layers import NormedEmbedding
from bgt_core.nets.transformer import Bert, EncoderLayer


@torch.no_grad()
def start_as_student(body: Bert, folder: Path | str, layers: tuple[int, ...], tokenizer: Tokenizer) -> None:
    """Fill a body with layers of a pretrained encoder.

    The vector of each of our tokens is the mean of the teacher's vectors for the tokens into which it splits the same
    text. Sequence: embedding, then the chosen layers in their order.

    Args:
        body: The body to fill; it has as many layers as are chosen.
        folder: A folder with `model.safetensors` of a BERT and its `tokenizer.json`, as sentence-transformers has them.
        layers: Which of the teacher's layers, from 0.
        tokenizer: Of the student.

    Raises:
        NotFound: A file is missing.
        DataError: The weights are not those of a BERT, or have another width than the student.
        UsageError: The teacher does not have such a layer.
    """
    from safetensors.torch import load_file
    from tokenizers import Tokenizer as TeacherTokenizer

    folder = Path(folder)
    for name in ("model.safetensors", "tokenizer.json"):
        if not (folder / name).is_file():
            raise NotFound(f"student_of: {folder / name} is missing; expected a BERT as sentence-transformers saves it")
    weights = {name.removeprefix("bert."): value for name, value in load_file(folder / "model.safetensors").items()}
    embedding = "embeddings.word_embeddings.weight"
    if embedding not in weights:
        raise DataError(f"{folder / 'model.safetensors'}: no '{embedding}' in it, so it is not a BERT")
    vectors = weights[embedding]
    if vectors.shape[1] != body.width:
        raise DataError(f"student_of {folder}: width {vectors.shape[1]}, the student has {body.width}; set average_dim")
    count = len({name.split(".")[2] for name in weights if name.startswith("encoder.layer.")})
    if wrong := [layer for layer in layers if not 0 <= layer < count]:
        raise UsageError(f"student_layers: no layer {wrong[0]}; the teacher has 0 to {count - 1}")

    words = body.words
    assert isinstance(words, NormedEmbedding)  # a Bert's
    teacher = TeacherTokenizer.from_file(str(folder / "tokenizer.json"))
    teacher.no_padding()  # it may fill up every text to one length
    words.table.weight.copy_(token_vectors(tokenizer, teacher.get_vocab(), teacher, vectors))
    positions = words.positions.weight
    positions.copy_(weights["embeddings.position_embeddings.weight"][: len(positions)])
    positions.add_(weights["embeddings.token_type_embeddings.weight"][0])
    fill(words.norm, weights, "embeddings.LayerNorm")
    for layer, number in zip(body.layers, layers, strict=True):
        fill_layer(layer, weights, f"encoder.layer.{number}.")  # type: ignore[arg-type]


def token_vectors(tokenizer: Tokenizer, vocabulary: dict[str, int], teacher: object, vectors: Tensor) -> Tensor:
    """The teacher's mean vector for the text of each of our tokens, (V, H); zero for padding."""
    table = torch.zeros(tokenizer.vocab_size, vectors.shape[1])
    for token, text in enumerate(tokenizer.texts()):
        inside = f"##{text}"
        if not text.startswith(" ") and inside in vocabulary:  # goes on with a word
            ids = [vocabulary[inside]]
        else:
            ids = teacher.encode(text.strip(), add_special_tokens=False).ids  # type: ignore[attr-defined]
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

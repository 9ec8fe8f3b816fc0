"""A student's start beside the teacher itself, run by another library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")
import tokenizers
import transformers

from bgt_core import checkpoint, run
from bgt_core.contracts import BOS, EOS, Tokens
from bgt_core.errors import BgtError
from bgt_core.nets.layers import make_embedding
from bgt_core.nets.packing import PackedLayout
from bgt_core.nets.pooling import SIFPooling
from bgt_core.nets.transformer import Bert, with_start
from bgt_core.run.student import start_as_student

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sleep", "##s", "##ing", "dog"]
TEXTS = ["", "", "", "", " the", " cat", " sleep", "s", " sleeps", " dog", "ing", " zebra"]  # of the student's tokens


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of three layers with random weights, and its tokenizer, which pads."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 256}
    config = transformers.BertConfig(vocab_size=len(VOCABULARY), max_position_embeddings=130, **sizes)
    folder = tmp_path_factory.mktemp("teacher")
    transformers.BertModel(config).save_pretrained(folder)
    vocabulary = {token: number for number, token in enumerate(VOCABULARY)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.enable_padding(length=16)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture
def tokenizer() -> SimpleNamespace:
    return SimpleNamespace(vocab_size=len(TEXTS), texts=lambda: TEXTS)


def student(layers: int, width: int = 64) -> Bert:
    torch.manual_seed(1)
    return Bert(make_embedding(len(TEXTS), width), layers, positions=9).eval()


@pytest.mark.parametrize("layers", [(0, 1, 2), (0, 2), (1,)])
def test_states_are_those_of_the_teacher_s_layers(
    folder: Path, tokenizer: SimpleNamespace, layers: tuple[int, ...]
) -> None:
    body = student(len(layers))
    start_as_student(body, folder, layers, tokenizer)  # type: ignore[arg-type]
    teacher = transformers.BertModel.from_pretrained(folder).eval()
    teacher.encoder.layer = torch.nn.ModuleList(teacher.encoder.layer[number] for number in layers)
    side = Tokens.pad([[4, 5, 6, EOS], [4, 9, EOS]], "en")  # the cat sleep, the dog
    ids = torch.tensor([[2, 4, 5, 6, 3], [2, 4, 9, 3, 0]])
    with torch.no_grad():
        theirs = teacher(ids, attention_mask=(ids != 0).long()).last_hidden_state
        started = with_start(side)
        states = body.states(started, PackedLayout.of(started))
        torch.testing.assert_close(states, theirs[ids != 0], atol=1e-5, rtol=1e-5)
        means = torch.stack([theirs[0].mean(0), theirs[1, :4].mean(0)])
        torch.testing.assert_close(body(side), means, atol=1e-5, rtol=1e-5)


def test_a_token_has_the_mean_vector_of_the_teacher_s_tokens_for_its_text(
    folder: Path, tokenizer: SimpleNamespace
) -> None:
    body = student(1)
    start_as_student(body, folder, (0,), tokenizer)  # type: ignore[arg-type]
    theirs = transformers.BertModel.from_pretrained(folder).embeddings.word_embeddings.weight
    ours = body.words.table.weight
    expected = {7: theirs[7], 8: (theirs[6] + theirs[7]) / 2, 10: theirs[8], 11: theirs[1]}
    expected |= {BOS: theirs[2], EOS: theirs[3], 0: torch.zeros(64)}
    for token, vector in expected.items():
        torch.testing.assert_close(ours[token], vector)


def test_sentences_longer_than_the_positions_share_the_last_one(folder: Path, tokenizer: SimpleNamespace) -> None:
    body = student(1)
    start_as_student(body, folder, (0,), tokenizer)  # type: ignore[arg-type]
    long = Tokens.pad([[4] * 30 + [EOS]], "en")
    assert body(long).isfinite().all()


def test_bos_stands_before_each_sentence(random_tokens: Callable[..., Tokens]) -> None:
    side = random_tokens([3, 1, 5], 20)
    started = with_start(side)
    plain = Tokens.pad([[BOS, *ids[mask].tolist()] for ids, mask in zip(side.ids, side.mask, strict=True)], "en")
    for ours, expected in (
        (started.ids, plain.ids),
        (started.mask, plain.mask),
        (started.flat_index, plain.flat_index),
    ):
        assert torch.equal(ours, expected)


def test_an_average_starts_with_what_the_teacher_gives_the_text_of_each_token(
    folder: Path, tokenizer: SimpleNamespace
) -> None:
    average = SIFPooling(torch.full((len(TEXTS),), 0.1), 64)
    start_as_student(average, folder, (), tokenizer)  # type: ignore[arg-type]
    teacher = transformers.BertModel.from_pretrained(folder).eval()
    pieces = [[], [], [], [], [4], [5], [6], [1], [6, 7], [9], [1], [1]]  # "s" and "ing" alone are no words
    with torch.no_grad():
        theirs = [teacher(torch.tensor([[2, *ids, 3]])).last_hidden_state[0].mean(0) for ids in pieces]
    expected = torch.stack(theirs) - torch.stack(theirs).mean(0)
    torch.testing.assert_close(average.table.weight[1:].detach(), expected[1:], atol=1e-5, rtol=1e-5)


def test_what_is_no_teacher_is_refused(folder: Path, tokenizer: SimpleNamespace, tmp_path: Path) -> None:
    with pytest.raises(BgtError, match=r"model.safetensors is missing; expected a BERT"):
        start_as_student(student(1), tmp_path, (0,), tokenizer)  # type: ignore[arg-type]
    with pytest.raises(BgtError, match="no layer 3; the teacher has 0 to 2"):
        start_as_student(student(1), folder, (3,), tokenizer)  # type: ignore[arg-type]
    with pytest.raises(BgtError, match="width 64, the student has 32; set average_dim"):
        start_as_student(student(1, width=32), folder, (0,), tokenizer)  # type: ignore[arg-type]


def test_a_student_starts_from_its_teacher_once(folder: Path, tsv: Path, tmp_path: Path) -> None:
    """A run that goes on from a checkpoint keeps what the student has learned since."""
    sizes = {"average_dim": 64, "composed_dim": 8, "composed_layers": 1, "d_model": 16, "ffn_dim": 16}
    sizes |= {"heads": 2, "language_dim": 6, "decoder_layers": 1, "memory_slots": 4}
    settings: dict[str, Any] = {f"model.{name}": value for name, value in sizes.items()}
    settings |= {"model.student_layers": [0], "model.student_of": str(folder), "train.learning_rate": 1e-2}
    settings |= {"data.vocab_size": 400, "data.valid_pairs": 20, "train.warmup_steps": 0}
    bodies = []
    for name, epochs, before in (("start", 0.0, None), ("learned", 0.2, None), ("again", 0.0, tmp_path / "learned")):
        given = {"train.epochs": epochs} | ({} if before else settings) | {"data.valid_pairs": 20}
        run.train("bgt-bound", [tsv], tmp_path / name, init_from=before, overrides=given, device="cpu")
        bodies.append(
            next(m for m in checkpoint.load(tmp_path / name).model.modules() if isinstance(m, Bert)).state_dict()
        )
    start, learned, again = bodies
    assert any(not torch.equal(value, learned[name]) for name, value in start.items())
    assert all(torch.equal(value, again[name]) for name, value in learned.items())

"""A fixture with a tiny untrained BERT."""

from pathlib import Path

import pytest
import torch


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny untrained BERT in two formats: `plain` for transformers, `st` for sentence-transformers."""
    pytest.importorskip("sentence_transformers")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("bert")
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dog", "cat", "sleeps", "##s", "."]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=len(tokens), max_position_embeddings=32, **sizes)).save_pretrained(folder / "plain")
    BertTokenizerFast(vocab=vocabulary).save_pretrained(folder / "plain")
    body = Transformer(str(folder / "plain"))
    SentenceTransformer(modules=[body, Pooling(8)], device="cpu").save(str(folder / "st"), create_model_card=False)
    return folder

"""Text is normalised, converted to token ids and back, and divided into words and punctuation marks."""

import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

import bgt_core.data.text
from bgt_core.contracts import BOS, EOS, PAD, UNK
from bgt_core.data.text import Tokenizer, normalise, spans, without
from bgt_core.errors import BgtError

NOUNS = ["dog", "Baker", "garden", "river", "Teacher", "window", "café", "kettle", "ladder", "Moon"]
VERBS = ["sees", "likes", "paints", "follows", "forgets", "hears", "draws", "keeps"]
TEXT = [f"The {a} {verb} the {b}." for a in NOUNS for verb in VERBS for b in NOUNS if a != b]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXT, 45, lowercase=False)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("cafe\u0301", "café"),
        ("  a \t b\r\nc\u2028d\u00a0e  ", "a b c d e"),
        ("\ufeffzero\u200bwidth soft\u00adhyphen \u202eleft\u202c", "zerowidth softhyphen left"),
        ("bell\x07 null\x00", "bell null"),
        ("a \u200b b", "a b"),
        ("half \ud83d pair", "half pair"),
        ("Ünïcode, « Ça va ? » 你好 😀", "Ünïcode, « Ça va ? » 你好 😀"),
        ("\u200b \t", ""),
        ("", ""),
    ],
)
def test_normalise(text: str, clean: str) -> None:
    assert normalise(text) == clean


@pytest.mark.slow
@given(st.text())
def test_normalised_text_is_clean_and_stays_as_it_is(text: str) -> None:
    clean = normalise(text)
    visible = [char for char in text if char.isspace() or unicodedata.category(char) not in {"Cc", "Cf", "Cs"}]
    assert clean == " ".join(unicodedata.normalize("NFC", "".join(visible)).split())  # the same text, computed slowly
    assert normalise(clean) == clean


def test_sentences_come_back_from_their_ids(tokenizer: Tokenizer) -> None:
    sentences = ["The Moon sees the café.", "the dog"]
    ids = tokenizer.encode(sentences)
    assert [sentence[-1] for sentence in ids] == [EOS, EOS]
    assert all(token > EOS for sentence in ids for token in sentence[:-1])
    assert tokenizer.decode(ids) == sentences
    assert tokenizer.decode([[BOS, *ids[1], PAD, PAD]]) == ["the dog"]
    (special,) = tokenizer.encode(["<pad> <s> </s> \u2603"])
    assert not {PAD, BOS, EOS} & set(special[:-1]) and UNK in special


def test_each_token_belongs_to_the_word_where_it_begins() -> None:
    tokenizer = bgt_core.load().tokenizer
    words = tokenizer.words_of_tokens("\u200bWhere's  the ﬁsh\u00a0?", "en")
    (ids,) = tokenizer.encode("Where's  the ﬁsh ?")
    parts = [[token for token, word in zip(ids, words, strict=False) if word == at] for at in range(4)]
    assert tokenizer.decode(parts) == ["where's", "the", "fish", "?"]


def test_rare_characters_are_known_where_more_of_the_text_is_covered() -> None:
    """At SentencePiece's default coverage of 0.9995, a kanji that occurs once in 6,000 characters would be unknown."""
    text = ["水を見る人がいる"] * 750 + ["鬱"]
    default = Tokenizer.train(text, 12, lowercase=True)
    assert UNK in default.encode(["鬱"])[0]
    whole = Tokenizer.train(text, 13, lowercase=True, character_coverage=1.0)
    assert whole.decode(whole.encode(["鬱を見る"])) == ["鬱を見る"]


def test_the_model_alone_says_whether_case_counts(tokenizer: Tokenizer) -> None:
    lowered = Tokenizer(Tokenizer.train(TEXT, 40, lowercase=True).model)
    assert lowered.encode(["THE Dog"]) == lowered.encode(["the dog"])
    assert lowered.decode(lowered.encode(["THE Dog"])) == ["the dog"]
    assert tokenizer.encode(["The dog"]) != tokenizer.encode(["the dog"])


def test_training_gives_the_same_bytes_in_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bgt_core.data.text, "TRAINING_SENTENCES", 300)
    here = Tokenizer.train(iter(TEXT), 45, lowercase=True)
    script = (
        f"import bgt_core.data.text as t; t.TRAINING_SENTENCES = 300\n"
        f"print(t.Tokenizer.train({TEXT!r}, 45, lowercase=True).sha256)"
    )
    other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == here.sha256 != Tokenizer.train(TEXT[:300], 45, lowercase=True).sha256
    assert other.stderr == ""


@pytest.mark.parametrize(
    ("text", "size", "message"),
    [
        (TEXT, 9000, r"vocab_size 9000 is too large .* largest possible is (\d+)\. .* data\.vocab_size=\1$"),
        (TEXT, 5, r"vocab_size 5 is too small .* needs \d+"),
        ([], 60, "no text"),
        (["", " \u200b"], 60, "no text"),
    ],
)
def test_an_impossible_vocabulary_is_explained(text: list[str], size: int, message: str) -> None:
    with pytest.raises(BgtError, match=message):
        Tokenizer.train(text, size, lowercase=False)


def test_what_is_no_tokenizer_is_refused(tokenizer: Tokenizer, tmp_path: Path) -> None:
    for model in (b"", b"no model", tokenizer.model[:500]):
        (tmp_path / "tokenizer.model").write_bytes(model)
        with pytest.raises(BgtError, match=r"tokenizer\.model: .*SentencePiece"):
            Tokenizer.load(tmp_path / "tokenizer.model")
    options = {"model_prefix": str(tmp_path / "other"), "vocab_size": 40, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(TEXT), **options)
    with pytest.raises(BgtError, match=r"the ids \(-1, 0, 1, 2\) of .*, not \(0, 1, 2, 3\)"):
        Tokenizer.load(tmp_path / "other.model")
    with pytest.raises(BgtError, match="no such tokenizer") as error:
        Tokenizer.load(tmp_path / "absent.model")
    assert error.value.exit_code == 3


@pytest.mark.parametrize(
    ("text", "lang", "parts"),
    [
        ("Don't you see it?", "en", ["Don't", "you", "see", "it", "?"]),
        ("Où est-ce qu'il va ?", "fr", ["Où", "est-ce", "qu'il", "va", "?"]),
        ("私はコーヒーが好きです。", "ja", ["私", "は", "コーヒー", "が", "好", "きです", "。"]),
        ("هل أنت هنا؟", "ar", ["هل", "أنت", "هنا", "؟"]),
        ("هَلْ أَنْتَ هُنَا؟", "ar", ["هَلْ", "أَنْتَ", "هُنَا", "؟"]),
        ("मैं हिन्दी बोलता हूँ।", "hi", ["मैं", "हिन्दी", "बोलता", "हूँ", "।"]),
        ("צה״ל שָׁלוֹם", "he", ["צה״ל", "שָׁלוֹם"]),
        ("สวัสดีครับ ผมชื่อ Tom", "th", ["สวัสดีครับ", "ผมชื่อ", "Tom"]),
        ("カ\u3099ムと犬", "ja", ["カ\u3099ム", "と", "犬"]),
        ("x\u0303y 5\ufe0f\u20e3!", "en", ["x\u0303y", "5\ufe0f\u20e3", "!"]),
    ],
)
def test_words_and_marks_are_left_out_one_at_a_time(text: str, lang: str, parts: list[str]) -> None:
    assert [text[start:end] for start, end in spans(text, lang)] == parts
    for part, rest in zip(parts, without(text, lang), strict=True):
        assert sorted(normalise(rest + part).replace(" ", "")) == sorted(normalise(text).replace(" ", ""))


@pytest.mark.parametrize("lang", ["en", "ja"])
@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("👨\u200d👩\u200d👧 hi", ["👨\u200d👩\u200d👧", "hi"]),
        ("❤️\u200d🔥👍🏽", ["❤️\u200d🔥", "👍🏽"]),
        ("🇫🇷🇩🇪", ["🇫🇷", "🇩🇪"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("\u200d a \u200f\ufeff\u2060 \x00", ["a"]),
    ],
)
def test_an_emoji_is_one_mark_and_what_no_encoder_sees_is_no_word(text: str, parts: list[str], lang: str) -> None:
    assert [text[start:end] for start, end in spans(text, lang)] == parts

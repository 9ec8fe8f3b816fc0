"""A training step has the planned rows, in reproducible order, and is divided into micro-batches that fit in memory."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch

from bgt_core.contracts import EOS, Batch
from bgt_core.data import batching
from bgt_core.data.batching import Batching, StepBatch, draw, prefetch, rows_per_epoch, validation
from bgt_core.data.columns import altered_columns, parse_columns, parse_source, parse_weights
from bgt_core.data.store import Corpus, Mixture, Stratum, open_corpus, tokenise
from bgt_core.data.text import Tokenizer
from bgt_core.errors import BgtError, DataError, UsageError

LANGS = ("en", "fr")


def whole(batching: Batching, corpus: Corpus, step: int) -> list[Batch]:
    """Return all micro-batches of a training step, as a single worker process gets them."""
    return list(batching.update(corpus, step).batches.values())


class Words(Tokenizer):
    """A fake tokenizer for texts whose words are numbers, which are also the token ids."""

    def __init__(self):
        self.model, self.sha256, self.vocab_size = b"", "words", 2000

    def encode(self, sentences: Sequence[str], *, normalised: bool = False) -> list[list[int]]:
        return [[*map(int, text.split()), EOS] for text in sentences]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """600 pairs of 5 to 40 tokens, numbered 10 to 609. The first token of both sentences is the number of the pair."""
    rng = np.random.default_rng(0)
    lines = []
    for number in range(10, 610):
        sides = (" ".join([str(number)] + ["5"] * int(rng.integers(4, 40))) for _ in LANGS)
        lines.append("\t".join(sides) + "\n")
    folder = tmp_path_factory.mktemp("batching")
    (folder / "corpus.tsv").write_text("".join(lines))
    return tokenise([folder / "corpus.tsv"], LANGS, Words(), folder / "store", valid_pairs=60, seed=1)


def numbers(batches: list[Batch]) -> list[int]:
    """Return the numbers of the pairs in the batches. Check that both sentences of a row belong to the same pair."""
    for batch in batches:
        assert torch.equal(batch.sides["en"].ids[:, 0], batch.sides["fr"].ids[:, 0])
    return [number for batch in batches for number in batch.sides["en"].ids[:, 0].tolist()]


def same(left: list[Batch], right: list[Batch]) -> bool:
    return len(left) == len(right) and all(
        a.anchor == b.anchor and all(torch.equal(a.sides[lang].ids, b.sides[lang].ids) for lang in LANGS)
        for a, b in zip(left, right, strict=True)
    )


def tokens_of(batch: Batch) -> int:
    """Count the tokens of all columns of a batch, without padding."""
    return sum(len(side.flat_index) for side in batch.sides.values())


@pytest.mark.parametrize("size", [*range(1, 70), 255, 256, 257, 1000, 4095, 4097])
def test_a_permutation_visits_everything_once(size: int) -> None:
    for epoch in range(3):
        assert sorted(batching.permute(np.arange(size), size, seed=5, epoch=epoch)) == list(range(size))


def test_permutations_look_random() -> None:
    """In 2000 permutations of 0..9, each number is equally often at each position, by a chi-square test (81 degrees of
    freedom)."""
    table = np.zeros((10, 10))
    neighbours = 0
    for epoch in range(2000):
        permuted = batching.permute(np.arange(10), 10, seed=0, epoch=epoch)
        table[np.arange(10), permuted] += 1
        neighbours += int((np.abs(np.diff(permuted)) == 1).sum())
    assert ((table - 200) ** 2 / 200).sum() < 140  # by chance, chi-square exceeds this once in 10,000 tests
    assert abs(neighbours / 2000 - 1.8) < 0.15  # expected: of the 9 adjacent pairs, a share of 2/10 differs by 1


def test_large_corpora_are_permuted_without_a_table() -> None:
    permuted = batching.permute(np.arange(1000), 10**12, seed=1, epoch=0)
    assert len(set(permuted.tolist())) == 1000
    assert 0 <= permuted.min() < 10**10
    assert 99 * 10**10 < permuted.max() < 10**12


def test_an_epoch_visits_every_pair_once(corpus: Corpus) -> None:
    batching = Batching(batch_tokens=1000, micro_tokens=300, seed=1)
    updates = batching.updates(corpus)
    assert updates == -(-corpus.tokens // 1000)
    expected = sorted(ids[0] for ids in corpus.take("en", np.arange(len(corpus))))
    epochs = [
        [numbers(whole(batching, corpus, step)) for step in range(epoch * updates, (epoch + 1) * updates)]
        for epoch in range(2)
    ]
    for epoch in epochs:
        assert sorted(chain.from_iterable(epoch)) == expected
    assert {frozenset(update) for update in epochs[0]}.isdisjoint(map(frozenset, epochs[1]))


def test_memory_changes_no_update(corpus: Corpus) -> None:
    """The token limit of micro-batches, which depends on the device's memory, must not change the pairs of a step."""
    small, large = (Batching(batch_tokens=1500, micro_tokens=size, seed=3) for size in (100, 5000))
    for step in range(5):
        assert sorted(numbers(whole(small, corpus, step))) == sorted(numbers(whole(large, corpus, step)))
    assert len(whole(small, corpus, 0)) > len(whole(large, corpus, 0)) == 1


def test_micro_batches_keep_their_budget(corpus: Corpus) -> None:
    for step in range(5):
        batches = whole(Batching(batch_tokens=2000, micro_tokens=200, seed=1), corpus, step)
        widths = [max(side.ids.shape[1] for side in batch.sides.values()) for batch in batches]
        assert all(len(batch) * width <= 200 for batch, width in zip(batches, widths, strict=True))
        assert widths == sorted(widths, reverse=True)  # the batch that needs the most memory comes first
    alone = whole(Batching(batch_tokens=1000, micro_tokens=8, seed=1), corpus, 0)  # 8 tokens: one pair per batch
    assert {len(batch) for batch in alone} == {1}


@pytest.mark.parametrize(("parts", "micro_tokens"), [(2, 10**6), (3, 10**6), (1, 600)])
def test_an_update_is_cut_into_equal_micro_batches(corpus: Corpus, parts: int, micro_tokens: int) -> None:
    """A step has `parts` micro-batches, except that a limit of 600 tokens requires four (the third case above)."""
    cut, together = Batching(1500, micro_tokens, 1, micro_batches=parts), Batching(1500, 10**6, 1)
    for step in range(3):
        batches = whole(cut, corpus, step)
        (of_whole,) = whole(together, corpus, step)
        tokens = [tokens_of(batch) for batch in batches]
        longest = max(side.mask.sum(1).max() for side in of_whole.sides.values())
        assert len(tokens) == (parts if micro_tokens > 1500 else 4)
        assert max(tokens) - min(tokens) <= 2 * 2 * longest  # at both ends, a pair of 2 sentences more or fewer
        assert sum(tokens) == tokens_of(of_whole)


def test_anchors_alternate_over_micro_batches_and_steps(corpus: Corpus) -> None:
    for seed in (0, 1):
        batching = Batching(batch_tokens=1000, micro_tokens=200, seed=seed)
        for step in range(4):
            anchors = [batch.anchor for batch in whole(batching, corpus, step)]
            assert len(anchors) > 3
            assert anchors == [LANGS[(seed + step + i) % 2] for i in range(len(anchors))]


@pytest.mark.parametrize("workers", [1, 2, 3, 50])
def test_workers_share_an_update_out_and_leave_it_as_it_is(corpus: Corpus, workers: int) -> None:
    batching = Batching(batch_tokens=1000, micro_tokens=200, seed=7)
    alone = batching.update(corpus, 4)
    shares = [batching.update(corpus, 4, worker, workers) for worker in range(workers)]
    assert [share.rows for share in shares] == [alone.rows] * workers
    assert sum(len(batch) for share in shares for batch in share.batches.values()) == alone.rows
    together = {number: batch for share in shares for number, batch in share.batches.items()}
    assert same([together[number] for number in sorted(together)], list(alone.batches.values()))
    assert sum(len(share.batches) for share in shares) == len(alone.batches)
    tokens = [sum(map(tokens_of, share.batches.values())) for share in shares]
    assert max(tokens) - min(tokens) <= max(map(tokens_of, alone.batches.values()))


def test_updates_made_ahead_come_in_order(corpus: Corpus) -> None:
    batching = Batching(batch_tokens=1000, micro_tokens=200, seed=7)
    permuted = [list(u.batches.values()) for u in prefetch(lambda step: batching.update(corpus, step), range(3, 9))]
    assert len(permuted) == 6
    assert all(same(batches, whole(batching, corpus, step)) for step, batches in enumerate(permuted, 3))

    def make(step: int) -> StepBatch:
        raise DataError(f"no step {step}")

    with pytest.raises(BgtError, match="no step 3"):
        next(prefetch(make, range(3, 9)))


def test_validation_visits_every_pair_once_in_a_fixed_order(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bgt_core.data.batching.WINDOW", 25)
    valid = Corpus.open(corpus.folder, "valid")
    batches = list(validation(valid, 200))
    assert sorted(numbers(batches)) == sorted(ids[0] for ids in valid.take("en", np.arange(len(valid))))
    assert len(numbers(batches)) == 60
    assert [batch.anchor for batch in batches] == [LANGS[i % 2] for i in range(len(batches))]
    assert same(batches, list(validation(Corpus.open(corpus.folder, "valid"), 200)))


def test_an_empty_split(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "corpus.tsv").write_text("5 6 7 8 9\t5 6 7 8 9\n")
    tokenise([tmp_path / "corpus.tsv"], LANGS, Words(), tmp_path / "store", valid_pairs=0, seed=1)
    valid = Corpus.open(tmp_path / "store", "valid")
    assert list(validation(valid, 100)) == []
    with pytest.raises(BgtError, match=r"the valid split of .* has no pairs"):
        whole(Batching(100, 100, 1), valid, 0)


@pytest.mark.parametrize(
    "wrong", [{"batch_tokens": 0}, {"micro_tokens": 0}, {"seed": -1}, {"temperature": 0}, {"weights": {"news": 0.0}}]
)
def test_impossible_settings_are_refused(wrong: dict) -> None:
    with pytest.raises(BgtError, match=r"must be (at least 1|above 0)"):
        Batching(**{"batch_tokens": 1, "micro_tokens": 1, "seed": 1} | wrong)


def test_a_column_of_altered_sentences_needs_the_one_that_it_alters() -> None:
    assert altered_columns({"en": "en", "altered_b": "fr", "fr": "fr", "other": "fr"}) == {"altered_b": "fr"}
    with pytest.raises(BgtError, match=r"columns en, altered: 'altered' needs an unaltered column in its language"):
        parse_columns(["en", "altered:fr"])


def test_altered_sentences_are_no_side(tokenizer: Tokenizer, tmp_path: Path) -> None:
    rows = [
        ("the dog sees the man", "l'homme dort", "the man sees the dog"),
        ("a cat sleeps", "un chat", "no cat"),
    ] * 30
    (tmp_path / "rows.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    columns = ("en", "fr", "altered:en")
    store = tmp_path / "store"
    corpus = tokenise([tmp_path / "rows.tsv"], columns, tokenizer, store, min_tokens=1, valid_pairs=2, seed=1)
    assert isinstance(corpus, Corpus)
    batch = batching.make_batch(corpus, np.arange(len(corpus)), turn=1)
    assert list(batch.sides) == ["en", "fr"] and batch.anchor == "fr" and batch.source("fr") == "en"
    assert list(batch.altered) == ["en"] and batch.altered["en"].lang == "en"
    sides = [tokenizer.decode(side.ids.tolist()) for side in (*batch.sides.values(), *batch.altered.values())]
    assert set(zip(*sides, strict=True)) <= set(rows)


COLUMNS = ("en", "fr", "de", "es")


@pytest.fixture(scope="module")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> Mixture:
    """Three corpora: English with French (two files of news, and one of talks), with German, and with Spanish."""
    folder = tmp_path_factory.mktemp("sampling")
    files = [("news", "fr", 40), ("talks", "fr", 90), ("news", "fr", 31), ("", "de", 50), ("", "es", 7)]
    sources, number = [], 0
    for kind, lang, rows in files:
        path = folder / f"{len(sources)}.tsv"
        some = range(number, number + rows)
        path.write_text("".join(f"sentence {'very ' * (n % 9)}{n}\tphrase {n}\n" for n in some), "utf-8")
        sources.append(parse_source(f"{kind}{'/' * bool(kind)}en-{lang}={path}", COLUMNS))
        number += rows
    tokenizer = Tokenizer.train([f"sentence very {n} phrase" for n in range(400)], 40, lowercase=True)
    store = tokenise(sources, COLUMNS, tokenizer, folder / "store", min_tokens=1, valid_pairs=12, seed=1)
    assert isinstance(store, Mixture)
    return store


def test_files_of_a_kind_lie_together_and_are_counted(mixture: Mixture) -> None:
    for split in ("train", "valid"):
        part = open_corpus(mixture.folder, split)
        kinds = [(stratum.columns[1], stratum.kind) for stratum in part.strata]
        assert kinds == [pair for pair in [("fr", "news"), ("fr", "talks"), ("de", ""), ("es", "")] if pair in kinds]
        assert sum(stratum.rows for stratum in part.strata) == len(part)
        edge = 0
        for stratum in part.strata:
            assert stratum.first == edge
            edge += stratum.rows
            ((corpus, rows),) = part.parts(np.arange(stratum.first, edge))
            assert stratum.tokens == corpus.lengths(rows).max(axis=1).sum()
    assert mixture.strata[0].rows > 60 and mixture.strata[1].rows > 80  # files of 71 and 90 rows, minus held-out rows


@pytest.mark.parametrize(("temperature", "ratio"), [(1, 10_000), (2, 100), (4, 10)])
def test_corpora_share_an_epoch_as_a_root_of_their_tokens(temperature: float, ratio: float) -> None:
    """A share is proportional to tokens^(1 / temperature). The corpora have 10^8 and 10^4 tokens: 20 and 10 per row."""
    strata = [Stratum(("en", "fr"), "", 0, 5 * 10**6, 10**8), Stratum(("en", "de"), "", 5 * 10**6, 10**3, 10**4)]
    large, small = rows_per_epoch(strata, temperature, {})
    assert 20 * large + 10 * small == pytest.approx(10**8 + 10**4, abs=15)  # both row counts are rounded
    assert 20 * large / (10 * small) == pytest.approx(ratio, rel=6e-4)


def test_a_kind_of_weight_3_counts_as_if_its_file_were_given_thrice() -> None:
    """At any temperature, the weight 3 for a kind of text has the same effect as three copies of its file."""
    thrice = [
        Stratum(("en", "fr"), "news", 0, 100 * times, 2_000 * times)
        if times
        else Stratum(("en", "fr"), "", 0, 400, 4_000)
        for times in (3, 0)
    ]
    other = Stratum(("en", "de"), "", 0, 300, 3_000)
    once = [thrice[0]._replace(rows=100, tokens=2_000), thrice[1], other]
    for temperature in (1, 2, 5):
        weighed = rows_per_epoch(once, temperature, {"news": 3.0})
        given = rows_per_epoch([*thrice, other], temperature, {})
        of_given = np.array(given) * 9_000 / 13_000  # scaled from 13,000 tokens to the 9,000 tokens of `once`
        assert np.abs(np.array(weighed) - of_given).max() <= 1


def test_each_epoch_holds_the_shares_and_every_row_comes_equally_often(mixture: Mixture) -> None:
    """Rows of the same languages and kind of text are drawn equally often: at any step, counts differ by at most 1."""
    batching = Batching(batch_tokens=130, micro_tokens=60, seed=3, temperature=5, weights={"news": 2.5})
    updates = batching.updates(mixture)
    assert updates == -(-mixture.tokens // 130)
    expected = rows_per_epoch(mixture.strata, 5, {"news": 2.5})
    counts = np.zeros(len(mixture), int)
    for step in range(7 * updates):
        rows = batching.rows(mixture, step)
        np.add.at(counts, rows, 1)
        for stratum, of_epoch in zip(mixture.strata, expected, strict=True):
            of_stratum = counts[stratum.first : stratum.first + stratum.rows]
            assert of_stratum.max() - of_stratum.min() <= 1
            assert of_stratum.sum() == of_epoch * (step + 1) // updates  # the stratum has its planned share so far
    drawn = sum(rows * of.tokens / of.rows for rows, of in zip(expected, mixture.strata, strict=True))
    assert drawn == pytest.approx(mixture.tokens, rel=0.02)
    assert counts[mixture.strata[-1].first] > 3 * counts[mixture.strata[1].first]  # rows of a small corpus are repeated


def test_two_strata_of_one_size_go_through_different_permutations() -> None:
    strata = [Stratum(("en", lang), "", 500 * number, 500, 5_000) for number, lang in enumerate(("fr", "de"))]
    rows = draw(strata, [500, 500], 0, 10, seed=1)
    assert len(rows) == 100 and len(set(rows[:50] % 500) & set(rows[50:] % 500)) < 20


def test_any_step_alone_is_that_of_the_sequence(mixture: Mixture) -> None:
    batching = Batching(batch_tokens=300, micro_tokens=100, seed=2, temperature=2, micro_batches=2)
    far = 5 * batching.updates(mixture) + 1
    in_order = [batching.rows(mixture, step).tolist() for step in range(far + 1)]
    assert batching.rows(open_corpus(mixture.folder), far).tolist() == in_order[far] != in_order[far - 1]


def test_weights_are_parsed_or_refused() -> None:
    assert parse_weights("news:3,docs:0.5") == {"news": 3.0, "docs": 0.5} and parse_weights("") == {}
    for text in ("news", "news:0", "news:-1", "news:inf", "a:1,a:2", "a b:1"):
        with pytest.raises(UsageError, match="kind_weights"):
            parse_weights(text)


SENTENCES = [np.array([*range(10, 10 + length), EOS]) for length in [12] * 2000]


def moved(share: float, *draw: int) -> np.ndarray:
    """Shuffle the words of all sentences. Return whether the order of each sentence has changed, (N,) bool."""
    shuffled = batching.shuffle_words(SENTENCES, share, *draw)
    for before, after in zip(SENTENCES, shuffled, strict=True):
        assert after[-1] == EOS
        assert sorted(after) == sorted(before)
    return np.array([(a != b).any() for a, b in zip(SENTENCES, shuffled, strict=True)])


def test_a_share_is_permuted_and_every_place_is_as_likely() -> None:
    assert abs(moved(0.3, 1).mean() - 0.3) < 0.04  # four standard errors of the share
    assert not moved(0.0, 1).any()
    assert moved(1.0, 1).all()
    firsts = np.array([ids[0] for ids in batching.shuffle_words(SENTENCES, 1.0, 5)])
    counts = np.bincount(firsts - 10, minlength=12)
    assert ((counts - 2000 / 12) ** 2 / (2000 / 12)).sum() < 37  # chi-square, 11 degrees of freedom, p = 0.0001


def test_sentences_are_scrambled_anew_in_each_update(corpus: Corpus) -> None:
    plain, shuffled = (Batching(100_000, 100_000, seed=1, scramble=share) for share in (0.0, 1.0))
    assert plain.updates(corpus) == 1  # each step uses all pairs

    def places(batching: Batching, step: int) -> dict[int, int]:
        """Return a dict from each pair's number, which is a token, to its position in the French sentence."""
        ids = batching.update(corpus, step).batches[0].sides["fr"].ids
        return dict(zip(ids.amax(1).tolist(), ids.argmax(1).tolist(), strict=True))

    first, second = places(shuffled, 0), places(shuffled, 1)
    assert set(places(plain, 0).values()) == {0} and places(plain, 0) == places(plain, 1)
    assert first == places(shuffled, 0) != second and first.keys() == second.keys() == places(plain, 0).keys()

"""Updates, micro-batches and their order."""

import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch

from bgt_core.contracts import EOS, Batch
from bgt_core.data.batching import Batching, StepBatch, make_batch, permute, prefetch, validation
from bgt_core.data.columns import altered_columns, parse_columns
from bgt_core.data.corpus import Corpus
from bgt_core.data.store import prepare
from bgt_core.data.text import Tokenizer
from bgt_core.errors import BgtError, DataError

LANGS = ("en", "fr")


def whole(batching: Batching, corpus: Corpus, step: int) -> list[Batch]:
    """The micro-batches of an update, as one worker computes them."""
    return list(batching.update(corpus, step).batches.values())


class Words(Tokenizer):
    """One token a word that is a number: that number."""

    def __init__(self):
        self.model, self.sha256, self.vocab_size = b"", "words", 2000

    def encode(self, sentences: Sequence[str], *, normalised: bool = False) -> list[list[int]]:
        return [[*map(int, text.split()), EOS] for text in sentences]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """600 pairs of 5 to 40 tokens; the first token of each side is the number of the pair."""
    rng = np.random.default_rng(0)
    lines = []
    for number in range(10, 610):
        sides = (" ".join([str(number)] + ["5"] * int(rng.integers(4, 40))) for _ in LANGS)
        lines.append("\t".join(sides) + "\n")
    folder = tmp_path_factory.mktemp("batching")
    (folder / "corpus.tsv").write_text("".join(lines))
    return prepare([folder / "corpus.tsv"], LANGS, Words(), folder / "store", valid_pairs=60, seed=1)


def numbers(batches: list[Batch]) -> list[int]:
    """Which pairs are in the batches; both sides of each must belong together."""
    for batch in batches:
        assert torch.equal(batch.sides["en"].ids[:, 0], batch.sides["fr"].ids[:, 0])
    return [number for batch in batches for number in batch.sides["en"].ids[:, 0].tolist()]


def same(left: list[Batch], right: list[Batch]) -> bool:
    return len(left) == len(right) and all(
        a.anchor == b.anchor and all(torch.equal(a.sides[lang].ids, b.sides[lang].ids) for lang in LANGS)
        for a, b in zip(left, right, strict=True)
    )


def tokens_of(batch: Batch) -> int:
    """On all sides, without padding."""
    return sum(len(side.flat_index) for side in batch.sides.values())


@pytest.mark.parametrize("size", [*range(1, 70), 255, 256, 257, 1000, 4095, 4097])
def test_a_permutation_visits_everything_once(size: int) -> None:
    for epoch in range(3):
        assert sorted(permute(np.arange(size), size, seed=5, epoch=epoch)) == list(range(size))


def test_parts_of_a_permutation_are_the_whole() -> None:
    whole = permute(np.arange(1000), 1000, seed=5, epoch=2)
    parts = [permute(np.arange(start, start + 100), 1000, seed=5, epoch=2) for start in range(0, 1000, 100)]
    assert np.array_equal(np.concatenate(parts), whole)


def test_permutations_look_random() -> None:
    """Over 2000 keys every number of 0..9 stands equally often everywhere; chi-square with 81 degrees of freedom."""
    table = np.zeros((10, 10))
    neighbours = 0
    for epoch in range(2000):
        permuted = permute(np.arange(10), 10, seed=0, epoch=epoch)
        table[np.arange(10), permuted] += 1
        neighbours += int((np.abs(np.diff(permuted)) == 1).sum())
    assert ((table - 200) ** 2 / 200).sum() < 140  # one in 10,000 fair shuffles is above
    assert abs(neighbours / 2000 - 1.8) < 0.15  # 9 places, 2/10 chance each


def test_large_corpora_are_permuted_without_a_table() -> None:
    permuted = permute(np.arange(1000), 10**12, seed=1, epoch=0)
    assert len(set(permuted.tolist())) == 1000
    assert 0 <= permuted.min() < 10**10
    assert 99 * 10**10 < permuted.max() < 10**12


def test_seeds_and_epochs_differ() -> None:
    orders = [tuple(permute(np.arange(50), 50, seed, epoch)) for seed in range(3) for epoch in range(3)]
    assert len(set(orders)) == 9


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


def test_updates_hold_about_the_tokens_asked(corpus: Corpus) -> None:
    batching = Batching(batch_tokens=2000, micro_tokens=300, seed=1)
    for step in range(batching.updates(corpus)):
        batches = whole(batching, corpus, step)
        longer = [torch.stack([side.mask.sum(1) for side in batch.sides.values()]).amax(0).sum() for batch in batches]
        assert 1600 < sum(longer) < 2400


def test_memory_changes_no_update(corpus: Corpus) -> None:
    """The pairs of a step and how often each language is the anchor do not depend on the device."""
    small, large = (Batching(batch_tokens=1500, micro_tokens=size, seed=3) for size in (100, 5000))
    for step in range(5):
        assert sorted(numbers(whole(small, corpus, step))) == sorted(numbers(whole(large, corpus, step)))
    assert len(whole(small, corpus, 0)) > len(whole(large, corpus, 0)) == 1


def test_micro_batches_keep_their_budget(corpus: Corpus) -> None:
    for step in range(5):
        batches = whole(Batching(batch_tokens=2000, micro_tokens=200, seed=1), corpus, step)
        widths = [max(side.ids.shape[1] for side in batch.sides.values()) for batch in batches]
        assert all(len(batch) * width <= 200 for batch, width in zip(batches, widths, strict=True))
        assert widths == sorted(widths, reverse=True)  # what needs most memory comes first


@pytest.mark.parametrize("workers", [2, 4])
def test_what_is_cut_to_fit_is_shared_evenly(corpus: Corpus, workers: int) -> None:
    batching = Batching(batch_tokens=1500, micro_tokens=600, seed=1)
    for step in range(5):
        assert len(whole(batching, corpus, step)) == 4
        shares = [batching.update(corpus, step, worker, workers) for worker in range(workers)]
        tokens = [sum(map(tokens_of, share.batches.values())) for share in shares]
        assert max(tokens) - min(tokens) <= 2 * 80  # a pair at either end


@pytest.mark.parametrize("parts", [2, 3])
def test_equal_micro_batches_hold_as_many_tokens_each(corpus: Corpus, parts: int) -> None:
    whole, cut = Batching(1000, 10**6, 1), Batching(1000, 10**6, 1, micro_batches=parts)
    for step in range(3):
        update, of_whole = cut.update(corpus, step), whole.update(corpus, step)
        tokens = [tokens_of(batch) for batch in update.batches.values()]
        longest = max(side.mask.sum(1).max() for side in of_whole.batches[0].sides.values())
        assert len(tokens) == parts
        assert max(tokens) - min(tokens) <= 2 * 2 * longest  # a pair at either end
        assert sum(tokens) == tokens_of(of_whole.batches[0])
        widths = [max(side.ids.shape[1] for side in batch.sides.values()) for batch in update.batches.values()]
        assert widths == sorted(widths, reverse=True)
    assert len(Batching(1000, 200, 1, micro_batches=parts).update(corpus, 0).batches) > parts  # what fits comes first


def test_a_pair_past_the_budget_stands_alone(corpus: Corpus) -> None:
    batches = whole(Batching(batch_tokens=1000, micro_tokens=8, seed=1), corpus, 0)
    assert {len(batch) for batch in batches} == {1}


def test_sides_end_in_eos_and_hold_the_ids_of_the_corpus(corpus: Corpus) -> None:
    stored = {int(ids[0]): ids.tolist() for ids in corpus.take("fr", np.arange(len(corpus)))}
    for batch in whole(Batching(1000, 300, seed=1), corpus, 0):
        side = batch.sides["fr"]
        for ids, mask in zip(side.ids, side.mask, strict=True):
            assert ids[mask].tolist() == stored[int(ids[0])]
            assert ids[mask][-1] == EOS


def test_length_sorting_saves_padding(corpus: Corpus) -> None:
    batches = whole(Batching(batch_tokens=4000, micro_tokens=400, seed=1), corpus, 0)
    padding = torch.cat([(~batch.sides[lang].mask).flatten() for batch in batches for lang in LANGS])
    indices = permute(np.arange(160), len(corpus), 1, 0)
    lengths = corpus.lengths(indices)
    unsorted = 1 - np.mean([part.sum() / (len(part) * part.max(0).sum()) for part in np.split(lengths, 16)])
    assert padding.float().mean() < 0.75 * unsorted


def test_anchors_alternate_over_micro_batches_and_steps(corpus: Corpus) -> None:
    for seed in (0, 1):
        batching = Batching(batch_tokens=1000, micro_tokens=200, seed=seed)
        for step in range(4):
            anchors = [batch.anchor for batch in whole(batching, corpus, step)]
            assert len(anchors) > 3
            assert anchors == [LANGS[(seed + step + i) % 2] for i in range(len(anchors))]


@pytest.mark.slow
def test_training_may_start_at_any_step(corpus: Corpus) -> None:
    batching = Batching(batch_tokens=1000, micro_tokens=200, seed=7)
    far = 3 * batching.updates(corpus) + 2
    in_order = [whole(batching, corpus, step) for step in range(far + 1)]
    again = whole(Batching(1000, 200, 7), Corpus.open(corpus.folder), far)
    assert same(again, in_order[far])
    assert not same(in_order[far], in_order[far - 1])
    script = (
        "import sys; from bgt_core.data.batching import Batching; from bgt_core.data.store import Corpus\n"
        "batches = Batching(1000, 200, 7).update(Corpus.open(sys.argv[1]), int(sys.argv[2])).batches.values()\n"
        "print([(b.anchor, b.sides['en'].ids.tolist()) for b in batches])"
    )
    command = [sys.executable, "-c", script, str(corpus.folder), str(far)]
    other_process = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert other_process == str([(batch.anchor, batch.sides["en"].ids.tolist()) for batch in in_order[far]])


@pytest.mark.parametrize("workers", [1, 2, 3, 50])
def test_workers_share_an_update_out_and_leave_it_as_it_is(corpus: Corpus, workers: int) -> None:
    batching = Batching(batch_tokens=1000, micro_tokens=200, seed=7)
    alone = batching.update(corpus, 4)
    shares = [batching.update(corpus, 4, worker, workers) for worker in range(workers)]
    assert [share.pairs for share in shares] == [alone.pairs] * workers
    assert sum(len(batch) for share in shares for batch in share.batches.values()) == alone.pairs
    together = {number: batch for share in shares for number, batch in share.batches.items()}
    assert same([together[number] for number in sorted(together)], list(alone.batches.values()))
    assert sum(len(share.batches) for share in shares) == len(alone.batches)
    tokens = [sum(map(tokens_of, share.batches.values())) for share in shares]
    assert max(tokens) - min(tokens) <= max(map(tokens_of, alone.batches.values()))


def test_updates_made_ahead_come_in_order(corpus: Corpus) -> None:
    batching = Batching(batch_tokens=1000, micro_tokens=200, seed=7)
    updates = prefetch(lambda step: batching.update(corpus, step), range(3, 9))
    permuted = [list(update.batches.values()) for update in updates]
    assert len(permuted) == 6
    assert all(same(batches, whole(batching, corpus, step)) for step, batches in enumerate(permuted, 3))


def test_an_error_in_an_update_made_ahead_reaches_the_caller() -> None:
    def make(step: int) -> StepBatch:
        raise DataError(f"no step {step}")

    with pytest.raises(BgtError, match="no step 3"):
        next(prefetch(make, range(3, 9)))


def test_seeds_give_other_updates(corpus: Corpus) -> None:
    left, right = (whole(Batching(1000, 200, seed), corpus, 0) for seed in (1, 2))
    assert set(numbers(left)) != set(numbers(right))


def test_more_updates_than_pairs_are_never_asked_for(corpus: Corpus) -> None:
    batching = Batching(batch_tokens=1, micro_tokens=1, seed=1)
    assert batching.updates(corpus) == len(corpus)
    assert [len(whole(batching, corpus, step)) for step in range(5)] == [1] * 5


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
    prepare([tmp_path / "corpus.tsv"], LANGS, Words(), tmp_path / "store", valid_pairs=0, seed=1)
    valid = Corpus.open(tmp_path / "store", "valid")
    assert list(validation(valid, 100)) == []
    with pytest.raises(BgtError, match=r"the valid split of .* holds no pairs"):
        whole(Batching(100, 100, 1), valid, 0)


@pytest.mark.parametrize("numbers", [(0, 1, 1), (1, 0, 1), (1, 1, -1)])
def test_impossible_settings_are_refused(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(BgtError, match="must be at least 1"):
        Batching(*numbers)


def test_both_languages_anchor_equally_often(corpus: Corpus) -> None:
    batching = Batching(batch_tokens=1000, micro_tokens=150, seed=1)
    pairs: Counter[str] = Counter()
    for step in range(40):
        for batch in whole(batching, corpus, step):
            pairs[batch.anchor] += len(batch)
    assert abs(pairs["en"] / pairs.total() - 0.5) < 0.02


def test_a_column_of_altered_sentences_needs_the_one_that_it_alters() -> None:
    assert altered_columns({"en": "en", "altered_b": "fr", "fr": "fr", "other": "fr"}) == {"altered_b": "fr"}
    with pytest.raises(BgtError, match=r"columns en, altered: 'altered' needs another column of its language"):
        parse_columns(["en", "altered:fr"])


def test_altered_sentences_are_no_side(tokenizer: Tokenizer, tmp_path: Path) -> None:
    rows = [
        ("the dog sees the man", "l'homme dort", "the man sees the dog"),
        ("a cat sleeps", "un chat", "no cat"),
    ] * 30
    (tmp_path / "rows.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    columns = ("en", "fr", "altered:en")
    store = tmp_path / "store"
    corpus = prepare([tmp_path / "rows.tsv"], columns, tokenizer, store, min_tokens=1, valid_pairs=2, seed=1)
    assert isinstance(corpus, Corpus)
    batch = make_batch(corpus, np.arange(len(corpus)), turn=1)
    assert list(batch.sides) == ["en", "fr"] and batch.anchor == "fr" and batch.source("fr") == "en"
    assert list(batch.altered) == ["en"] and batch.altered["en"].lang == "en"
    sides = [tokenizer.decode(side.ids.tolist()) for side in (*batch.sides.values(), *batch.altered.values())]
    assert set(zip(*sides, strict=True)) <= set(rows)

"""Sampling by temperature and by kind: the shares that the definition gives, every row equally often, no state."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bgt_core.data.batching import Batching, validation
from bgt_core.data.columns import Source, parse_source, parse_weights
from bgt_core.data.corpus import Mixture, Stratum, open_corpus
from bgt_core.data.sampling import rows_per_epoch
from bgt_core.data.store import prepare
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError

COLUMNS = ("en", "fr", "de", "es")


@pytest.fixture(scope="module")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> Mixture:
    """English with French (two kinds, the files of one not side by side), German and Spanish."""
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
    store = prepare(sources, COLUMNS, tokenizer, folder / "store", min_tokens=1, valid_pairs=12, seed=1)
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
    assert mixture.strata[0].rows > 60 and mixture.strata[1].rows > 80  # 71 and 90, less what is held out


@pytest.mark.parametrize(("temperature", "ratio"), [(1, 10_000), (2, 100), (4, 10)])
def test_corpora_share_an_epoch_as_a_root_of_their_tokens(temperature: float, ratio: float) -> None:
    """10^8 tokens and 10^4: of a mean of 20 and of 10 tokens a row."""
    strata = [Stratum(("en", "fr"), "", 0, 5 * 10**6, 10**8), Stratum(("en", "de"), "", 5 * 10**6, 10**3, 10**4)]
    large, small = rows_per_epoch(strata, temperature, {})
    assert 20 * large + 10 * small == pytest.approx(10**8 + 10**4, abs=15)  # each is half a row off, at most
    assert 20 * large / (10 * small) == pytest.approx(ratio, rel=6e-4)


def test_a_kind_of_weight_3_counts_as_if_its_file_were_given_thrice() -> None:
    """At any temperature: kinds weigh within a corpus, and make it larger among corpora."""
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
        of_given = np.array(given) * 9_000 / 13_000  # an epoch has as many tokens as there are
        assert np.abs(np.array(weighed) - of_given).max() <= 1


def test_each_epoch_holds_the_shares_and_every_row_comes_equally_often(mixture: Mixture) -> None:
    """At any step: no row of a stratum was drawn twice more than another."""
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
            assert of_stratum.sum() == of_epoch * (step + 1) // updates  # the share, in each update too
    drawn = sum(rows * of.tokens / of.rows for rows, of in zip(expected, mixture.strata, strict=True))
    assert drawn == pytest.approx(mixture.tokens, rel=0.02)
    assert counts[mixture.strata[-1].first] > 3 * counts[mixture.strata[1].first]  # Spanish is small, and comes often


def test_two_strata_of_one_size_go_through_different_permutations() -> None:
    from bgt_core.data.sampling import draw

    strata = [Stratum(("en", lang), "", 500 * number, 500, 5_000) for number, lang in enumerate(("fr", "de"))]
    rows = draw(strata, [500, 500], 0, 10, seed=1)
    assert len(rows) == 100 and len(set(rows[:50] % 500) & set(rows[50:] % 500)) < 20


def same(left: object, right: object) -> bool:
    """Two batches."""
    return all(
        left.sides[column].ids.equal(side.ids) and left.anchor == right.anchor  # type: ignore[attr-defined]
        for column, side in right.sides.items()  # type: ignore[attr-defined]
    )


def test_any_step_alone_and_shared_by_workers_is_that_of_the_sequence(mixture: Mixture) -> None:
    batching = Batching(batch_tokens=300, micro_tokens=100, seed=2, temperature=2, micro_batches=2)
    far = 5 * batching.updates(mixture) + 1
    in_order = [batching.update(mixture, step) for step in range(far + 1)]
    again = open_corpus(mixture.folder)
    alone = batching.update(again, far)
    assert alone.pairs == in_order[far].pairs == sum(map(len, alone.batches.values()))
    shares = [batching.update(again, far, worker, 3) for worker in range(3)]
    joined = {number: batch for share in shares for number, batch in share.batches.items()}
    for number, batch in in_order[far].batches.items():
        assert same(alone.batches[number], batch) and same(joined[number], batch)
    assert all(share.pairs == alone.pairs for share in shares)
    assert sum(len(share.batches) for share in shares) == len(alone.batches)
    other = batching.update(mixture, far - 1)
    assert not all(same(batch, other.batches[n]) for n, batch in alone.batches.items() if n in other.batches)


def test_kinds_of_one_corpus_share_micro_batches(mixture: Mixture) -> None:
    """Short rows of either kind are computed together: as many micro-batches as corpora, where all fit."""
    update = Batching(batch_tokens=1_000, micro_tokens=10_000, seed=1, temperature=5).update(mixture, 0)
    assert sorted(tuple(batch.sides) for batch in update.batches.values()) == [("en", "de"), ("en", "es"), ("en", "fr")]


def test_without_temperature_and_weights_nothing_changes(mixture: Mixture) -> None:
    """Every row once an epoch, whatever its kind, and validation knows none of it."""
    plain = Batching(batch_tokens=150, micro_tokens=60, seed=1)
    epoch = np.concatenate([plain.rows(mixture, step) for step in range(plain.updates(mixture))])
    assert sorted(epoch) == list(range(len(mixture)))
    valid = open_corpus(mixture.folder, "valid")
    assert sum(len(batch) for batch in validation(valid, 60)) == len(valid)


def test_updates_smaller_than_the_number_of_corpora_are_never_empty(mixture: Mixture) -> None:
    batching = Batching(batch_tokens=1, micro_tokens=10, seed=1, temperature=5)
    assert min(len(batching.rows(mixture, step)) for step in range(batching.updates(mixture))) >= 1


def test_a_store_of_other_kinds_is_not_used_again(tmp_path: Path) -> None:
    source = tmp_path / "a.tsv"
    source.write_text("".join(f"sentence {n}\tphrase {n}\n" for n in range(30)), "utf-8")
    tokenizer = Tokenizer.train([f"sentence phrase {n}" for n in range(100)], 30, lowercase=True)
    options = {"min_tokens": 1, "valid_pairs": 5, "seed": 1}
    corpus = prepare([source], ("en", "fr"), tokenizer, tmp_path / "store", **options)
    assert corpus.strata == [Stratum(("en", "fr"), "", 0, len(corpus), corpus.tokens)]
    with pytest.raises(UsageError, match="other kinds"):
        prepare([Source(source, ("en", "fr"), kind="news")], ("en", "fr"), tokenizer, tmp_path / "store", **options)


def test_kinds_and_weights_are_parsed() -> None:
    source = parse_source("news/en-fr=x.tsv", COLUMNS)
    assert source == Source(Path("x.tsv"), ("en", "fr"), kind="news")
    assert parse_source(str(source)) == source
    assert parse_weights("news:3,docs:0.5") == {"news": 3.0, "docs": 0.5} and parse_weights("") == {}


@pytest.mark.parametrize("text", ["news", "news:", "news:0", "news:-1", "news:a", "a:1,a:2", "a b:1", "news:inf"])
def test_weights_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="kind_weights"):
        parse_weights(text)


@pytest.mark.parametrize("how", [{"temperature": 0}, {"temperature": -1.0}, {"weights": {"news": 0.0}}])
def test_a_temperature_or_weight_of_nothing_is_refused(how: dict) -> None:
    with pytest.raises(UsageError, match="above 0"):
        Batching(100, 100, 1, **how)

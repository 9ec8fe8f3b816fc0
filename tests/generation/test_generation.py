"""Beam search and sampling equal simple versions without cache and batches. Costs of translations equal those of
teacher forcing. Candidates generated in batches equal those of a loop over texts."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import bgt_core
from bgt_core import checkpoint, recipes
from bgt_core.contracts import BOS, EOS, PAD, UNK, Tokens
from bgt_core.data.text import Tokenizer
from bgt_core.errors import BgtError, DataError, UsageError
from bgt_core.generation.generate import BeamTranslator, candidates, from_vectors, generate
from bgt_core.generation.options import GREEDY, Beam, Sample, search_of
from bgt_core.generation.search import BLOCK, Hypothesis, decode, largest, n_best, sample
from bgt_core.grammar import Pair
from bgt_core.nets.bound import MemoryReader
from bgt_core.nets.decoder import TransformerDecoder
from bgt_core.nets.layers import make_embedding
from bgt_core.nets.lstm import LSTMDecoder
from bgt_core.nets.output import TiedOutput, UntiedOutput
from bgt_core.vectors.arrays import cosines

L = 5


@pytest.fixture(params=[0, 1, 2, "memory"], ids=["one", "two", "three", "memory"])
def decoder(request: pytest.FixtureRequest) -> TransformerDecoder:
    """A decoder with a vocabulary of 7 tokens, 3 of them words. Probabilities are similar, so texts may end early."""
    if request.param == "memory":
        return made(7, 0, memory=MemoryReader(first=1, bound=4, width=8, slots=3))
    return made(7, request.param)


def made(vocab_size: int, seed: int, spread: float = 1.5, memory: MemoryReader | None = None) -> TransformerDecoder:
    torch.manual_seed(seed)
    table = make_embedding(vocab_size, 8)
    layer = UntiedOutput(vocab_size, 8, L)
    decoder = TransformerDecoder(table, layer, L, layers=1, ffn_dim=12, heads=2, dropout=0.1, memory=memory)
    with torch.no_grad():
        for parameter in decoder.layer.parameters():  # type: ignore[attr-defined]
            parameter *= spread
    return decoder.double().eval()


def latents(count: int) -> Tensor:
    return torch.randn(count, L, dtype=torch.float64, generator=torch.Generator().manual_seed(9))


def log_chances(decoder: nn.Module, latent: Tensor, past: list[int]) -> Tensor:
    """Compute the log-probabilities of the token after `past` by teacher forcing; special tokens get -inf."""
    target = Tokens.of(torch.tensor([[*past, EOS]]), torch.ones(1, len(past) + 1, dtype=torch.bool), "en")
    scores = decoder("reconstruct", "en", latent[None], target).logits()[-1].detach()
    scores[[PAD, UNK, BOS]] = -torch.inf
    if not past:
        scores[EOS] = -torch.inf
    return scores.log_softmax(-1)


def beam(decoder: nn.Module, latent: Tensor, search: Beam, max_length: int) -> list[Hypothesis]:
    return [best for best, *_ in n_best(decoder, latent, search, 1, max_length)]


def looping(vocab_size: int, seed: int) -> TransformerDecoder:
    """A decoder that tends to repeat itself, because each token raises its own logit."""
    torch.manual_seed(seed)
    table = make_embedding(vocab_size, 16)
    output = UntiedOutput(vocab_size, 16, L)
    decoder = TransformerDecoder(table, output, L, layers=1, ffn_dim=12, heads=2, dropout=0.1)
    with torch.no_grad():
        output.hidden.weight += 0.3 * table.weight
        output.hidden.weight[EOS] *= 2
    return decoder.double().eval()


def repeats(sentence: list[int], rules: Beam | Sample) -> bool:
    """Return whether a sentence breaks a rule: an n-gram repeats, or a token occurs over `max_run` times in a row."""
    ngram, run = rules.no_repeat_ngram, rules.max_run
    ngrams = [tuple(sentence[start : start + ngram]) for start in range(len(sentence) - ngram + 1)]
    runs = [sentence[start : start + run + 1] for start in range(len(sentence) - run)]
    return bool((ngram and len(set(ngrams)) < len(ngrams)) or (run and any(len(set(part)) == 1 for part in runs)))


def straight(decoder: nn.Module, latent: Tensor, search: Beam, max_length: int) -> list[tuple[list[int], float]]:
    """Search by the definition of beam search, without a cache or batches: extend every hypothesis by all allowed
    tokens, and keep the `size` hypotheses with the largest total log-probability. Return them, the best first, each
    with the mean log-probability of its tokens."""
    kept: list[tuple[float, list[int]]] = [(0.0, [])]
    for _ in range(max_length):
        children = []
        for total, past in kept:
            if past[-1:] == [EOS]:
                children.append((total, past))
                continue
            for token, score in enumerate(log_chances(decoder, latent, past).tolist()):
                if token == EOS or not repeats([*past, token], search):
                    children.append((total + score, [*past, token]))
        kept = sorted(children, reverse=True)[: search.size]
    ranked = sorted(kept, key=lambda item: item[0] / len(item[1]) ** search.length_penalty, reverse=True)
    tokens = [[token for token in past if token != EOS] for _, past in ranked]
    return [(of, total / len(past)) for of, (total, past) in zip(tokens, ranked, strict=True) if total > -torch.inf]


@pytest.mark.parametrize("layer", [UntiedOutput, TiedOutput])
@pytest.mark.parametrize(
    ("vocab_size", "size", "max_length"), [(7, 1, 9), (7, 3, 9), (7, 20, 3), (41, 5, 6), (320, 4, 5)]
)
def test_a_beam_search_follows_the_definition(layer: type, vocab_size: int, size: int, max_length: int) -> None:
    """A beam search gives the best hypothesis of `straight`, for decoders whose sentences may end at once or never."""
    torch.manual_seed(vocab_size)
    table = make_embedding(vocab_size, 16)
    output = layer(table, L) if layer is TiedOutput else layer(vocab_size, 16, L)
    decoder = TransformerDecoder(table, output, L, layers=2, ffn_dim=12, heads=2, dropout=0.1).eval()
    with torch.no_grad():
        for parameter in decoder.layer.parameters():
            if len(parameter) == vocab_size:
                parameter[EOS] *= vocab_size / 5  # EOS is likely for some latents, unlikely for others
    z = 3 * latents(8).float()
    hypotheses = beam(decoder, z, Beam(size), max_length)
    for best, latent in zip(hypotheses, z, strict=True):
        tokens, mean = straight(decoder, latent, Beam(size), max_length)[0]
        assert best.tokens == tokens
        assert best.mean == pytest.approx(mean, rel=1e-5)
    assert len({len(best.tokens) for best in hypotheses}) > 1


@pytest.mark.parametrize("rules", [(2, 0), (3, 0), (0, 1), (0, 2), (3, 2), (1, 0), (0, 0)], ids=str)
@pytest.mark.parametrize("length_penalty", [0.0, 1.0, 2.0])
def test_a_beam_search_with_limits_follows_the_definition(rules: tuple[int, int], length_penalty: float) -> None:
    decoder, z = looping(9, 1), latents(6)
    search = Beam(4, *rules, length_penalty)
    written = n_best(decoder, z, search, 4, 8)
    for hypotheses, latent in zip(written, z, strict=True):
        assert [each.tokens for each in hypotheses] == [tokens for tokens, _ in straight(decoder, latent, search, 8)]
    unruled = Beam(4, length_penalty=length_penalty)
    free = [best.tokens for best in beam(decoder, z, unruled, 8)]
    assert any(repeats(sentence, search) for sentence in free) == any(rules)  # `free` breaks the rules


@pytest.mark.parametrize("rules", [Sample(no_repeat_ngram=2), Sample(max_run=1), Sample(max_run=2, top_p=0.8)], ids=str)
def test_draws_keep_the_rules(rules: Sample) -> None:
    decoder, z = looping(9, 1), latents(300)
    drawn = {}
    for search in (rules, replace(rules, no_repeat_ngram=0, max_run=0)):
        drawn[search] = sample(decoder, z, search, 8, torch.Generator().manual_seed(1))
    ruled, free = drawn.values()
    assert not any(repeats(sentence, rules) for sentence in ruled)
    assert any(repeats(sentence, rules) for sentence in free)


@pytest.mark.parametrize("size", [1, 4])
def test_the_beam_search_of_an_lstm_follows_the_definition(size: int) -> None:
    torch.manual_seed(3)
    table = make_embedding(41, 16)
    fuse = ("word", "hidden", "attention")
    decoder = LSTMDecoder(table, UntiedOutput(41, 16, L), L, layers=2, dropout=0.1, fuse=fuse).double().eval()
    with torch.no_grad():
        for parameter in decoder.layer.parameters():
            parameter *= 2
            parameter[EOS] *= 8  # EOS is likely for some latents, unlikely for others
    z = 3 * latents(8)
    hypotheses = beam(decoder, z, Beam(size), 6)
    for best, latent in zip(hypotheses, z, strict=True):
        tokens, mean = straight(decoder, latent, Beam(size), 6)[0]
        assert best.tokens == tokens
        assert best.mean == pytest.approx(mean, rel=1e-5)
    assert len({len(best.tokens) for best in hypotheses}) > 1


@pytest.mark.parametrize("vocab_size", [1, 7, BLOCK, 2 * BLOCK, 211, 400, 1000])
def test_the_largest_are_topks(vocab_size: int) -> None:
    """`largest` agrees with torch.topk, even with equal scores, blocks of -inf, and prime vocabulary sizes."""
    draw = torch.Generator().manual_seed(vocab_size)
    scores = torch.randn(20, vocab_size, generator=draw)
    scores[5:10] = scores[5:10].round()
    scores[10:15, : vocab_size // 2] = -torch.inf
    scores[15:18, 1:] = -torch.inf
    for size in {1, min(5, vocab_size), min(60, vocab_size)}:
        values, places = largest(scores, size)
        assert torch.equal(values, scores.topk(size).values)
        assert torch.equal(scores.gather(1, places), values)
        assert all(len(set(row)) == size for row in places.tolist())


def test_draws_equal_those_without_a_cache(decoder: TransformerDecoder) -> None:
    """With a seed, the samples are the same with a cache and with probabilities recomputed for each prefix."""
    z = latents(7)
    drawn_with_cache = sample(decoder, z, Sample(0.8, 0.9), 6, torch.Generator().manual_seed(5))
    generator, written = torch.Generator().manual_seed(5), [[] for _ in z]
    while len(written[0]) < 6 and not all(EOS in past for past in written):
        scores = [
            log_chances(decoder, latent, [p for p in past if p != EOS]) for latent, past in zip(z, written, strict=True)
        ]
        chances, order = (torch.stack(scores).float() / 0.8).softmax(-1).sort(-1, descending=True)
        chances[chances.cumsum(-1) - chances >= 0.9] = 0.0
        drawn = order.gather(1, torch.multinomial(chances, 1, generator=generator)).squeeze(1).tolist()
        written = [[*past, EOS if EOS in past else token] for past, token in zip(written, drawn, strict=True)]
    assert drawn_with_cache == [[token for token in past if token != EOS] for past in written]
    assert len({len(sentence) for sentence in drawn_with_cache}) > 1


@pytest.fixture(scope="module")
def model(saved: Path) -> bgt_core.Embedder:
    return bgt_core.load(saved)


SOURCES = ["The old dog sleeps.", "Anna reads a book!", "Is the car red?"]
STYLES = ["Well, my brother is here.", "Oh, the cat...", "So, we do not know."]


def test_the_same_seed_generates_the_same_text(model: bgt_core.Embedder) -> None:
    options = {"lang": "en", "search": Sample(), "max_length": 8}
    first = generate(model, SOURCES, STYLES, seed=1, **options)
    torch.randn(3)  # torch's global generator must not matter
    assert generate(model, SOURCES, STYLES, seed=1, **options) == first
    assert generate(model, SOURCES, STYLES, seed=2, **options) != first
    assert generate(model, SOURCES, STYLES, lang="en", search=GREEDY, seed=1, max_length=8) == generate(
        model, SOURCES, STYLES, lang="en", search=Beam(1), seed=2, max_length=8
    )


def test_wrong_arguments_are_refused(model: bgt_core.Embedder) -> None:
    with pytest.raises(UsageError, match="2 sources but 1 styles"):
        generate(model, SOURCES[:2], STYLES[:1], lang="en")
    with pytest.raises(UsageError, match="max_length 0"):
        generate(model, SOURCES, STYLES, lang="en", max_length=0)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (lambda: Beam(0), "beam 0 must be at least 1"),
        (lambda: Sample(temperature=0.0), "temperature 0.0"),
        (lambda: Sample(top_p=1.1), "top_p 1.1"),
        (lambda: Beam(no_repeat_ngram=-1), "no_repeat_ngram -1"),
        (lambda: Sample(max_run=-2), "max_run -2"),
        (lambda: Beam(length_penalty=-0.1), "length_penalty -0.1"),
        (lambda: Beam(length_penalty=float("nan")), "length_penalty nan"),
        (lambda: search_of(4, ["max_ran=2"]), "set 'max_ran': choose from .* Did you mean 'max_run'?"),
        (lambda: search_of(4, ["max-run=many"]), "set max-run=many: expected max_run=NUMBER"),
        (lambda: search_of(4, ["seed=1", "length_penalty=2"]), "length_penalty is only for beam search"),
    ],
)
def test_an_impossible_search_is_refused(search: Callable[[], object], message: str) -> None:
    with pytest.raises(BgtError, match=message) as error:
        search()
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("counts", "lang", "message"),
    [
        ({"semantic": 1, "language": 2}, "en", r"different numbers of rows \(1 semantic, 2 language\)"),
        ({"semantic": 1}, "en", "needs the latents semantic, language; 'language' is missing"),
        ({"semantic": 1, "language": 1, "style": 1}, "en", "latent style: "),
        ({"semantic": 1, "language": 1}, "de", "lang de: "),
    ],
)
def test_latents_must_be_those_of_the_decoder(
    model: bgt_core.Embedder, counts: dict[str, int], lang: str, message: str
) -> None:
    widths = {"semantic": 12, "language": 6, "style": 6}
    with pytest.raises(UsageError, match=message):
        decode(model, {name: np.zeros((count, widths[name]), np.float32) for name, count in counts.items()}, lang=lang)


@pytest.mark.parametrize("search", [Beam(3), Sample()])
def test_a_report_comes_before_each_token_and_can_end_the_search(model: bgt_core.Embedder, search: object) -> None:
    def report(tokens: int) -> None:
        seen.append(tokens)
        if tokens == 3:
            raise KeyboardInterrupt

    seen: list[int] = []
    vectors = {latent: model.embed(["Yes."], lang="en", latent=latent) for latent in model.latents}
    with pytest.raises(KeyboardInterrupt):
        decode(model, vectors, lang="en", search=search, report=report)
    assert seen == [0, 1, 2, 3]


SEARCH = Beam(4, no_repeat_ngram=2)


@pytest.fixture(scope="module")
def mixed(model: bgt_core.Embedder) -> dict:
    return {"semantic": model.embed(SOURCES, lang="en"), "language": model.embed(STYLES, lang="en", latent="language")}


@pytest.mark.parametrize(("second", "likelihood"), [(0.0, 0.0), (0.5, 0.3), (5.0, 0.0)])
def test_candidates_are_hypotheses_ranked_by_similarity_and_likelihood(
    model: bgt_core.Embedder, mixed: dict, second: float, likelihood: float
) -> None:
    weights = {"second_weight": second, "likelihood_weight": likelihood}
    ranked = candidates(model, mixed, lang="en", search=SEARCH, max_length=6, **weights)
    joined = torch.cat([torch.from_numpy(mixed[name]) for name in ("language", "semantic")], dim=1)
    orders = []
    with torch.no_grad():
        searched = n_best(model.model.decoder("en"), joined, SEARCH, 4, 6)
    for row, hypotheses in enumerate(searched):
        scores = {}
        for hypothesis in reversed(hypotheses):
            (text,) = model.tokenizer.decode([hypothesis.tokens])
            kept = {name: cosines(model.embed([text], lang="en", latent=name)[0], mixed[name][row]) for name in mixed}
            scores[text] = kept["semantic"] + second * kept["language"] + likelihood * hypothesis.mean
        assert {each.text for each in ranked[row]} == set(scores)
        assert [each.score for each in ranked[row]] == pytest.approx(sorted(scores.values(), reverse=True), rel=1e-4)
        orders.append([each.text for each in ranked[row]] != list(reversed(scores)))
    assert any(orders)  # reranking reorders some rows
    as_searched = candidates(model, mixed, lang="en", search=SEARCH, rerank=False, max_length=6)
    texts = [model.tokenizer.decode([each.tokens for each in hypotheses]) for hypotheses in searched]
    assert [[each.text for each in of_row] for of_row in as_searched] == [list(dict.fromkeys(each)) for each in texts]


def test_no_latents_give_no_candidates(model: bgt_core.Embedder, mixed: dict) -> None:
    assert candidates(model, {name: rows[:0] for name, rows in mixed.items()}, lang="en") == []


def test_vectors_of_any_library_are_accepted(model: bgt_core.Embedder, mixed: dict) -> None:
    settings = {"lang": "en", "search": Beam(1), "max_length": 5}
    expected = from_vectors(model, mixed["semantic"], **settings)
    assert from_vectors(model, torch.tensor(mixed["semantic"], requires_grad=True), **settings) == expected
    assert from_vectors(model, mixed["semantic"].tolist(), **settings) == expected
    given = {name: torch.tensor(of).double() for name, of in mixed.items()}
    assert candidates(model, given, **settings) == candidates(model, mixed, **settings)
    for wrong in (mixed["semantic"][0], ["abc"], None, {"semantic": mixed["semantic"]}):
        with pytest.raises(DataError, match=r"^vectors: "):
            from_vectors(model, wrong, **settings)


SIZES = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "ffn_dim": 24, "heads": 2, "vocab_size": 400}
LENGTH = 12  # maximum number of tokens of a source or of a translation


@pytest.fixture(scope="module")
def translator(
    tokenizer: Tokenizer, stirred: Callable[[nn.Module], nn.Module], tmp_path_factory: pytest.TempPathFactory
) -> bgt_core.Embedder:
    """A translator from French into English and German. All tokens are about equally likely, so texts may end early."""
    torch.manual_seed(0)
    recipe = recipes.configure("translator", SIZES | {"columns": ["fr", "en", "de"]})
    model = stirred(recipe.build(tokenizer))
    path = tmp_path_factory.mktemp("translator") / "model"
    checkpoint.save(path, recipe, model, tokenizer, step=1)  # type: ignore[arg-type]
    return bgt_core.load(path, "cpu", "fp32")


@pytest.fixture(scope="module")
def french(grammar: list[Pair], tokenizer: Tokenizer) -> list[str]:
    texts = [pair.texts["fr"] for pair in grammar]
    short = [text for text, ids in zip(texts, tokenizer.encode(texts), strict=True) if len(ids) <= LENGTH + 1]
    assert len({len(text) for text in short[:9]}) > 3
    return short[:9]


def cost(translator: bgt_core.Embedder, source: str, tokens: list[int]) -> float:
    """Return the cost of a translation in nats per token by teacher forcing. Special tokens have probability 0."""
    side = Tokens.pad(translator.tokenizer.encode([source]), "fr")
    target = Tokens.pad([tokens], "en")
    scores = translator.model.decoder("en")("translate", "en", translator.model.states(side), target).logits().detach()
    scores[:, [PAD, UNK, BOS]] = -torch.inf
    scores[0, EOS] = -torch.inf
    return -scores.log_softmax(-1)[range(len(tokens)), tokens].mean().item()


def test_translations_are_the_cheapest_first_each_with_its_cost(
    translator: bgt_core.Embedder, french: list[str]
) -> None:
    """If a beam contains the same text with different tokens, the text has the lowest cost of these hypotheses."""
    written = BeamTranslator(translator, beam=6, count=4, max_length=LENGTH).translate(french)
    for source, translations in zip(french, written, strict=True):
        states = translator.model.states(Tokens.pad(translator.tokenizer.encode([source]), "fr"))
        (hypotheses,) = n_best(translator.model.decoder("en"), states, Beam(6), 6, LENGTH)
        expected: dict[str, float] = {}
        for tokens in [each.tokens + [EOS] * (len(each.tokens) < LENGTH) for each in hypotheses]:
            (text,) = translator.tokenizer.decode([tokens])
            expected[text] = min(cost(translator, source, tokens), expected.get(text, math.inf))
        best = sorted(expected.items(), key=lambda pair: pair[1])[:4]
        assert [each.text for each in translations] == [text for text, _ in best]
        assert [each.cost for each in translations] == pytest.approx([value for _, value in best], rel=1e-5)
    assert {len(translations) for translations in written} == {4}


def test_an_empty_or_long_sentence_has_no_translation(translator: bgt_core.Embedder, french: list[str]) -> None:
    (length,) = map(len, translator.tokenizer.encode(french[:1]))
    long = " ".join(french[:2])
    written = BeamTranslator(translator, max_length=length - 1).translate(["", french[0], " ", long])
    assert [len(each) for each in written] == [0, 1, 0, 0]
    assert [len(each) for each in BeamTranslator(translator, max_length=length - 2).translate(french[:1])] == [0]
    assert BeamTranslator(translator).translate([]) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lang": "es"}, "translates fr to en or de, not fr to es"),
        ({"source_lang": "en", "lang": "de"}, "translates fr to en or de, not en to de"),
        ({"count": 6}, "beam 5 must be at least 6"),
    ],
)
def test_wrong_options_of_a_translator_are_refused(translator: bgt_core.Embedder, options: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        BeamTranslator(translator, **options)


def test_a_translator_embeds_its_source_language_and_has_no_latent_for_style(translator: bgt_core.Embedder) -> None:
    with pytest.raises(UsageError, match="no latent for style"):
        bgt_core.generate(translator, ["a"], ["b"], lang="fr")
    assert translator.embed(["un chat"], lang="fr").shape == (1, 16)
    with pytest.raises(UsageError, match="lang en: "):
        translator.embed(["one cat"], lang="en")

"""Test the start page: a sentence, its neighbours in both latents, and the words that express its style."""

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bgt_core
from app.core import address, controls, pairs, rows, state
from app.core.rows import wording
from app.sentence import compute, page
from app.sentence.compute import showing, taken_over, title
from bgt_core.data.examples import example_sentences
from bgt_core.vectors.arrays import cosine_similarity, cosines
from probes.results.store import write_cells
from tests.app.conftest import cells_of
from tests.close import FLOAT32, assert_close

Open = Callable[..., Any]
TEXT = "Do the cats sleep here?"


@pytest.fixture
def loaded(start: Callable[..., None]) -> state.Loaded:
    return state.model()


def shown(app: Any) -> str:
    """Return the text of everything that the page writes as HTML."""
    return unescape(" ".join(re.sub(r"<[^>]+>", "", html.proto.body) for html in app.get("html")))


@pytest.mark.parametrize(("latent", "langs"), [("semantic", ["en", "fr"]), ("language", ["en"])])
def test_the_nearest_are_of_all_examples(loaded: state.Loaded, saved: Path, latent: str, langs: list[str]) -> None:
    bgt = bgt_core.load(saved)
    own = bgt.embed(TEXT, lang="en", latent=latent)
    everything = []
    for lang in langs:
        texts = list(dict.fromkeys(text for (text,) in example_sentences([lang])))
        vectors = bgt.embed(texts, lang=lang, latent=latent)
        everything += [(float(cosines(own, vector)), text, lang) for text, vector in zip(texts, vectors, strict=True)]
    everything.sort(reverse=True)
    near = compute.nearest(loaded, TEXT, "en", latent)
    assert near["text"].head().tolist() == [text for _, text, _ in everything[:5]]
    assert near["lang"].head().tolist() == [lang for _, _, lang in everything[:5]]
    assert_close(near["cosine"], [cosine for cosine, _, _ in everything], FLOAT32, scale=1)


def test_latents_are_exchanged_as_the_library_does(loaded: state.Loaded, saved: Path, library: Callable) -> None:
    other, _ = compute.partner(replace(loaded, langs=("en",)), TEXT, "en")
    table = compute.written(loaded, [TEXT, other], [other, TEXT], "en")
    expected = [best.text for best in library([TEXT, other], [other, TEXT])]
    assert table["text"].tolist() == expected
    assert wording(other, "en")["contraction"] and other.endswith("?")
    of_german = ("Hast du Zeit?", "Du hast Zeit.", "Wir haben Zeit.")
    styles = [compute.partner(replace(loaded, langs=("de",)), text, "de")[0] for text in of_german]
    assert styles == ["Haben Sie abgenommen?", "Bitte gehen Sie beiseite.", "Sei du selbst."]
    written, meant = bgt_core.load(saved).embed([expected[0], TEXT], lang="en")
    assert_close(table["meaning"].iloc[0], cosines(written, meant), FLOAT32, scale=1)


def test_an_english_sentence_is_written_in_both_french_forms_of_address(opened: Open) -> None:
    app = opened("main")
    titles = [text.value for text in app.markdown if "Your meaning, in the style of" in text.value]
    assert len(titles) == 2 and all(form in title for form, title in zip(compute.FORMS[False], titles, strict=True))
    keep = next(pills for pills in app.button_group if pills.key.startswith("keep") and pills.key != "keep sentence")
    app.put(keep, keep.options[0])
    source, kept = app.session_state["own"].typed
    assert [source["text"][0], kept["lang"][0]] == ["You are late.", "fr"] and kept["text"][0] in shown(app)
    app.put(app.text_input(key="other"), "Il est tard.")
    assert any("The meaning of “" in text.value and "Il est tard." in text.value for text in app.markdown)


def test_pairs_show_what_each_latent_holds_and_a_click_puts_one_in(
    opened: Open, loaded: state.Loaded, saved: Path
) -> None:
    bgt = bgt_core.load(saved)
    measured = pairs.of_start_page(loaded)
    assert [pair for pair, *_ in measured] == list(pairs.PAIRS)
    for pair, _, shown_cosines in measured:
        for latent, cosine in shown_cosines.items():
            left = bgt.embed(pair.text, lang=pair.lang, latent=latent)
            right = bgt.embed(pair.other, lang=pair.other_lang, latent=latent)
            assert_close(cosine, cosines(left, right), FLOAT32, scale=1)
        assert ("language" in shown_cosines) == (pair.lang == pair.other_lang)
    app = opened("main")
    vectors = bgt.embed(compute.usual("en")["text"].tolist(), lang="en", latent="language")
    every = cosine_similarity(vectors, vectors)[~np.eye(len(vectors), dtype=bool)]
    random = compute.random_pairs(loaded, "en", "language")
    mean, (low, high) = random.mean(), np.quantile(random, page.RANGE)
    assert low < every.mean() < high and abs(mean - every.mean()) < 4 * every.std() / np.sqrt(compute.DRAWN)
    assert f"random pairs: {mean:z.2f}; of 95% of {len(random):,}: {low:z.2f} to {high:z.2f}." in shown(app)
    cosine = measured[-1][2]["language"]
    percent = 100 * ((random < cosine).mean() + (random == cosine).mean() / 2)
    assert f"language {cosine:z.2f}{percent if percent == 100 else min(percent, 99.9):.3g} %" in shown(app)
    next(button for button in app.button if button.label == "Try it").click()
    app.run()
    assert tuple(app.session_state[name] for name in address.FIELDS) == pairs.PAIRS[0]


def test_a_text_far_from_its_source_is_marked_across_languages(loaded: state.Loaded, saved: Path) -> None:
    bgt, translations = bgt_core.load(saved), zip(*example_sentences(("en", "fr")), strict=True)
    english, french = (bgt.embed(side, lang=lang) for lang, side in zip(("en", "fr"), translations, strict=True))
    usual = state.usual_cosine(loaded, ("en", "fr"))
    assert (cosines(english, french) < usual).mean() == pytest.approx(0.2, abs=0.005)
    given = [(lang, cosine) for lang in ("en", "fr") for cosine in (usual - 0.1, usual + 0.1)]
    marked = [bool(state.verdicts(loaded, "Hi.", "en", "Oh.", lang, cosine)) for lang, cosine in given]
    assert marked == [False, False, True, False]


def test_the_page_shows_both_lists_and_all_that_is_written(opened: Open, loaded: state.Loaded) -> None:
    app = opened("main")
    assert app.title[0].value == "A sentence, in two parts"
    app.text_input(key="sentence").set_value(TEXT)
    text = shown(app.run())
    for latent in loaded.latents:
        near = compute.nearest(loaded, TEXT, "en", latent).head()
        assert all(each in text for each in near["text"])
        alike = compute.alike(TEXT, "en", near).sum()  # the list's heading counts neighbours that share a property
        assert f"The same: closing mark, {alike['mark']} of 5" in text
    assert [head.value for head in app.subheader] == [
        "Reconstruction: written from its own two latents",
        "Recombination: one of its latents exchanged",
        "The effect of each word",
    ]
    for by_gradients in (False, True):
        effects = compute.effects(loaded, TEXT, "en", by_gradients)
        assert effects["word"].tolist() == ["Do", "the", "cats", "sleep", "here", "?"]
        assert all(f"{row.word} {row.semantic:z.2f} {row.language:z.2f}" in text for row in effects.itertuples())
        text = shown(app.put(app.segmented_control(key="words_by"), "Gradients"))
    assert not controls.by_gradients([replace(loaded, reader=bgt_core.open_encoder("baseline:words"))])


def test_the_heading_tells_how_it_was_trained_and_what_stored_probes_say(
    start: Callable, opened: Open, saved: Path, tmp_path: Path
) -> None:
    assert "In training, translations share the" in (text := shown(opened("main"))) and "Linear probes" not in text
    model = Path(shutil.copytree(saved, tmp_path / "model"))
    (model / "probes").mkdir()
    write_cells(model / "probes" / "en.parquet", cells_of("model"))
    start("--model", model)
    text = shown(opened("main"))
    assert "length and 1 more better from the language latent: 70% right (semantic latent 40%, most frequent" in text
    assert "answer 20%, best baseline 20%); no property that was tested better from the semantic latent." in text


@pytest.mark.parametrize(
    ("text", "lang", "values", "words"),
    [
        ("Vous êtes en retard.", "fr", {"address": "vous"}, {"vous"}),
        ("Asseyez-vous.", "fr", {"address": "vous"}, {"asseyez-vous"}),
        ("Est-ce que tu viens ?", "fr", {"address": "tu", "question-form": "est-ce que"}, {"est-ce", "que", "tu"}),
        ("Il dort ?", "fr", {"question-form": "intonation"}, set()),
        ("I haven't seen you.", "en", {"contraction": "short"}, {"haven't"}),
        ("I have not seen him.", "en", {"contraction": "full"}, {"have", "not"}),
        ("Wann kommen Sie?", "de", {"address": "Sie"}, {"kommen", "sie"}),
        ("私は学生です。", "ja", {"politeness": "polite"}, set()),  # Japanese has no spaces between words
        ("Il pleut.", "fr", {}, set()),
    ],
)
def test_the_words_that_show_a_property(text: str, lang: str, values: dict, words: set) -> None:
    assert wording(text, lang) == values and showing(text, lang, values) == words


def test_what_a_generated_text_has_from_the_style_alone() -> None:
    style = "Comment allez-vous ?"
    assert taken_over("vous êtes en retard.", "fr", style, "You are late.", "en") == {"address": "vous"}
    assert taken_over("vous êtes en retard.", "fr", style, "Vous êtes fatigué.", "fr") == {}
    assert taken_over("tu es en retard.", "fr", style, "You are late.", "en") == {}
    asked = taken_over("veux-tu venir ?", "fr", "Viens-tu ?", "Do you want to come?", "en")
    assert asked == {"address": "tu"}  # inversion occurs in questions of any style, so it isn't counted as taken over
    assert [title("address", "vous"), title("contraction", "short")] == ["vous", "short form"]


def test_the_nearest_sentences_may_all_be_in_another_language() -> None:
    english = rows.table(["Are you here?"], "en", [""]).assign(length=3)
    assert page.in_common("Es-tu là ?", "fr", english, english) == "The same: closing mark, 1 of 1 (100% of all)."

"""Curves of a training run."""

from __future__ import annotations

from app.card import chart
from app.core import theme


def test_curves_show_the_reports_on_held_out_pairs() -> None:
    kl = {"kl/semantic": 3.0, "kl/en": 2.0, "kl/fr": 1.0}
    log = [{"kind": "train", "step": 1, "loss": 9.0}, *({"kind": "valid", "step": n, "elbo": -n, **kl} for n in (2, 4))]
    (elbo,) = chart.elbo_curve(log).data
    assert (list(elbo.x), list(elbo.y)) == ([2, 4], [-2, -4])
    drawn = {trace.name: trace for trace in chart.kl_curves(log, ("en", "fr")).data}
    values = {name: trace.y[0] for name, trace in drawn.items()}
    assert values == {"Semantic latent": 3.0, "English": 2.0, "French": 1.0}


def test_latents_without_a_name_of_their_own_have_curves() -> None:
    kl = {"kl/semantic/a": 3.0, "kl/syntactic/a": 2.0}
    log = [{"kind": "valid", "step": step, "elbo": -1.0, **kl} for step in (2, 4)]
    drawn = {trace.name: trace.y[0] for trace in chart.kl_curves(log, ("en",)).data}
    assert drawn == {"semantic/a": 3.0, "syntactic/a": 2.0}


def test_every_kl_has_a_panel_of_its_own() -> None:
    langs = ("en", "fr", "de")
    kl = {"kl/semantic": 800.0, "kl/en": 5.0, "kl/fr": 5.1, "kl/de": 0.2}
    log = [{"kind": "valid", "step": step, "elbo": -step, **kl} for step in (2, 4)]
    traces = chart.kl_curves(log, langs).data
    assert len({(trace.xaxis, trace.yaxis) for trace in traces}) == len(traces) == 4
    colours = [theme.latent_colour("semantic", "light"), *(theme.lang_colour(lang, "light") for lang in langs)]
    assert [trace.line.color for trace in traces] == colours

"""The formulas that `make mutants` changes, and the tests that look at each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

EVALUATION, PROBES = "bgt_core/evaluation", "probes/measures"


class Formula(NamedTuple):
    """Functions that hold a formula, "module:pattern of their names", and the tests that look at them.

    Tests are files or beginnings of the names of tests, as pytest has them.
    """

    functions: str
    tests: Sequence[str]


def under(folder: str, *tests: str) -> list[str]:
    return [f"tests/{folder}/test_{test}" for test in tests]


OF_BOOTSTRAP = under(
    "evaluation",
    *(
        f"bootstrap.py::test_{test}"
        for test in "a_r each every how e_t is_ p_ ranks two weights what wilsons holm_b".split()
    ),
    "bootstrap.py::test_an_interval_is",
    "comparison.py",
)
FORMULAS = {
    "Gaussian posteriors: KL, densities, draws": Formula(
        "bgt_core/posterior/__init__:", under("posterior", "posterior")
    ),
    "von Mises-Fisher posteriors": Formula("bgt_core/posterior/(vmf|bessel):", under("posterior", "vmf")),
    "distances of posteriors": Formula("bgt_core/posterior/distances:", under("posterior", "distances")),
    "ELBO and its weights": Formula("bgt_core/objectives/elbo:", under("objectives", "elbo")),
    "margin": Formula("bgt_core/objectives/(margin|altered):", under("objectives", "margin", "altered", "objectives")),
    "softmax over translations, distillation": Formula(
        "bgt_core/objectives/(contrast|composition|distillation):",
        under("objectives", "contrast", "composition", "distillation", "objectives"),
    ),
    "cross-entropy and sums of objectives": Formula(
        "bgt_core/objectives/(cross_entropy|combine):",
        under("objectives", "cross_entropy", "combine"),
    ),
    "pooling": Formula("bgt_core/nets/pooling:", under("nets", "pooling", "memory")),
    "binding": Formula("bgt_core/nets/binding:", under("nets", "binding")),
    "language means": Formula("bgt_core/nets/erasing:", under("nets", "erasing")),
    "bootstrap and intervals": Formula(f"{EVALUATION}/bootstrap:(?!.*x_holm)", OF_BOOTSTRAP),
    "Holm": Formula(f"{EVALUATION}/bootstrap:x_holm", OF_BOOTSTRAP),
    "differences of systems": Formula(f"{EVALUATION}/comparison:", under("evaluation", "comparison")),
    "similarities of systems": Formula(f"{EVALUATION}/systems:", under("evaluation", "systems")),
    "retrieval": Formula(
        f"{EVALUATION}/tasks/retrieval:x_(embed_distinct|hits_of|by_margin|on_own_line|precision_at_1)",
        under("evaluation/tasks", "retrieval"),
    ),
    "translation and transfer scores": Formula(
        f"{EVALUATION}/(translation|transfer):", under("evaluation", "translation", "transfer")
    ),
    "back-translation statistics": Formula(
        f"{EVALUATION}/backtranslation:(?!.*(as_dict|table|plain))", under("evaluation", "backtranslation")
    ),
    "triples": Formula(
        f"{EVALUATION}/tasks/triples:x_(paraphrase_nearer|rows_by_kind)",
        under("evaluation/tasks", *(f"triples.py::test_{test}" for test in ("each", "many", "shares", "triples_of"))),
    ),
    "fidelity": Formula(
        f"{EVALUATION}/(fidelity/(measures|kept):|tasks/(minimal_pairs:|transfer:x_changes))",
        under("evaluation/fidelity", "kept", "measures") + under("evaluation/tasks", "minimal_pairs", "transfer"),
    ),
    "checks of generated text": Formula(f"{EVALUATION}/fidelity/checks:", under("evaluation/fidelity", "checks")),
    "classes of words, ledger": Formula(
        f"{EVALUATION}/(wordclass|tasks/ledger):(?!.*load)",
        under("evaluation", "wordclass") + under("evaluation/tasks", "ledger"),
    ),
    "surface": Formula(f"{EVALUATION}/tasks/surface:(?!.*load)", under("evaluation/tasks", "surface")),
    "contrasts of trainings": Formula(f"{EVALUATION}/contrasts:", under("evaluation", "contrasts")),
    "pairs": Formula(
        f"{EVALUATION}/(pairs/(measures|baselines)|tasks/pairs):(?!.*(load|statistic))",
        under("evaluation/pairs", "measures", "baselines") + under("evaluation/tasks", "pairs"),
    ),
    "STS": Formula(
        f"{EVALUATION}/(sts/(score|hard)|tasks/sts):(?!.*(x_explain|x_note|__str__|load|statistic))",
        under("evaluation/sts", "score", "hard") + under("evaluation/tasks", "sts"),
    ),
    "syntax": Formula(
        f"{EVALUATION}/syntax/(edit_distance|measures|pairing|neighbours):",
        under("evaluation/syntax", "pairing", *(f"measures.py::test_{test}" for test in ("all", "dep", "the", "a_r"))),
    ),
    "codelength and V-information": Formula(f"{PROBES}/(mdl|information):", under(PROBES, "information")),
    "control tasks and learning curves": Formula(
        f"{PROBES}/(control_task|controls):",
        under(PROBES, "summary", *(f"controls.py::test_{test}" for test in ("keys", "a_key", "shuffling"))),
    ),
    "trends with distance": Formula(f"{PROBES}/distance:", under(PROBES, "distance")),
    "erasure": Formula(f"{PROBES}/erasure:", under(PROBES, "erasure")),
    "significance": Formula(
        f"{PROBES}/significance:",
        under(
            PROBES,
            *(
                f"significance.py::test_{test}"
                for test in "a_p an_ boot holm no_ of_ resamples seeds the_error with".split()
            ),
            "summary",
        ),
    ),
    "training and testing a probe": Formula(
        f"{PROBES}/(measure|language|senteval_protocol|splits|study|config):", under(PROBES, "measure", "splits")
    ),
    "scores of probes": Formula(f"{PROBES}/(summary|warnings):", under(PROBES, "summary")),
}

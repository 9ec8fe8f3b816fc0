"""Write your own evaluation: is a sentence nearer to a copy with another closing mark than to another sentence?

    python examples/your_evaluation.py

To make the evaluation a command of `bgt evaluate`, put this file in your package and add the entry point below; or put
this file into bgt_core/evaluation/tasks and add the line `TASK = Marks`.

    [project.entry-points."bgt.evaluations"]
    marks = "your_evaluation:Marks"
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np

from bgt_core import evaluate, open_encoder
from bgt_core.contracts import SentenceEncoder
from bgt_core.data.examples import example_sentences
from bgt_core.evaluation.comparison import Statistic
from bgt_core.evaluation.systems import systems
from bgt_core.evaluation.task import Lang, Task, one_path
from bgt_core.tables import markdown


class MarksKey(NamedTuple):
    """The name of a score; its fields are the first columns of the printed table."""

    mark: str
    sentences: int


@dataclass(frozen=True)
class Marks(Task[Sequence[str]]):
    """Marks: is a sentence nearer to a copy with another closing mark than to another sentence?"""

    data = "A file with one sentence per line."

    marks: Annotated[str, "The closing marks of the copies."] = "!"
    lang: Lang = "en"

    def load(self, paths: Sequence[Path], *, seed: int) -> list[str]:
        """Read the sentences to evaluate from a file."""
        return one_path(paths, "one file").read_text("utf-8").splitlines()

    def statistic(self, items: Sequence[str], encoders: Mapping[str, SentenceEncoder], *, seed: int) -> Statistic:
        """Score each sentence 1 (right) or 0, from which the toolkit computes means, intervals and differences."""
        rows = systems(encoders, [self.lang])
        others = [*items[1:], items[0]]
        hits = {}
        for mark in self.marks:
            own = [text.rstrip(".?!") + mark for text in items]
            near, far = (
                np.stack([row.similarities(items, side, self.lang, self.lang) for row in rows])  # (systems, N)
                for side in (own, others)
            )
            hits[MarksKey(mark, len(items))] = (near > far).astype(float)
        return Statistic(systems=[row.name for row in rows], hits=hits, about=f"{len(items)} sentences")


def main() -> None:
    sentences = [text for (text,) in example_sentences(["en"])[:100]]
    encoders = {"bgt": open_encoder(), "words": open_encoder("baseline:words")}
    result = evaluate(Marks(marks="?!"), encoders, sentences, resamples=500)
    print("\n".join(markdown(result.table())))


if __name__ == "__main__":
    main()

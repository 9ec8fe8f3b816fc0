"""Write your own probing task: from which latent can a probe predict whether a sentence is negated?

    python examples/your_probing_task.py --lang fr

By default, the sentences are the built-in example sentences; --text FILE uses the sentences of a file, one per line. If
you run commands in the folder of this file, they accept the task, too:

    bgt-probe --lang en --task python:your_probing_task:DENIAL

To add a task to the toolkit, move everything above `main` to a file in probes/tasks; then `bgt-probe --task denial`
finds it.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from random import Random

import bgt_core
import probes
from probes.task import Items, ProbeTask

WORDS = {"en": r"\b(not|never)\b|n't\b", "fr": r"\bne\b|\bn'"}


def build(sentences: Sequence[str], lang: str, rng: Random) -> Items:
    """Sample as many sentences with a negation as without, and label them.

    Sentences of one group are in the same split (train, dev or test). Here, each sentence is a group by itself.
    """
    denies = [re.search(WORDS[lang], sentence.lower()) is not None for sentence in sentences]
    rows: dict[bool, list[int]] = {True: [], False: []}
    for row in rng.sample(range(len(sentences)), len(sentences)):
        rows[denies[row]].append(row)
    size = min(map(len, rows.values()))
    chosen = sorted(rows[True][:size] + rows[False][:size])
    labels = ["denies" if denies[row] else "affirms" for row in chosen]
    return Items([sentences[row] for row in chosen], labels, groups=chosen)


DENIAL = ProbeTask("denial", "does the sentence deny something?", {"text": build}, langs=tuple(WORDS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lang", choices=list(WORDS), default="en")
    parser.add_argument("--text", type=Path, help="one sentence per line; by default the example sentences")
    parser.add_argument("--items", type=int, default=2_000, help="maximum number of labelled sentences")
    parser.add_argument("--seeds", type=int, default=5, help="number of probes, each tested on another tenth of items")
    options = parser.parse_args()
    sentences = options.text.read_text(encoding="utf-8").splitlines() if options.text else None
    model = bgt_core.load()
    config = probes.ProbeConfig(max_items=options.items, seeds=options.seeds)
    result = probes.run(model, DENIAL, sentences, lang=options.lang, config=config)
    print(f"{DENIAL.about} {options.lang}, accuracy x 100 [95% interval], {result.rows[0].n_test} test sentences")
    for row in result.rows:
        print(f"{row.latent:>10}  {100 * row.accuracy:5.1f} [{100 * row.ci_low:.1f}, {100 * row.ci_high:.1f}]")


if __name__ == "__main__":
    main()

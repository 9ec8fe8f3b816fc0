"""Train and measure the papers' comparisons again: their description as data, and the code that runs them.

    `comparisons` -> `trainings` + `datasets`: folders -> `measure` -> `results`: rows, and a Markdown page

A comparison describes the systems to train, the paper's numbers for them, and the paper's claims. Each training runs
and is measured once, for all comparisons that include it.
"""

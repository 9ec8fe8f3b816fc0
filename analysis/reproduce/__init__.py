"""The paper's comparisons, trained and measured again: one literal listing of them, and what runs it.

    `comparisons` -> `trainings` + `datasets`: folders -> `measure` -> `results`: rows -> `pages`: Markdown

A comparison says which systems it trains, what numbers the paper reports for them, and what it claims. A training of
one system runs and is measured once, for all comparisons that include it.
"""

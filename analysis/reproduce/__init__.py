"""Repeat the papers' comparisons: data that describe them, and the code that trains and measures them.

    `comparisons` -> `trainings` + `datasets`: folders -> `measure` -> `results`: rows, and a Markdown page

A comparison lists the systems to train, the paper's numbers for them, and the paper's claims. If several comparisons
include a training, it runs and is measured only once.
"""

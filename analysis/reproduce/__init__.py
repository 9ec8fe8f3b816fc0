"""Repeat the papers' comparisons: train the systems, measure them, and write a page of results.

`comparisons` reads the description of each comparison: the systems to train, the paper's numbers for them, and the
paper's claims. `trainings` trains the systems on the data from `datasets`. `measure` computes the scores of each
training, and `results` collects them into rows and a Markdown page. If several comparisons include the same training,
it is run and measured only once.
"""

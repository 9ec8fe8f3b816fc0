"""Evaluations of any encoder: `evaluate` runs a task of `tasks` on some systems and data, and gives a `Result`.

    task.load(files) -> items -> task.statistic(items, encoders) -> `compare`: the bootstrap -> Result

They know an embedder and never a model class.
"""

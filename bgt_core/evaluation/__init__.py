"""Evaluate any encoder: `evaluate` runs a task of `tasks` on systems and data, and returns a `Result`.

    task.load(files) -> items -> task.statistic(items, encoders) -> `compare`: the bootstrap -> Result

Tasks use an embedder, and never a model class.
"""

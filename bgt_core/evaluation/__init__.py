"""Evaluate any encoder: `evaluate` runs a task of `tasks` on encoders and data, and returns a `Result`.

    task.load(files) -> items -> task.statistic(items, encoders) -> Statistic -> `compare` by the bootstrap -> Result

To add an evaluation, add one file to `tasks`; the other files here have the parts that tasks share. Tasks use encoders,
and never a model class.
"""

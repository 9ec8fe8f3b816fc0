"""Evaluate any encoder: `evaluate` runs a task of `tasks` on systems and data, and returns a `Result`.

    task.load(files) -> items -> task.statistic(items, encoders) -> `compare`: the bootstrap -> Result

A new evaluation is one file in `tasks`; the other files here have the parts that tasks share. Tasks use encoders, and
never a model class.
"""

"""Evaluate any encoder: `evaluate` runs a task of `tasks` on encoders and data, and returns a `Result`.

    task.load(files) -> items -> task.statistic(items, encoders) -> Statistic -> `compare` by the bootstrap -> Result

To add an evaluation, add one file to `tasks`. The other files of this package contain the code that tasks share. A task
depends only on the interface of encoders, never on a model class.
"""

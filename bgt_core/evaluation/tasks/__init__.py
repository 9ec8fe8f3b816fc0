"""The evaluations of `bgt evaluate`: one module for each task, with the task's name; its `TASK` is the task's class."""

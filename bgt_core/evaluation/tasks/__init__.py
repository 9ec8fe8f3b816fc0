"""The tasks of `bgt evaluate`. Each has a module of the same name, whose `TASK` is the class of the task."""

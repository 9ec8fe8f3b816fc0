"""The evaluations of `bgt evaluate`: one module per task, with its name and its class as `TASK`."""

"""The evaluations of `bgt evaluate`: a module each, named as the task, with its class as `TASK`."""

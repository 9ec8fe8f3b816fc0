"""`python -m bgt_core` is `bgt`, in a form that `torchrun -m` can start."""

from bgt_core.cli import main

main()

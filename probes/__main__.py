"""Run the command `bgt-probe` by `python -m probes`."""

from functools import partial

from bgt_core.__main__ import main as start

main = partial(start, "probes.cli", "bgt-probe")

if __name__ == "__main__":
    main()

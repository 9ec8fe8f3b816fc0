"""`python -m bgt_core` runs `bgt`; `torchrun -m bgt_core` runs `bgt` in several processes."""

import sys
from importlib import import_module


def main(module: str = "bgt_core.cli", program: str = "bgt") -> None:
    """Import a module and run its function `main`; if the user interrupts this, print one line, not a traceback."""
    try:
        import_module(module).main()
    except KeyboardInterrupt:
        print(f"{program}: Stopped; nothing was written.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()

"""`python -m bgt_core` is `bgt`, in a form that `torchrun -m` can start."""

from __future__ import annotations

import sys
from importlib import import_module


def main(module: str = "bgt_core.cli", program: str = "bgt") -> None:
    """Import and run a program; an interruption, of the import too, is one line."""
    try:
        import_module(module).main()
    except KeyboardInterrupt:
        print(f"{program}: Stopped; nothing was written.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()

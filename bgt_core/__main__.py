"""`python -m bgt_core` runs `bgt`; `torchrun -m bgt_core` starts it in several processes."""

import sys
from importlib import import_module


def main(module: str = "bgt_core.cli", program: str = "bgt") -> None:
    """Import and run a program. An interruption, even of the import, prints one line."""
    try:
        import_module(module).main()
    except KeyboardInterrupt:
        print(f"{program}: Stopped; nothing was written.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()

"""`python -m probes` is `bgt-probe`."""

from bgt_core.__main__ import main as start


def main() -> None:
    """The `bgt-probe` command."""
    start("probes.cli", "bgt-probe")


if __name__ == "__main__":
    main()

"""Run the command `bgt-probe` by `python -m probes`."""

from bgt_core.__main__ import main as start


def main() -> None:
    """Run the command `bgt-probe`."""
    start("probes.cli", "bgt-probe")


if __name__ == "__main__":
    main()

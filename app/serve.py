"""Start the app's server, and prepare the start page while the browser loads Streamlit's scripts.

Streamlit imports the app only when a browser asks for a page. To show the page sooner, a thread imports torch and the
modules of the start page before a browser asks, and opens the default model.
"""

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Thread

from bgt_core.errors import BgtError
from bgt_core.startup import importing

START_PAGE = (  # modules that the start page imports when it is drawn; they import all other modules that it needs
    "app.main", "app.core.results", "app.card.page", "bgt_core.generation.generate", "PIL.Image",
)  # fmt: skip


def serve(flags: Sequence[str], words: Sequence[str]) -> None:
    """Run the app until the user presses Ctrl+C. `flags` are Streamlit's options, `words` those of the app."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # idle threads of torch sleep; polling is slow on busy cores
    import numpy  # noqa: F401  # first, because plotly, which Streamlit imports, fails if NumPy is only half imported

    Thread(target=prepare, daemon=True).start()
    from streamlit.web import cli

    cli.main(["run", str(Path(__file__).with_name("main.py")), *flags, "--", *words], prog_name="bgt app")


def prepare() -> None:
    """Import torch at once. When the server runs, import the start page, and open the default model."""
    with importing():
        import_module("bgt_core.embedder")
        while not (runtime := sys.modules.get("streamlit.runtime")) or not runtime.exists():
            time.sleep(0.01)  # wait: until the server runs, it imports modules that the start page needs, too
        for name in START_PAGE:
            import_module(name)
        with suppress(BgtError):  # the start page explains the error
            sys.modules["app.core.state"].default()

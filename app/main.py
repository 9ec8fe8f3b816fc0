"""The app's entry: `streamlit run app/main.py`, with `-- --model PATH` (any number) for other checkpoints."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Streamlit puts this folder on the path, where the page `probes` would hide the package; `app` is in the parent folder.
# Sessions do this side by side: if the path were assigned, what other threads add or remove meanwhile would be lost.
for part in [*sys.path]:
    if Path(part).resolve() == HERE:
        with suppress(ValueError):  # another session has removed it
            sys.path.remove(part)
if str(HERE.parent) not in sys.path:
    sys.path.insert(0, str(HERE.parent))

from app import shell  # noqa: E402

if __name__ == "__main__":
    shell.main()

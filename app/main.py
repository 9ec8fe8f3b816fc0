"""The app's entry point: `streamlit run app/main.py`. To open other checkpoints, add `-- --model PATH` (repeatable)."""

import sys
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Streamlit adds this folder to `sys.path`, where its subfolder `probes` would hide the package `probes`. Sessions run
# these lines concurrently; assigning a new list to `sys.path` would undo the changes of other threads.
for part in [*sys.path]:
    if Path(part).resolve() == HERE:
        with suppress(ValueError):  # raised if another session has already removed the folder
            sys.path.remove(part)
if str(HERE.parent) not in sys.path:
    sys.path.insert(0, str(HERE.parent))

from app import shell  # noqa: E402

if __name__ == "__main__":
    shell.main()

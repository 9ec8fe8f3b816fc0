"""The app's widgets for notebooks: `from bgt_core.notebook import maps, pairs`, after `pip install 'bgt[notebook]'`."""

import sys
from importlib import import_module

from bgt_core.cli.models import PLACES

if not PLACES[0].is_file():  # in an installed wheel, the app is a folder inside this package
    sys.path.insert(0, str(PLACES[1].parents[1]))
_widgets = import_module("app.notebook")
maps, pairs = _widgets.maps, _widgets.pairs

"""What only a browser can tell: it opens, it links both maps, it fits the window, it stays on this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import settle

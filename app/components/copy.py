"""A button that copies the link to the present view."""

from __future__ import annotations

from app.address import link
from app.components import mounted

_copy = mounted("copy")


def copy_link() -> None:
    """The link holds what is set on the page, its selection included."""
    _copy(data={"link": link()}, key="copy_link", width="content")

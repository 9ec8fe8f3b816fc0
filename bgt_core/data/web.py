"""Requests to servers, with errors that name the address, the reason and the way out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bgt_core.errors import NotFound

if TYPE_CHECKING:
    import requests

TIMEOUT = (10.0, 60.0)  # seconds: to connect, and between two blocks
HEADERS = {"Accept-Encoding": "identity", "User-Agent": "bgt"}  # as stored, so that sizes fit the file


def remote_size(url: str) -> int | None:
    """The size of the file at `url`, or None if the server doesn't give it; NotFound if the file does not exist."""
    length = request("HEAD", url).headers.get("Content-Length", "")
    return int(length) if re.fullmatch(r"[0-9]{1,18}", length) else None


def request(method: str, url: str, **options: Any) -> requests.Response:
    """Send a request; NotFound if the server can't be reached, refuses it, or redirects it to an unencrypted address.

    Proxies and certificates come from the environment.
    """
    import requests

    with explained(url):
        response = requests.request(method, url, headers=HEADERS, timeout=TIMEOUT, allow_redirects=True, **options)
        response.raise_for_status()
    for hop in [*response.history, response]:
        if url.startswith("https:") and not hop.url.startswith("https:"):
            raise NotFound(f"{url}: redirects to {hop.url}, which is not encrypted; nothing was read.")
    return response


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Turn the errors of requests into NotFound, with the reason and a way out."""
    import requests
    import urllib3

    try:
        yield
    except requests.HTTPError as error:
        status, reason = getattr(error.response, "status_code", 0), getattr(error.response, "reason", "")
        hint = "try again later" if status == 429 or status >= 500 else "is there such a file?"
        raise NotFound(f"{url}: the server says {status} {reason}; {hint}") from error
    except requests.exceptions.ChunkedEncodingError as error:
        raise NotFound(f"{url}: the connection broke; the same command starts this file again.") from error
    except (requests.ConnectionError, requests.Timeout) as error:
        inner, reason = error, type(error).__name__
        while inner is not None:  # the system's error is the innermost
            reason = inner.strerror if isinstance(inner, OSError) and inner.strerror else reason
            inner = inner.__cause__ or inner.__context__  # type: ignore[assignment]
        proxy = proxy_of(url)
        way_out = "check that variable, or unset it" if proxy else "check the network, or try again later"
        raise NotFound(f"{url}: no connection{proxy} ({reason}); {way_out}.") from error
    except (requests.RequestException, urllib3.exceptions.HTTPError, UnicodeError) as error:
        raise NotFound(f"{url}: can't be requested ({' '.join(str(error).split())[:200]}).") from error


def proxy_of(url: str) -> str:
    """The proxy for an address and the variable that names it, as messages show them; "" without one."""
    from requests.utils import get_environ_proxies, select_proxy

    proxy = select_proxy(url, get_environ_proxies(url))
    if not proxy:
        return ""
    variables = [name for name, value in os.environ.items() if name.lower().endswith("_proxy") and value == proxy]
    return f" through the proxy {proxy.rpartition('@')[2]} ({', '.join(variables) or 'of the system'})"  # no password

"""A server of files for tests: ranges, versions, and failures on demand."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bgt_core.data.fetch import transfer


@dataclass
class Site:
    """Files by path, what goes wrong with the next GETs, and what was asked."""

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)  # path -> ETag; '"1"' where not named, none where ""
    trouble: list[str] = field(default_factory=list)  # of GETs: "500", "503 after 9", "cut 1", "no ranges", "careless"
    asked: list[tuple[str, str, Message]] = field(default_factory=list)  # method, path, headers

    def url(self, path: str) -> str:
        return f"{self.address}/{path}"

    def gets(self) -> list[Message]:
        return [headers for method, _, headers in self.asked if method == "GET"]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def do_HEAD(self) -> None:
        self.answer("")

    def do_GET(self) -> None:
        self.answer(self.site.trouble.pop(0) if self.site.trouble else "")

    def answer(self, trouble: str) -> None:
        path = re.sub(r"^https?://[^/]+", "", self.path).lstrip("/")  # a proxy is asked for whole addresses
        self.site.asked.append((self.command, path, self.headers))
        content = self.site.files.get(path.partition("?")[0])
        status = re.fullmatch(r"(\d+)(?: after (\d+))?", trouble)
        if content is None or status:
            self.send_response(int(status[1]) if status else 404)
            if status and status[2]:
                self.send_header("Retry-After", status[2])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        tag = self.site.versions.get(path, '"1"')
        start = 0
        part = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        same = self.headers.get("If-Range", tag) == tag or trouble == "careless"
        if part and same and trouble != "no ranges":
            start = int(part[1])
        if start >= len(content) > 0:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if tag:
            self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        if self.command == "GET":
            cut = re.fullmatch(r"cut (\d+)", trouble)
            self.wfile.write(content[start : start + int(cut[1])] if cut else content[start:])
            self.close_connection = bool(cut)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A server on this machine, asked directly whatever proxies the environment names, twice again without waiting."""
    monkeypatch.setattr(transfer, "RETRIES", transfer.RETRIES.new(total=2, backoff_factor=0))
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {})) as server:
        server.daemon_threads = True
        made = server.RequestHandlerClass.site = Site(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        server.shutdown()
        thread.join()

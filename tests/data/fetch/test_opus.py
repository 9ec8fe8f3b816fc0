"""What an index of OPUS may not do: choose where we write, or lead to an unprotected address."""

from __future__ import annotations

import pytest
import requests

from bgt_core.data.fetch import opus, transfer
from bgt_core.errors import NotFound


def answer(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    reply = requests.Response()
    reply.status_code, reply._content = 200, content
    monkeypatch.setattr(requests.Session, "get", lambda *_, **__: reply)


ENTRY = '{"corpora": [{"corpus": "X", "version": %s, "alignment_pairs": %s, "size": %s, "url": %s}]}'


@pytest.mark.parametrize(
    "values",
    [
        ('"/../../evil"', "1", "1", '"https://a/b"'),
        ('".."', "1", "1", '"https://a/b"'),
        ('"a\\u0000b"', "1", "1", '"https://a/b"'),
        ("7", "1", "1", '"https://a/b"'),
        ("[]", "1", "1", '"https://a/b"'),
        ('"v1"', "1", "Infinity", '"https://a/b"'),
        ('"v1"', "1", "1", '"http://a/b"'),
        ('"v1"', "1", "1", '"file:///etc/passwd"'),
        ('"v1"', "1" * 5_000, "1", '"https://a/b"'),
    ],
)
def test_an_index_that_leads_astray_is_refused(values: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, (ENTRY % values).encode())
    with pytest.raises(NotFound, match="an unexpected form"):
        opus.corpora(transfer.session(), ("en", "fr"))
    answer(monkeypatch, b"[" * 100_000)
    with pytest.raises(NotFound):
        opus.corpora(transfer.session(), ("en", "fr"))

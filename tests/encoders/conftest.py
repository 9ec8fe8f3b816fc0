"""A stand-in for the hub, with the few addresses that pushing and fetching use, and a tiny model of others."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch


class StandIn(ThreadingHTTPServer):
    """Repositories in memory: name -> its commits, each with all its files; TOKEN may write."""

    TOKEN = "hf_stand_in"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.repositories: dict[str, dict[str, dict[str, bytes]]] = {}
        self.private: set[str] = set()
        self.asked: list[str] = []
        self.broken = 0  # a status that every answer has

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def put(self, name: str, files: dict[str, bytes]) -> str:
        """A commit that adds files; its hash."""
        commits = self.repositories.setdefault(name, {})
        whole = {**(list(commits.values()) or [{}])[-1], **files}
        sha = hashlib.sha1(repr((len(commits), sorted(whole.items()))).encode()).hexdigest()
        commits[sha] = whole
        return sha


class Answers(BaseHTTPRequestHandler):
    server: StandIn

    def log_message(self, *_: object) -> None:
        """Silence."""

    def answer(self, body: object, status: int = 200, **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for key, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(key.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def refuse(self, status: int, code: str = "") -> None:
        self.answer({"error": code}, status, **({"X_Error_Code": code} if code else {}))

    def writes(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {self.server.TOKEN}"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append(f"POST {self.path}")
        if self.server.broken:
            return self.refuse(self.server.broken)
        if self.path == "/api/validate-yaml":
            return self.answer({"errors": [], "warnings": []})
        if not self.writes():
            return self.refuse(403)
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            if asked.get("private") or asked.get("visibility") == "private":
                self.server.private.add(name)
            self.server.repositories.setdefault(name, {})
            return self.answer({"url": f"{self.server.address}/{name}"})
        name = "/".join(self.path.split("/")[3:5])
        if "/preupload/" in self.path:
            files = [{**file, "uploadMode": "regular", "shouldIgnore": False} for file in json.loads(body)["files"]]
            return self.answer({"files": files})
        if "/commit/" in self.path:
            rows = [json.loads(line) for line in body.splitlines()]
            files = {
                row["value"]["path"]: base64.b64decode(row["value"]["content"]) for row in rows if row["key"] == "file"
            }
            sha = self.server.put(name, files)
            address = f"{self.server.address}/{name}/commit/{sha}"
            return self.answer({"commitUrl": address, "commitOid": sha, "success": True})
        return self.refuse(404)

    def do_GET(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        if self.server.broken:
            return self.refuse(self.server.broken)
        path, _, _ = self.path.partition("?")
        parts = path.strip("/").split("/")
        name = "/".join(parts[2:4] if parts[0] == "api" else parts[:2])
        commits = self.server.repositories.get(name)
        if not commits or (name in self.server.private and not self.writes()):
            return self.refuse(404, "RepoNotFound")
        *_, newest = commits
        kind, wanted = parts[4:6] if parts[0] == "api" else parts[2:4]
        sha = newest if wanted == "main" else wanted
        if sha not in commits:
            return self.refuse(404, "RevisionNotFound")
        files = commits[sha]
        if kind == "revision":
            siblings = [{"rfilename": file} for file in files]
            return self.answer({"id": name, "modelId": name, "sha": sha, "siblings": siblings})
        if kind == "tree":
            entries = [
                {"type": "file", "path": file, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                for file, data in files.items()
            ]
            return self.answer(entries)
        if kind == "resolve" and parts[4] in files:
            data = files[parts[4]]
            return self.answer(data, ETag=f'"{hashlib.sha1(data).hexdigest()}"', X_Repo_Commit=sha)
        return self.refuse(404, "EntryNotFound")

    do_HEAD = do_GET


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sentence-transformers folder with a tiny untrained BERT, and words of its own."""
    pytest.importorskip("sentence_transformers")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("bert")
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dog", "cat", "sleeps", "##s", "."]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=len(tokens), max_position_embeddings=32, **sizes)).save_pretrained(folder / "plain")
    BertTokenizerFast(vocab=vocabulary).save_pretrained(folder / "plain")
    body = Transformer(str(folder / "plain"))
    SentenceTransformer(modules=[body, Pooling(8)], device="cpu").save(str(folder / "st"), create_model_card=False)
    return folder


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[StandIn]:
    """The stand-in as the hub of huggingface_hub, with an empty cache and nobody logged in."""
    from huggingface_hub import constants

    server = StandIn()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, server.address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)  # both as HF_ENDPOINT sets them
    monkeypatch.setattr(constants, "ENDPOINT", server.address)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)  # `attack` sets it, which other tests import
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""Uploads to a server on this machine that answers as the hub does; no other is ever asked."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from molforge_eval import layout

TOKEN = "hf_" + "a" * 34


class Hub(ThreadingHTTPServer):
    """Repositories as files by path, and what was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.files: dict[str, bytes] = {}
        self.created: list[dict[str, Any]] = []
        self.tokens: set[str | None] = set()
        self.commits = 0
        self.broken = 0
        """How many of the next commits are answered by an error of the server."""
        self.refuses = False


class Answers(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._answer(
            200,
            {
                "id": "me/run",
                "sha": "0" * 40,
                "private": True,
                "siblings": [{"rfilename": path} for path in self.server.files],
            },
        )

    def do_POST(self) -> None:
        hub = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        hub.tokens.add(self.headers.get("Authorization"))
        place = self.path.partition("?")[0]
        if hub.refuses:
            self._answer(403, {"error": "You have no right to write there"})
        elif place == "/api/repos/create":
            hub.created.append(json.loads(body))
            self._answer(200 if len(hub.created) == 1 else 409, {"url": f"{self._root()}/me/run"})
        elif place == "/api/validate-yaml":
            self._answer(200, {"errors": [], "warnings": []})
        elif place == "/api/models/me/run/preupload/main":
            asked = json.loads(body)["files"]
            self._answer(200, {"files": [self._mode(entry["path"]) for entry in asked]})
        elif place == "/api/models/me/run/commit/main" and hub.broken:
            hub.broken -= 1
            self._answer(503, {"error": "busy"})
        elif place == "/api/models/me/run/commit/main":
            rows = [json.loads(line) for line in body.splitlines()]
            added = [row["value"] for row in rows if row["key"] == "file"]
            hub.files |= {row["path"]: base64.b64decode(row["content"]) for row in added}
            for path in [row["value"]["path"] for row in rows if row["key"] == "deletedFile"]:
                del hub.files[path]
            hub.commits += 1
            self._answer(200, {"commitUrl": f"{self._root()}/me/run/commit/{'1' * 40}", "commitOid": "1" * 40})
        else:
            self._answer(404, {"error": place})

    def _mode(self, path: str) -> dict[str, Any]:
        found = self.server.files.get(path)
        # A file of git is named by the hash of its length and its bytes.
        oid = (
            None
            if found is None
            else hashlib.sha1(b"blob %d\0" % len(found) + found, usedforsecurity=False).hexdigest()
        )
        return {"path": path, "uploadMode": "regular", "shouldIgnore": False, "oid": oid}

    def _root(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def _answer(self, code: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def upload(run: Path, port: int, home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    script = "import sys; from molforge_train.cli import main; main()"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
    environment = {
        **kept,
        "HF_ENDPOINT": f"http://127.0.0.1:{port}",
        "HF_HOME": str(home / "hub"),
        "HF_HUB_DISABLE_XET": "1",
        "HF_TOKEN": TOKEN,
        **variables,
    }
    command = [sys.executable, "-c", script, "deliver", str(run), "--hf", "me/run"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)


def test_a_run_its_archive_and_its_card_are_one_commit_to_a_private_repository(
    run_copy: Path, hub: Hub, tmp_path: Path
) -> None:
    (run_copy / layout.ADAPTER_CARD).write_text("---\nlicense: unknown\n---\n\n# card\n")
    (run_copy / ".env").write_text("SECRET=1\n")
    (run_copy / "adapters" / "training_args.bin").write_bytes(b"pickle")
    # The server is busy once: the upload is tried again.
    hub.broken = 1
    first = upload(run_copy, hub.server_port, tmp_path)
    again = upload(run_copy, hub.server_port, tmp_path)
    packed = {
        f"run/{path.relative_to(run_copy).as_posix()}": path.read_bytes()
        for path in run_copy.rglob("*")
        if path.is_file() and layout.is_packed(path.relative_to(run_copy).as_posix())
    }

    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    assert first.stdout == f"hub            http://127.0.0.1:{hub.server_port}/me/run/commit/{'1' * 40}\n"
    assert hub.files == {
        **packed,
        "run.zip": run_copy.with_name("run.zip").read_bytes(),
        "README.md": (run_copy / layout.ADAPTER_CARD).read_bytes(),
    }
    assert hub.created[0]["visibility"] == "private"
    assert hub.tokens == {f"Bearer {TOKEN}"}
    # The second upload had nothing new to say.
    assert hub.commits == 1


def test_what_another_run_of_the_name_left_there_goes_with_the_same_commit(
    run_copy: Path, hub: Hub, tmp_path: Path
) -> None:
    hub.files = {"run/judge_packet.html": b"of another run", "other/run_manifest.json": b"{}", "notes.md": b"mine"}
    result = upload(run_copy, hub.server_port, tmp_path)

    assert result.returncode == 0, result.stderr
    assert hub.commits == 1
    assert "run/judge_packet.html" not in hub.files
    assert hub.files["other/run_manifest.json"] == b"{}"
    assert hub.files["notes.md"] == b"mine"
    assert f"run/{layout.MANIFEST}" in hub.files


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.mark.parametrize(
    ("variables", "reason", "advice"),
    [
        ({"HF_TOKEN": ""}, "there is no token for the hub", "HF_TOKEN"),
        ({"HF_HUB_OFFLINE": "1"}, "offline mode", "Connect the machine"),
        ({}, "Connection refused", "Connect the machine"),
    ],
)
def test_without_token_or_network_three_lines_say_that_the_run_is_whole(
    run_copy: Path, tmp_path: Path, variables: dict[str, str], reason: str, advice: str
) -> None:
    before = {path: path.read_bytes() for path in run_copy.rglob("*") if path.is_file()}
    result = upload(run_copy, free_port(), tmp_path, **variables)
    lines = result.stderr.splitlines()[-3:]

    assert result.returncode == 1
    assert "the run is whole in" in lines[0]
    assert reason in lines[0]
    assert lines[2].startswith(f"  mend:  {advice}" if advice == "Connect the machine" else "  mend:  Give a token")
    assert lines[2].endswith(" --hf me/run")
    assert TOKEN not in result.stderr + result.stdout
    assert "Traceback" not in result.stderr
    assert {path: path.read_bytes() for path in run_copy.rglob("*") if path.is_file()} == before


def test_a_token_that_may_not_write_is_told_at_once(run_copy: Path, hub: Hub, tmp_path: Path) -> None:
    hub.refuses = True
    result = upload(run_copy, hub.server_port, tmp_path)

    assert result.returncode == 1
    assert "403" in result.stderr
    assert "Give a token that may write there" in result.stderr
    assert hub.files == {}

"""Looking at a run opens no socket, starts no program, loads no pickle, imports nothing of it, leaves it as it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from evidence_builder import edit_json, read_lines, reseal, write_lines
from packet_builder import packet_of

from molforge_eval import layout

ADDRESS = "http://127.0.0.1:9/x"
MARKUP = f'<img src="{ADDRESS}"><link rel="attachment" href="file:///etc/passwd"><script src="{ADDRESS}"></script>'
SCRIPT = """
import sys
from pathlib import Path
from molforge_env.command_line import run_to_code
from molforge_eval.cli.evaluate import cli as evaluate
from molforge_eval.cli.report import cli as report
run, packet, out = sys.argv[1:]
codes = [
    run_to_code(evaluate, ["validate", run, "--format", f"sarif={out}/a.sarif", "--format", f"markdown={out}/a.md"]),
    run_to_code(evaluate, ["verify", run, "--workers", "1"]),
    run_to_code(evaluate, ["validate", packet]),
    run_to_code(report, ["build", run, "--out", out]),
    run_to_code(report, ["build", packet, "--out", out, "--no-pdf", "--no-html"]),
]
print("codes", *codes)
strays = [name for name, module in sys.modules.items() if str(getattr(module, "__file__", "")).startswith(run)]
print("imported", *strays)
"""


def offline() -> list[str]:
    """A word that takes the network away, where the system lets us."""
    unshare = shutil.which("unshare")
    line = [] if unshare is None else [unshare, "--map-root-user", "--net"]
    is_able = bool(line) and subprocess.run([*line, "true"], check=False, capture_output=True).returncode == 0
    return line if is_able else []


def look(run: Path, packet: Path, folder: Path, repository: Path, script: str = SCRIPT) -> tuple[str, str]:
    """Run commands in a closed room; returns what they printed and what was refused."""
    out, private, report = folder / "out", folder / "private", folder / "refused.txt"
    out.mkdir()
    private.mkdir()
    report.write_text("")
    room = repository / "tests" / "support" / "closed_room"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(room), str(repository))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(private),
        "CLOSED_ROOM_REPORT": str(report),
        "CLOSED_ROOM_WRITABLE": os.pathsep.join((str(out), str(private), str(report))),
        "CLOSED_ROOM_RUN": str(run.resolve()),
    }
    # In the run itself: a module that lies in the working folder must not be imported.
    done = subprocess.run(
        [*offline(), sys.executable, "-P", "-c", script, str(run), str(packet), str(out)],
        cwd=run,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert list(private.iterdir()) == []
    return done.stdout + done.stderr, report.read_text()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def full_of_addresses(run: Path) -> None:
    """Put addresses and markup into every free text of a run, and modules beside its records."""
    for path in layout.EVALUATIONS:
        edit_json(run, path, lambda value: value.update(label=MARKUP))
    edit_json(
        run,
        layout.MANIFEST,
        lambda value: value["configuration"].update(base_model=ADDRESS, output_root="//127.0.0.1/share"),
    )
    edit_json(run, layout.ADAPTER_CONFIG, lambda value: value.update(base_model_name_or_path=ADDRESS, auto_map=ADDRESS))
    lines = read_lines(run)
    for line in lines:
        line["summary"] = MARKUP
    write_lines(run, lines)
    edit_json(run, layout.PLOT_DATA, lambda value: value["plots"][0].update(caption=MARKUP, title=ADDRESS))
    reseal(run)
    for name in ("sitecustomize.py", "orjson.py", "conftest.py", "molforge_eval.py", "adapters/modeling.py"):
        (run / name).write_text("raise SystemExit(99)\n")
    (run / "adapters" / "training_args.bin").write_bytes(b"cos\nsystem\n(S'touch /tmp/x'\ntR.")
    shutil.copyfile(run / layout.CHECKSUMS, run / "extra.json")
    edit_json(run, "extra.json", lambda value: value.update({"$schema": ADDRESS, "$ref": ADDRESS}))


@pytest.mark.parametrize("kind", ["sample", "hostile"])
def test_nothing_leaves_the_room(kind: str, request: pytest.FixtureRequest, tmp_path: Path, repository: Path) -> None:
    run = request.getfixturevalue("sample_run" if kind == "sample" else "run_copy")
    if kind == "hostile":
        full_of_addresses(run)
    packet = packet_of(run)
    before = contents(run)
    (tmp_path / "room").mkdir()
    printed, refused = look(run, packet, tmp_path / "room", repository)

    assert refused == ""
    assert ("codes 0 0 0 0 0" if kind == "sample" else "codes 1 1 1 0 0") in printed
    assert printed.rstrip().endswith("imported")
    assert contents(run) == before


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        ("import socket; socket.socket()", "a socket"),
        ("import urllib.request; urllib.request.urlopen('http://127.0.0.1:9/')", "urllib.Request"),
        ("import subprocess; subprocess.run(['true'])", "starting ['true']"),
        ("open('/tmp/closed-room', 'w')", "writing '/tmp/closed-room'"),
        ("import pickle; pickle.loads(b'cos\\nsystem\\n.')", "pickle.find_class"),
        ("import sys; sys.path.insert(0, sys.argv[1]); import orjson", "compiling"),
    ],
)
def test_the_room_is_closed(deed: str, words: str, run_copy: Path, tmp_path: Path, repository: Path) -> None:
    (run_copy / "orjson.py").write_text("")
    (tmp_path / "room").mkdir()
    printed, refused = look(run_copy, run_copy, tmp_path / "room", repository, script=deed)

    assert words in refused
    assert "PermissionError: refused" in printed

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from molforge_env.errors import UsageError
from molforge_eval.report.delivery import deliver, make_folder

NAMES = ("evidence.json", "page.html", "paper.pdf")
KILLED = """
import os, signal, sys
from pathlib import Path
from molforge_eval.report.delivery import deliver
left = int(sys.argv[2])
def watch(event, details):
    global left
    if event in ("os.rename", "os.remove", "open") and str(details[0]).startswith(sys.argv[1]):
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
sys.addaudithook(watch)
deliver(Path(sys.argv[1]), {name: b"new " + name.encode() for name in %r}, what="packet")
""" % (NAMES,)  # noqa: UP031 # the program is full of braces
FULL = """
import resource, sys
from pathlib import Path
from molforge_eval.report.delivery import deliver
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
deliver(Path(sys.argv[1]), {"evidence.json": b"small", "page.html": b"x" * 5000}, what="packet")
"""


def _old_packet(folder: Path) -> Path:
    folder.mkdir()
    for name in NAMES:
        (folder / name).write_bytes(b"old " + name.encode())
    return folder


def _states(folder: Path) -> set[bytes]:
    return {(folder / name).read_bytes()[:3] for name in NAMES if (folder / name).exists()}


def test_files_are_replaced_and_one_that_is_not_made_goes(tmp_path) -> None:
    folder = _old_packet(tmp_path / "run")
    deliver(folder, {"evidence.json": b"new", "page.html": None, "paper.pdf": b"new"}, what="packet")

    assert sorted(path.name for path in folder.iterdir()) == ["evidence.json", "paper.pdf"]
    assert _states(folder) == {b"new"}


def test_a_process_that_is_killed_at_any_moment_leaves_files_of_one_state(tmp_path) -> None:
    ended_alive = False
    for moment in range(40):
        folder = _old_packet(tmp_path / f"run-{moment}")
        done = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(moment)], check=False)

        assert len(_states(folder)) <= 1, f"killed at moment {moment}"
        if done.returncode == 0:
            ended_alive = True
            break
    assert ended_alive
    assert moment > 6
    assert _states(folder) == {b"new"}


def test_a_full_disk_leaves_what_stood_there_and_no_draft(tmp_path) -> None:
    folder = _old_packet(tmp_path / "run")
    done = subprocess.run([sys.executable, "-c", FULL, str(folder)], check=False, capture_output=True, text=True)

    assert "there is no room for the packet" in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == sorted(NAMES)
    assert _states(folder) == {b"old"}


def test_a_folder_in_the_place_of_a_file_is_named_before_anything_goes(tmp_path) -> None:
    folder = _old_packet(tmp_path / "run")
    (folder / "page.html").unlink()
    (folder / "page.html").mkdir()

    with pytest.raises(UsageError, match="the packet cannot be written"):
        deliver(folder, dict.fromkeys(NAMES, b"new"), what="packet")
    assert (folder / "evidence.json").read_bytes() == b"old evidence.json"
    assert [path.name for path in folder.glob(".*")] == []


def test_a_link_is_replaced_and_not_followed(tmp_path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"untouched")
    (tmp_path / "page.html").symlink_to(elsewhere)
    deliver(tmp_path, {"page.html": b"new"}, what="packet")

    assert elsewhere.read_bytes() == b"untouched"
    assert not (tmp_path / "page.html").is_symlink()


def test_a_folder_that_cannot_be_made_is_named(tmp_path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(UsageError, match="cannot be made"):
        make_folder(tmp_path / "file" / "inner")

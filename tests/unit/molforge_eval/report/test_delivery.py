from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from molforge_env.errors import UsageError
from molforge_eval.report.delivery import deliver, made_folder, own_turn, refuse_inside

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


@pytest.mark.parametrize("name", ["file/inner", "file", "loop", "nowhere"])
def test_a_folder_that_cannot_be_made_is_named(tmp_path, name) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nowhere").symlink_to("absent")

    with pytest.raises(UsageError, match="cannot be made"), made_folder(tmp_path / name):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "loop", "nowhere"]


def test_a_folder_that_was_made_goes_again_when_nothing_comes_into_it(tmp_path) -> None:
    with pytest.raises(KeyboardInterrupt), made_folder(tmp_path / "new" / "inner"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    with made_folder(tmp_path / "new" / "inner") as folder:
        (folder / "file").write_bytes(b"")
    with pytest.raises(KeyError), made_folder(tmp_path / "new" / "inner"):
        raise KeyError
    assert (tmp_path / "new" / "inner" / "file").is_file()
    with pytest.raises(KeyError), made_folder(tmp_path):
        raise KeyError
    assert tmp_path.is_dir()


@pytest.mark.parametrize("name", [".page.html.part", "page.html"])
def test_a_folder_in_the_place_of_a_file_or_of_its_draft_is_three_lines(tmp_path, name) -> None:
    (tmp_path / name).mkdir()

    with pytest.raises(UsageError, match="the packet cannot be written: Is a directory") as caught:
        deliver(tmp_path, dict.fromkeys(NAMES, b"new"), what="packet")
    assert caught.value.where == str(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_who_delivers_into_one_folder_takes_turns(tmp_path) -> None:
    with own_turn(tmp_path):
        with pytest.raises(UsageError, match="another process is writing there"), own_turn(tmp_path, seconds=0.1):
            pass
        with own_turn(tmp_path.parent, seconds=0):
            pass
    with own_turn(tmp_path, seconds=0):
        pass


def test_a_folder_in_a_run_is_refused_by_whatever_name(tmp_path) -> None:
    (tmp_path / "run" / "logs").mkdir(parents=True)
    (tmp_path / "link").symlink_to("run/logs")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("run", "run/logs/new", "link", "run/../link/new"):
        with pytest.raises(UsageError, match="would stand in the run"):
            refuse_inside(tmp_path / name, tmp_path / "run", what="packet")
    for name in ("runs", "loop"):
        refuse_inside(tmp_path / name, tmp_path / "run", what="packet")

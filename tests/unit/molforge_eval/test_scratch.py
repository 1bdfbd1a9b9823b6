from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from molforge_eval.scratch import make_scratch, remove_scratch, scratch

MAKES_ONE = """
import sys, time
from pathlib import Path
from molforge_eval.scratch import make_scratch
folder = make_scratch("run")
(folder / "inner").mkdir()
(folder / "inner" / "file").write_text("x")
print(folder.name, flush=True)
time.sleep(60)
"""


INTERRUPTED_WHILE_MADE = """
import tempfile
from molforge_eval.scratch import scratch
make = tempfile.mkdtemp
def cut(**named):
    make(**named)
    raise KeyboardInterrupt
tempfile.mkdtemp = cut
with scratch("run"):
    pass
"""

INTERRUPTED_WHILE_REMOVED = """
import shutil
from molforge_eval.scratch import scratch
remove = shutil.rmtree
def cut(*given, **named):
    shutil.rmtree = remove
    raise KeyboardInterrupt
with scratch("run") as folder:
    (folder / "file").write_text("x")
    shutil.rmtree = cut
"""


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def _start(place: Path) -> tuple[subprocess.Popen[str], str]:
    environment = {**os.environ, "TMPDIR": str(place)}
    process = subprocess.Popen([sys.executable, "-c", MAKES_ONE], env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def _kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)


def test_a_folder_lasts_as_long_as_its_block(place) -> None:
    with scratch("paper") as folder:
        (folder / "page").write_text("x")

        assert folder.parent == place
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("program", [INTERRUPTED_WHILE_MADE, INTERRUPTED_WHILE_REMOVED])
def test_a_signal_while_a_folder_is_made_or_removed_leaves_none(place, program) -> None:
    bystander = place / "molforge-run-1-abcdefgh"
    bystander.mkdir()
    environment = {**os.environ, "TMPDIR": str(place)}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=False)

    assert b"KeyboardInterrupt" in ended.stderr
    assert list(place.iterdir()) == [bystander]


def test_a_forked_child_removes_nothing_of_its_parent(place) -> None:
    program = """
import os, sys
from molforge_eval.scratch import make_scratch
folder = make_scratch("run")
if os.fork() == 0:
    sys.exit()
os.wait()
assert folder.is_dir()
"""
    environment = {**os.environ, "TMPDIR": str(place)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)

    assert list(place.iterdir()) == []


def test_what_a_killed_process_left_goes_with_the_next_folder_and_what_a_living_one_holds_stays(place) -> None:
    killed, left = _start(place)
    _kill(killed)
    living, held = _start(place)
    try:
        assert not (place / left).exists()
        with scratch("run"):
            assert (place / held / "inner" / "file").exists()
    finally:
        _kill(living)


@pytest.mark.parametrize("name", ["molforge-run-abc", "molforge-demo", "other-run-{}-abcdefgh", "molforge-run-{}-abc"])
def test_a_folder_of_another_name_is_nobodys_to_remove(place, name) -> None:
    killed, _ = _start(place)
    _kill(killed)
    other = place / name.format(killed.pid)
    other.mkdir()
    remove_scratch(make_scratch("run"))

    assert other.is_dir()


def test_a_link_of_such_a_name_is_not_followed_and_a_file_stays(place, tmp_path_factory) -> None:
    killed, left = _start(place)
    _kill(killed)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "file").write_text("x")
    link, file = place / f"molforge-run-{killed.pid}-abcdefgh", place / f"molforge-run-{killed.pid}-abcdefgi"
    link.symlink_to(elsewhere)
    file.write_text("x")
    remove_scratch(make_scratch("run"))

    assert not (place / left).exists()
    assert (elsewhere / "file").exists()
    assert link.is_symlink()
    assert file.is_file()


def test_a_lock_keeps_a_folder_whose_process_cannot_be_seen(place) -> None:
    # As between two containers that share a folder: the number of the process means nothing here.
    import fcntl

    killed, left = _start(place)
    _kill(killed)
    handle = os.open(place / left, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    remove_scratch(make_scratch("run"))

    assert (place / left / "inner").is_dir()
    os.close(handle)
    remove_scratch(make_scratch("run"))
    assert list(place.iterdir()) == []

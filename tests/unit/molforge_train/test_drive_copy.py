from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from molforge_eval import layout
from molforge_eval.archive import pack_run
from molforge_eval.validate import validate
from molforge_train.drive_copy import DeliveryError, as_word, check_mounted, copy_run


@pytest.fixture
def archive(run_copy: Path) -> Path:
    (run_copy / ".env").write_text("SECRET=1\n")
    (run_copy / "trainer").mkdir()
    (run_copy / "trainer" / "optimizer.pt").write_bytes(b"state")
    pack_run(run_copy, run_copy.with_name("run.zip"))
    return run_copy.with_name("run.zip")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_copy_holds_records_and_archive_and_nothing_else(run_copy: Path, archive: Path, tmp_path: Path) -> None:
    target = copy_run(run_copy, archive, tmp_path / "drive")
    packed = {path: data for path, data in contents(run_copy).items() if layout.is_packed(path)}

    assert target == tmp_path / "drive" / "run"
    assert contents(tmp_path / "drive") == {
        "run.zip": archive.read_bytes(),
        **{f"run/{path}": data for path, data in packed.items()},
    }
    assert validate(target).findings == validate(tmp_path / "drive" / "run.zip").findings == ()


def test_a_second_copy_takes_the_place_of_the_first_one_of_the_same_run(
    run_copy: Path, archive: Path, tmp_path: Path
) -> None:
    copy_run(run_copy, archive, tmp_path / "drive")
    (run_copy / layout.EVIDENCE).write_bytes(b"{}")
    pack_run(run_copy, archive)
    copy_run(run_copy, archive, tmp_path / "drive")

    assert (tmp_path / "drive" / "run" / layout.EVIDENCE).read_bytes() == b"{}"
    assert (tmp_path / "drive" / "run.zip").read_bytes() == archive.read_bytes()
    assert sorted(path.name for path in (tmp_path / "drive").iterdir()) == ["run", "run.zip"]


def test_another_run_and_what_is_no_run_stay_as_they_are(run_copy: Path, archive: Path, tmp_path: Path) -> None:
    taken = tmp_path / "drive" / "run"
    taken.mkdir(parents=True)
    (taken / "notes.txt").write_text("mine")
    with pytest.raises(DeliveryError, match="what stands at run there is no copy of this run"):
        copy_run(run_copy, archive, tmp_path / "drive")
    manifest = (run_copy / layout.MANIFEST).read_text()
    run_id = manifest.partition('"run_id": "')[2].partition('"')[0] or manifest.partition('"run_id":"')[2][:16]
    (taken / layout.MANIFEST).write_text(manifest.replace(run_id, "run-000000000000"))
    with pytest.raises(DeliveryError, match="no copy of this run"):
        copy_run(run_copy, archive, tmp_path / "drive")

    assert sorted(contents(tmp_path / "drive")) == ["run/notes.txt", f"run/{layout.MANIFEST}"]


def test_an_archive_of_something_else_stays_as_it_is(run_copy: Path, archive: Path, tmp_path: Path) -> None:
    standing = tmp_path / "drive" / "run.zip"
    standing.parent.mkdir()
    standing.write_bytes(b"another run of this name")
    with pytest.raises(DeliveryError, match=r"what stands at run\.zip there is no archive of this run"):
        copy_run(run_copy, archive, standing.parent)
    assert contents(standing.parent) == {"run.zip": b"another run of this name"}

    # The archive of this very run is no obstacle when its folder was removed.
    shutil.copy(archive, standing)
    copy_run(run_copy, archive, standing.parent)
    standing.unlink()
    standing.mkdir()
    with pytest.raises(DeliveryError, match="no archive of this run"):
        copy_run(run_copy, archive, standing.parent)


def test_a_copy_that_breaks_off_says_where_the_run_is_and_how_to_copy_it_again(
    run_copy: Path, archive: Path, tmp_path: Path
) -> None:
    (tmp_path / "my drive").write_text("a file")
    with pytest.raises(DeliveryError) as failed:
        copy_run(run_copy, archive, tmp_path / "my drive")
    first, _, mend = str(failed.value).splitlines()

    assert failed.value.exit_code == 1
    assert "the run is whole in " in first
    assert f"molforge-train deliver {as_word(run_copy)} --drive {as_word(tmp_path / 'my drive')}" in mend
    assert "'" in as_word(tmp_path / "my drive")


def test_a_file_that_cannot_be_written_in_full_leaves_the_older_copy_whole(
    run_copy: Path, archive: Path, tmp_path: Path
) -> None:
    copy_run(run_copy, archive, tmp_path / "drive")
    before = contents(tmp_path / "drive")
    (run_copy / layout.EVIDENCE).write_bytes(b" " * 2**23)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**22, limits[1]))
    try:
        # As on a disk that is full: a write that the system refuses half way.
        with pytest.raises(DeliveryError, match="File too large"):
            copy_run(run_copy, archive, tmp_path / "drive")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)

    assert contents(tmp_path / "drive") == before


@pytest.mark.parametrize("fault", ["killed between the renames", "killed after them"])
def test_what_a_killed_copy_has_left_is_settled_by_the_next_one(
    run_copy: Path, archive: Path, tmp_path: Path, fault: str
) -> None:
    copy_run(run_copy, archive, tmp_path / "drive")
    wanted = contents(tmp_path / "drive")
    older, draft = tmp_path / "drive" / ".run.old", tmp_path / "drive" / ".run.part"
    if fault == "killed between the renames":
        (tmp_path / "drive" / "run").rename(older)
        shutil.copytree(older, draft)
        (tmp_path / "drive" / ".run.zip.part").write_bytes(b"PK")
    else:
        shutil.copytree(tmp_path / "drive" / "run", older)
    copy_run(run_copy, archive, tmp_path / "drive")

    assert contents(tmp_path / "drive") == wanted


def test_a_copy_that_is_killed_at_any_moment_leaves_a_whole_copy(run_copy: Path, archive: Path, tmp_path: Path) -> None:
    copy_run(run_copy, archive, tmp_path / "drive")
    wanted = contents(tmp_path / "drive")
    endless = """
import sys
from pathlib import Path
from molforge_train.drive_copy import copy_run
print(1, flush=True)
while True:
    copy_run(*map(Path, sys.argv[1:]))
"""
    command = [sys.executable, "-c", endless, str(run_copy), str(archive), str(tmp_path / "drive")]
    for wait in (0.013, 0.029, 0.041):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(wait)
            process.kill()
        stood = [place for place in (".run.old", "run") if (tmp_path / "drive" / place).exists()]
        assert stood
        whole = contents(tmp_path / "drive" / stood[-1])
        assert {f"run/{path}": data for path, data in whole.items()} == {
            path: data for path, data in wanted.items() if path != "run.zip"
        }
    copy_run(run_copy, archive, tmp_path / "drive")

    assert contents(tmp_path / "drive") == wanted


def test_a_link_in_the_place_of_a_record_is_not_followed(run_copy: Path, archive: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (run_copy / layout.EVIDENCE).symlink_to(tmp_path / "secret")
    target = copy_run(run_copy, archive, tmp_path / "drive")

    assert not (target / layout.EVIDENCE).exists()


def test_a_copy_into_the_run_itself_is_refused(run_copy: Path, archive: Path) -> None:
    before = contents(run_copy)
    for drive in (run_copy, run_copy.parent):
        with pytest.raises(DeliveryError, match="in the run itself"):
            copy_run(run_copy, archive, drive)

    assert contents(run_copy) == before
    assert archive.is_file()


@pytest.mark.parametrize("place", ["/content/drive/MyDrive/runs", "/mnt/no_such_disk/runs", "/media/user/no_such/x"])
def test_nothing_is_written_below_a_place_where_no_drive_is_mounted(run_copy: Path, archive: Path, place: str) -> None:
    with pytest.raises(FileNotFoundError):
        check_mounted(Path(place))
    with pytest.raises(DeliveryError, match="nothing is mounted at") as failed:
        copy_run(run_copy, archive, Path(place))

    assert ("drive.mount(" in failed.value.mend) == place.startswith("/content")
    assert not os.path.lexists(place)


def test_a_folder_that_is_no_mount_needs_none(tmp_path: Path) -> None:
    check_mounted(tmp_path / "a" / "b")
    check_mounted(Path("relative/content/drive"))

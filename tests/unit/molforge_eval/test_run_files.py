"""The files of a run are listed and opened without following anything out of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from molforge_env.errors import UnreadableError
from molforge_eval.limits import Limits
from molforge_eval.run_files import list_run


def test_regular_files_are_listed_with_their_sizes_in_order(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "b").write_bytes(b"12")
    (tmp_path / "a").write_bytes(b"1")
    files = list_run(tmp_path)

    assert list(files.sizes.items()) == [("a", 1), ("logs/b", 2)]
    assert files.findings == ()


def test_a_folder_that_is_a_link_is_not_entered(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (tmp_path / "secret").write_bytes(b"1")
    (run / "logs").symlink_to(tmp_path)
    files = list_run(run)

    assert files.sizes == {}
    assert [(finding.code, finding.where.file) for finding in files.findings] == [("FILE_LINKED", "logs")]


def test_a_file_that_became_a_link_or_a_pipe_after_listing_is_not_opened(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"1")
    files = list_run(tmp_path)
    (tmp_path / "a").unlink()
    (tmp_path / "a").symlink_to("/etc/hostname")
    (tmp_path / "b").unlink()
    os.mkfifo(tmp_path / "b")

    for name in ("a", "b"):
        with pytest.raises(OSError, match=r".+"):
            files.open(name)


def test_a_file_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"123")
    files = list_run(tmp_path)

    assert files.read("a", at_most=2) is None
    assert files.read("a", at_most=3) == b"123"


@pytest.mark.parametrize("name", ["absent", "a file"])
def test_a_path_that_is_no_directory_is_an_error_of_three_lines(tmp_path: Path, name: str) -> None:
    (tmp_path / "a file").write_bytes(b"")

    with pytest.raises(UnreadableError) as caught:
        list_run(tmp_path / name)
    assert caught.value.exit_code == 3
    assert str(caught.value).count("\n") == 2


def test_a_crowded_directory_is_read_no_further_than_the_limit(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / str(number)).write_bytes(b"")
    files = list_run(tmp_path, Limits(directory_entries=10))

    assert [finding.code for finding in files.findings] == ["DIRECTORY_TOO_LARGE"]

"""Archives of runs: packed to the same bytes, unpacked without trust."""

from __future__ import annotations

import os
import shutil
import struct
import zipfile
from pathlib import Path

import pytest
from archive_builder import make_archive, unpacked_codes

from molforge_env.errors import UnreadableError
from molforge_eval.archive import listing_of, pack_run, unpack_archive
from molforge_eval.limits import Limits
from molforge_eval.run_directory import load
from molforge_eval.shape import shape_of
from molforge_eval.validate import validate


def test_a_packed_run_is_as_sound_as_its_folder(run_copy: Path, tmp_path: Path) -> None:
    packed = pack_run(run_copy, tmp_path / "run.zip")
    result = validate(tmp_path / "run.zip")

    assert packed.left_out == ()
    assert result.findings == ()
    assert (result.run, result.level) == ("run.zip", "E2")


def test_an_archive_of_which_every_member_was_refused_says_what_and_why(tmp_path: Path) -> None:
    path = make_archive(tmp_path / "a.zip", ("../run_manifest.json", b"{}"), ("/eval_plan.json", b"{}"))
    with pytest.raises(UnreadableError) as caught:
        validate(path)

    assert caught.value.what == (
        f"{path} holds none of the files of a run: ../run_manifest.json was refused (the name leads out of the folder, "
        "or is none of a plain file; it was not unpacked), and 1 more"
    )
    assert len(str(caught.value).splitlines()) == 3


def test_the_same_run_gives_the_same_bytes_whatever_the_dates_of_its_files(run_copy: Path, tmp_path: Path) -> None:
    pack_run(run_copy, tmp_path / "first.zip")
    for path in run_copy.rglob("*"):
        os.utime(path, (0, 0))
    pack_run(run_copy, tmp_path / "second.zip")

    assert (tmp_path / "first.zip").read_bytes() == (tmp_path / "second.zip").read_bytes()


def test_the_listing_of_an_archive_fits_its_schema(run_copy: Path, tmp_path: Path) -> None:
    packed = pack_run(run_copy, tmp_path / "run.zip")
    with zipfile.ZipFile(tmp_path / "run.zip") as archive:
        listing = listing_of(archive.infolist())

    assert list(shape_of("archive_listing").explain(listing)) == []
    assert [entry["path"] for entry in listing["entries"]] == [f"run/{path}" for path in packed.packed]


def test_what_is_no_record_is_left_out_and_named(run_copy: Path, tmp_path: Path) -> None:
    strays = (".env", "run.zip", "adapters/training_args.bin")
    for name in strays:
        (run_copy / name).write_bytes(b"secret")
    packed = pack_run(run_copy, tmp_path / "run.zip")

    assert packed.left_out == tuple(sorted(strays))
    with zipfile.ZipFile(tmp_path / "run.zip") as archive:
        assert sorted(archive.namelist()) == [f"run/{path}" for path in sorted(packed.packed)]


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/abs", "a\\..\\b", "C:/w", "a:b", "x" * 300, "a/" * 16 + "x"])
def test_a_name_that_leads_out_is_refused_and_nothing_is_written_outside(tmp_path: Path, name: str) -> None:
    unpacked = unpack_archive(make_archive(tmp_path / "a.zip", (name, b"1"), ("run_manifest.json", b"{}")), Limits())
    inside = [path.name for path in unpacked.holder.rglob("*")]
    shutil.rmtree(unpacked.holder)

    assert [finding.code for finding in unpacked.findings] == ["ARCHIVE_MEMBER_ESCAPES"]
    assert inside == ["run_manifest.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_a_name_that_ends_early_for_some_readers_is_refused(tmp_path: Path) -> None:
    path = make_archive(tmp_path / "a.zip", ("eval_plan.json.exe", b"1"))
    path.write_bytes(path.read_bytes().replace(b"eval_plan.json.exe", b"eval_plan.json\0exe"))

    assert unpacked_codes(path) == ["ARCHIVE_MEMBER_ESCAPES"]


def test_a_bomb_is_stopped_while_it_is_read(tmp_path: Path) -> None:
    bomb = make_archive(tmp_path / "a.zip", ("zeros", b"\0" * (200 * 2**20)), ("run_manifest.json", b"{}"))

    assert bomb.stat().st_size < 250_000
    assert unpacked_codes(bomb) == ["ARCHIVE_MEMBER_INFLATES"]


def test_a_header_that_lies_about_the_size_does_not_raise_the_limit(tmp_path: Path) -> None:
    path = make_archive(tmp_path / "a.zip", ("stored", os.urandom(3_000_000)), kind=zipfile.ZIP_STORED)
    data = path.read_bytes()
    path.write_bytes(data.replace(struct.pack("<I", 3_000_000), struct.pack("<I", 10)))

    assert unpacked_codes(path, Limits(archive_bytes=1_000_000)) in (
        ["ARCHIVE_TOO_LARGE"],
        ["ARCHIVE_MEMBER_UNREADABLE"],
    )


def test_all_members_together_are_limited(tmp_path: Path) -> None:
    path = make_archive(tmp_path / "a.zip", *((str(number), os.urandom(1000)) for number in range(10)))

    assert unpacked_codes(path, Limits(archive_bytes=5_500)) == ["ARCHIVE_TOO_LARGE"]
    assert unpacked_codes(path, Limits(archive_entries=5)) == ["ARCHIVE_TOO_LARGE"]


def test_a_folder_and_a_file_of_one_name_do_not_confuse_the_reader(tmp_path: Path) -> None:
    path = make_archive(tmp_path / "a.zip", ("logs", b"1"), ("logs/x", b"2"))

    assert unpacked_codes(path) == ["ARCHIVE_MEMBER_UNREADABLE"]


@pytest.mark.parametrize("data", [b"", b"PK", b"PK\x05\x06" + b"\0" * 10, b"not a zip" * 100])
def test_a_file_that_is_no_archive_is_an_error_of_three_lines(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.zip").write_bytes(data)

    with pytest.raises(UnreadableError) as caught:
        load(tmp_path / "a.zip")
    assert str(caught.value).count("\n") == 2


def test_a_truncated_archive_is_unreadable_and_leaves_nothing_behind(run_copy: Path, tmp_path: Path) -> None:
    pack_run(run_copy, tmp_path / "run.zip")
    data = (tmp_path / "run.zip").read_bytes()
    (tmp_path / "run.zip").write_bytes(data[: len(data) // 2])

    with pytest.raises(UnreadableError):
        load(tmp_path / "run.zip")


def test_the_folder_of_an_archive_is_removed_with_the_run(run_copy: Path, tmp_path: Path) -> None:
    pack_run(run_copy, tmp_path / "run.zip")
    run = load(tmp_path / "run.zip")
    root = run.root
    assert root.is_dir()
    del run

    assert not root.exists()

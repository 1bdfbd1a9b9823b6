"""What a stranger may hand over in place of a file, a picture or an archive: findings or three lines, within limits."""

from __future__ import annotations

import os
import random
import resource
import socket
import struct
import time
import unicodedata
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from archive_builder import make_archive, unpacked_codes
from old_layout import make_old_run
from PIL import Image

from molforge_env.errors import UnreadableError
from molforge_eval import layout
from molforge_eval.json_lines import read_lines
from molforge_eval.limits import Limits
from molforge_eval.png_text import PngFaultError, read_png_text
from molforge_eval.run_directory import load
from molforge_eval.validate import validate

KNOWN = (
    *(layout.MANIFEST, layout.PLAN, layout.ROLLOUTS, layout.TRAINER_LOG, layout.METRICS_TABLE, layout.BEFORE),
    *(layout.AFTER, layout.SUMMARY, layout.PLOT_DATA, layout.ADAPTER_CONFIG, layout.ADAPTER_WEIGHTS, *layout.PLOTS),
    *(layout.CHECKSUMS, *layout.PACKET_FILES),
)


def _bind(path: Path) -> None:
    # A socket's own path has to be short; its place is reached through the working folder.
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


ODD: tuple[tuple[str, Callable[[Path], None]], ...] = (
    ("FILE_SPECIAL", Path.mkdir),
    ("FILE_SPECIAL", os.mkfifo),
    ("FILE_SPECIAL", _bind),
    ("FILE_LINKED", lambda path: path.symlink_to("/etc/hostname")),
    ("FILE_LINKED", lambda path: path.symlink_to(path.name)),
    ("FILE_LINKED", lambda path: path.symlink_to("/dev/zero")),
)


def test_something_odd_in_place_of_any_file_is_named_and_hides_no_other(run_copy: Path, tmp_path: Path) -> None:
    for number, path in enumerate(KNOWN):
        code, make = ODD[number % len(ODD)]
        place, aside = run_copy / path, tmp_path / "aside"
        if place.exists():
            place.rename(aside)
        make(place)
        found = {(item.code, item.where.file) for item in validate(run_copy).findings}
        place.rmdir() if place.is_dir() and not place.is_symlink() else place.unlink()
        if aside.exists():
            aside.rename(place)

        assert (code, path) in found, path
        assert "CHECK_STOPPED" not in {code for code, _ in found}


def test_a_file_of_holes_is_left_out_before_anything_reads_it(run_copy: Path) -> None:
    os.truncate(run_copy / layout.ROLLOUTS, 2**42)
    os.truncate(run_copy / layout.ADAPTER_WEIGHTS, 2**41)
    began = time.process_time()
    found = {(item.code, item.where.file) for item in validate(run_copy).findings}

    assert {("FILE_TOO_LARGE", layout.ROLLOUTS), ("FILE_TOO_LARGE", layout.ADAPTER_WEIGHTS)} <= found
    assert time.process_time() - began < 60


def test_an_empty_file_in_place_of_each_is_named(run_copy: Path, tmp_path: Path) -> None:
    for path in KNOWN:
        place = run_copy / path
        before = place.read_bytes() if place.exists() else None
        place.write_bytes(b"")
        codes = {item.code for item in validate(run_copy).findings}
        place.unlink() if before is None else place.write_bytes(before)

        assert codes or path in (layout.PACKET_HTML, layout.PACKET_PDF), path
        assert "CHECK_STOPPED" not in codes, path


def test_folders_of_any_depth_and_names_of_any_length_end(run_copy: Path) -> None:
    here = os.open(run_copy, os.O_RDONLY)
    for _ in range(700):
        os.mkdir("deeper", dir_fd=here)
        below = os.open("deeper", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    (run_copy / ("n" * 255)).write_bytes(b"")
    found = validate(run_copy).findings
    # Too deep for the library to remove by one path.
    os.system(f"rm -rf {run_copy}/deeper")  # noqa: S605 - a path of the test's own

    assert {"FILE_UNREADABLE", "FILE_STRAY"} == {item.code for item in found}


def test_a_hard_link_is_read_as_the_file_that_it_is(run_copy: Path, tmp_path: Path) -> None:
    os.link(run_copy / layout.PLAN, tmp_path / "plan")

    assert validate(run_copy).findings == ()


# Archives.


def test_names_that_a_file_system_takes_for_one_are_refused(tmp_path: Path) -> None:
    composed, apart = "\u00e9t\u00e9.json", unicodedata.normalize("NFD", "\u00e9t\u00e9.json")
    path = make_archive(tmp_path / "a.zip", ("run_manifest.json", b"{}"), (composed, b"1"), (apart, b"2"), ("x", b"1"),
                  ("RUN_MANIFEST.JSON", b"[]"), ("x/", b""))  # fmt: skip

    assert unpacked_codes(path) == ["ARCHIVE_MEMBER_REPEATED"] * 3


def test_members_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    path = make_archive(tmp_path / "a.zip", ("a", os.urandom(5000)), ("b", b"2"), ("run_manifest.json", b"{}"))
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        target = archive.getinfo("a").header_offset
    entry = data.rindex(b"b", 0, data.rindex(b"run_manifest.json")) - 46
    struct.pack_into("<I", data, entry + 42, target)
    path.write_bytes(data)

    assert unpacked_codes(path) == ["ARCHIVE_MEMBER_MISPLACED"]


@pytest.mark.parametrize(("place", "size"), [(14, 4), (18, 4), (22, 4), (8, 2)])
def test_a_head_that_says_another_thing_than_the_listing_is_refused(tmp_path: Path, place: int, size: int) -> None:
    path = make_archive(tmp_path / "a.zip", ("run_manifest.json", b"{}" * 100))
    data = bytearray(path.read_bytes())
    data[place : place + size] = b"\x01" * size
    path.write_bytes(data)

    assert unpacked_codes(path) == ["ARCHIVE_MEMBER_MISPLACED"]


def test_a_listing_of_millions_is_refused_before_it_becomes_objects(tmp_path: Path) -> None:
    entry = struct.pack("<4s6H3I5H2I", b"PK\x01\x02", *[0] * 6, *[0] * 3, 1, *[0] * 4, 0, 0) + b"a"
    listing = entry * 600_000
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 65535, 65535, len(listing), 0, 0)
    path = tmp_path / "a.zip"
    path.write_bytes(listing + end)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(UnreadableError, match="its listing has"):
        load(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_an_archive_of_seventy_thousand_members_ends(tmp_path: Path) -> None:
    path = make_archive(tmp_path / "a.zip", *((f"{number}", b"") for number in range(70_000)), kind=zipfile.ZIP_STORED)

    assert unpacked_codes(path, Limits(archive_entries=4_000)) == ["ARCHIVE_TOO_LARGE"]


def test_members_in_folders_without_number_end(tmp_path: Path) -> None:
    path = make_archive(tmp_path / "a.zip", *((f"{number}/a/b/c/d", b"") for number in range(50)))

    assert unpacked_codes(path, Limits(directory_entries=100)) == ["ARCHIVE_TOO_LARGE"]


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 0, 0, 0, 0, 0),
        b"run_manifest.json" + bytes(83) + b"0000644\0" + bytes(404),
        b"\x1f\x8b\x08\0" + bytes(100),
        b"7z\xbc\xaf\x27\x1c" + bytes(100),
        b"PK\x03\x04" + bytes(1000),
    ],
    ids=["no members", "tar", "gzip", "7z", "head only"],
)
def test_what_is_no_archive_of_a_run_is_three_lines(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.zip").write_bytes(data)

    with pytest.raises(UnreadableError) as caught:
        load(tmp_path / "a.zip")
    assert str(caught.value).count("\n") == 2


def test_an_archive_in_an_archive_is_not_opened(run_copy: Path, tmp_path: Path) -> None:
    inner = make_archive(tmp_path / "inner.zip", ("zeros", bytes(50_000_000)))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for path in sorted(entry for entry in run_copy.rglob("*") if entry.is_file()):
            archive.write(path, f"run/{path.relative_to(run_copy)}")
        archive.write(inner, "run/inner.zip")

    assert [(item.code, item.where.file) for item in validate(tmp_path / "a.zip").findings] == [
        ("FILE_STRAY", "inner.zip")
    ]


def test_a_comment_of_full_length_is_no_padding(run_copy: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for path in sorted(entry for entry in run_copy.rglob("*") if entry.is_file()):
            archive.write(path, f"run/{path.relative_to(run_copy)}")
        archive.comment = random.Random(1).randbytes(65_535).replace(b"PK", b"pk")

    assert validate(tmp_path / "a.zip").findings == ()


def test_an_archive_with_far_records_is_read(tmp_path: Path) -> None:
    with (
        zipfile.ZipFile(tmp_path / "a.zip", "w") as archive,
        archive.open("run_manifest.json", "w", force_zip64=True) as file,
    ):
        file.write(b"{}")

    assert unpacked_codes(tmp_path / "a.zip") == []


# Pictures.

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


HEAD = chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 2, 0, 0, 0))
END = chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (SIGNATURE + HEAD + chunk(b"acTL", bytes(8)) + END, "animated"),
        (SIGNATURE + HEAD + HEAD + END, "stands twice"),
        (SIGNATURE + END, "does not stand first"),
        (SIGNATURE + HEAD + END + b"PK\x03\x04", "4 bytes follow its end"),
        (SIGNATURE + HEAD + chunk(b"tEXt", b"a\0b") * 20_000 + END, "more than 10000 chunks"),
        (b"GIF89a" + bytes(100), "does not begin as a PNG"),
        (b"\xff\xd8\xff\xe0" + bytes(100), "does not begin as a PNG"),
    ],
)
def test_a_file_that_is_more_or_less_than_one_picture_is_none(data: bytes, words: str) -> None:
    with pytest.raises(PngFaultError, match=words):
        read_png_text(data)


def test_a_packed_text_is_not_unpacked() -> None:
    bomb = chunk(b"zTXt", b"Title\0\0" + zlib.compress(bytes(50_000_000)))

    assert read_png_text(SIGNATURE + HEAD + bomb + END).texts == {}


def test_another_format_under_the_name_of_a_picture_is_named(run_copy: Path) -> None:
    Image.new("RGB", (4, 4)).save(run_copy / "plots" / "loss_curve.png", format="JPEG")

    assert "PLOT_UNREADABLE" in {item.code for item in validate(run_copy).findings}


# Logs.


def test_a_log_of_nothing_but_line_ends_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"\n" * 20_000_000)
    began = time.process_time()
    with path.open("rb") as handle:
        lines = list(read_lines(handle, Limits()))

    assert [(line.number, line.faults[0].code) for line in lines] == [(1, "LINE_BLANK")]
    assert time.process_time() - began < 30


def test_a_log_of_nothing_but_noise_ends_at_the_limit(run_copy: Path) -> None:
    (run_copy / layout.TRAINER_LOG).write_bytes(b"x\n" * 50_000)
    result = validate(run_copy, Limits(log_faults=1_000, findings_a_code=10))
    (item,) = (found for found in result.findings if found.code == "LOG_UNREAD")

    assert item.where.line is not None
    assert item.where.line < 3_000


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize(
    ("limits", "line", "words"),
    [
        (Limits(), 12, "different keys to here, the limit is 1000; the rest was not read"),
        (Limits(trainer_keys=100_000, trainer_cells=100_000), 32, "keys to here, the limit is 100000 values"),
    ],
)
def test_a_trainer_log_with_new_keys_in_each_row_ends_at_the_limit(
    run_copy: Path, tmp_path: Path, form: int, limits: Limits, line: int, words: str
) -> None:
    root = run_copy if form else make_old_run(run_copy, tmp_path / "old")
    row = orjson.loads((root / layout.TRAINER_LOG).read_bytes().splitlines()[0])
    rows = [row | {"step": place + 1} | {f"k{place}_{key}": 1.0 for key in range(100)} for place in range(200)]
    (root / layout.TRAINER_LOG).write_bytes(b"".join(orjson.dumps(item) + b"\n" for item in rows))
    result = validate(root, limits)
    (item,) = (found for found in result.findings if found.code == "LOG_UNREAD")

    assert words in item.what
    assert item.where.line is not None
    assert abs(item.where.line - line) <= 2
    assert result.counts["trainer_rows"] == item.where.line - 1
    assert "CHECK_STOPPED" not in {found.code for found in result.findings}


def test_rows_that_do_not_fit_are_counted_and_not_explained_without_end(run_copy: Path) -> None:
    (run_copy / layout.TRAINER_LOG).write_bytes(b'{"type":1}\n' * 20_000)
    result = validate(run_copy, Limits(findings_a_code=10))

    assert result.omitted["SCHEMA_UNMET"] >= 19_000

"""Edits of files as bytes, and of what stands where a file should: links, pipes, folders, odd names."""

from __future__ import annotations

import csv
import io
import os
import shutil
import socket as sockets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evidence_cases.records import index_of, read_raw, write_raw
from evidence_cases.registry import edit
from evidence_cases.values import bytes_of
from molforge_eval import layout


@edit
def write(root: Path, *, file: str, content: Any) -> None:
    """Write a file, folders included."""
    target = root / file
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(bytes_of(content, root))


@edit
def append(root: Path, *, file: str, content: Any) -> None:
    """Write bytes after the end of a file."""
    (root / file).write_bytes((root / file).read_bytes() + bytes_of(content, root))


@edit
def prepend(root: Path, *, file: str, content: Any) -> None:
    """Write bytes before the start of a file."""
    (root / file).write_bytes(bytes_of(content, root) + (root / file).read_bytes())


@edit
def replace(root: Path, *, file: str, old: Any, new: Any, line: int | None = None, every: bool = False) -> None:
    """Replace bytes, which must be there: the first ones, or all; of the file, or of one line."""
    lines = [(root / file).read_bytes()] if line is None else read_raw(root, file)
    place = 0 if line is None else index_of(lines, line)
    if bytes_of(old, root) not in lines[place]:
        raise LookupError(f"{old!r} does not stand there")
    lines[place] = lines[place].replace(bytes_of(old, root), bytes_of(new, root), -1 if every else 1)
    write_raw(root, file, lines)


@edit
def overwrite(root: Path, *, file: str, content: Any, at: int = 0, after: Any = None) -> None:
    """Write bytes over those at an offset, or over those behind the last place of others."""
    data = bytearray((root / file).read_bytes())
    start = at
    if after is not None:
        mark = bytes_of(after, root)
        start = data.index(mark) + len(mark) + at
    new = bytes_of(content, root)
    data[start : start + len(new)] = new
    (root / file).write_bytes(bytes(data))


@edit
def truncate(root: Path, *, file: str, to: int) -> None:
    """Cut a file to a number of bytes; a negative number says how many go."""
    (root / file).write_bytes((root / file).read_bytes()[:to])


@edit
def delete(root: Path, *, files: Sequence[str]) -> None:
    """Delete files and whole folders."""
    for file in files:
        path = root / file
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


@edit
def rename(root: Path, *, file: str, to: str) -> None:
    """Give a file another name."""
    (root / to).parent.mkdir(parents=True, exist_ok=True)
    (root / file).rename(root / to)


@edit
def copy_file(root: Path, *, file: str, to: str) -> None:
    """Write a file once more under another name, over what is there."""
    (root / to).parent.mkdir(parents=True, exist_ok=True)
    (root / to).write_bytes((root / file).read_bytes())


@edit
def swap_files(root: Path, *, file: str, other: str) -> None:
    """Exchange the bytes of two files."""
    one, two = (root / file).read_bytes(), (root / other).read_bytes()
    (root / file).write_bytes(two)
    (root / other).write_bytes(one)


@edit
def line_endings(root: Path, *, file: str, ending: str = "\r\n", line: int | None = None) -> None:
    """End lines otherwise: one, or all."""
    lines = read_raw(root, file)
    changed = range(len(lines)) if line is None else [index_of(lines, line)]
    for place in changed:
        lines[place] = lines[place].removesuffix(b"\n") + ending.encode()
    write_raw(root, file, lines)


@edit
def byte_order_mark(root: Path, *, file: str) -> None:
    """Begin a file with the mark that some editors write."""
    (root / file).write_bytes(b"\xef\xbb\xbf" + (root / file).read_bytes())


@edit
def cell(root: Path, *, row: int, column: str | int, to: str, file: str = layout.METRICS_TABLE) -> None:
    """Set a cell of the table; row 1 is the head, a column has a name or a number from 0."""
    rows = _read_rows(root, file)
    place = rows[0].index(column) if isinstance(column, str) else column
    rows[row - 1][place] = to
    _write_rows(root, file, rows)


@edit
def add_cell(root: Path, *, row: int, to: str, file: str = layout.METRICS_TABLE) -> None:
    """Put a cell at the end of a row."""
    rows = _read_rows(root, file)
    rows[row - 1].append(to)
    _write_rows(root, file, rows)


@edit
def drop_cell(root: Path, *, row: int, column: str | int, file: str = layout.METRICS_TABLE) -> None:
    """Take a cell out of a row."""
    rows = _read_rows(root, file)
    del rows[row - 1][rows[0].index(column) if isinstance(column, str) else column]
    _write_rows(root, file, rows)


@edit
def drop_column(root: Path, *, column: str, file: str = layout.METRICS_TABLE) -> None:
    """Take a column out of the table."""
    rows = _read_rows(root, file)
    place = rows[0].index(column)
    _write_rows(root, file, [row[:place] + row[place + 1 :] for row in rows])


@edit
def link(root: Path, *, file: str, to: str) -> None:
    """Put a symbolic link."""
    (root / file).unlink(missing_ok=True)
    (root / file).symlink_to(to)


@edit
def pipe(root: Path, *, file: str) -> None:
    """Put a pipe."""
    (root / file).unlink(missing_ok=True)
    os.mkfifo(root / file)


@edit
def socket(root: Path, *, file: str) -> None:
    """Put a socket of this machine."""
    (root / file).unlink(missing_ok=True)
    here = Path.cwd()
    # The name of a socket is short: it is bound from its own folder.
    os.chdir((root / file).parent)
    try:
        with sockets.socket(sockets.AF_UNIX) as bound:
            bound.bind((root / file).name)
    finally:
        os.chdir(here)


@edit
def folder(root: Path, *, file: str) -> None:
    """Put a folder, in place of a file if there is one."""
    (root / file).unlink(missing_ok=True)
    (root / file).mkdir(parents=True)


@edit
def odd_name(root: Path, *, hex: str, content: Any = "") -> None:  # noqa: A002 - the word that a case uses
    """Write a file whose name is the bytes of a hexadecimal number."""
    Path(os.fsdecode(os.fsencode(root) + b"/" + bytes.fromhex(hex))).write_bytes(bytes_of(content, root))


@edit
def crowd(root: Path, *, folder: str, count: int) -> None:
    """Write many empty files."""
    (root / folder).mkdir()
    for number in range(count):
        (root / folder / str(number)).touch()


@edit
def permissions(root: Path, *, file: str, mode: str) -> None:
    """Set the permissions of a file, in octal; the administrator of a machine reads it all the same."""
    (root / file).chmod(int(mode, 8))


def _read_rows(root: Path, file: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO((root / file).read_text("utf-8"), newline="")))


def _write_rows(root: Path, file: str, rows: Sequence[Sequence[str]]) -> None:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(rows)
    (root / file).write_bytes(written.getvalue().encode())

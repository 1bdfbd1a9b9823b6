"""Two processes read a log as one does: the same table and the same findings, whatever stands where the log is cut."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import orjson
import polars as pl
import pytest
from evidence_builder import write

from molforge_eval import layout
from molforge_eval.findings import Finding
from molforge_eval.ledger import Ledger
from molforge_eval.limits import DEFAULT_LIMITS, Limits
from molforge_eval.log_tables import read_rollouts
from molforge_eval.run_files import list_run
from molforge_eval.second_half import join, read_half, reading_second_half
from molforge_eval.strict_json import BYTE_ORDER_MARK

_NEVER = 2**62
Edit = Callable[[list[bytes], int], None]
"""Changes lines; the number is the place of the first line of the second half."""


class Reading(NamedTuple):
    """What reading a log gave."""

    table: pl.DataFrame
    findings: tuple[Finding, ...]
    omitted: dict[str, int]


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)


def read(root: Path, *, split_bytes: int, limits: Limits = DEFAULT_LIMITS) -> Reading:
    ledger = Ledger(limits.findings_a_code)
    table = read_rollouts(list_run(root), ledger, limits, split_bytes=split_bytes)
    return Reading(table, ledger.findings(), ledger.omitted())


def assert_read_alike(root: Path, limits: Limits = DEFAULT_LIMITS) -> Reading:
    """Read by one process and by two."""
    alone, together = (read(root, split_bytes=size, limits=limits) for size in (_NEVER, 1))

    assert together.table.equals(alone.table)
    assert together.table.schema == alone.table.schema
    assert together[1:] == alone[1:]
    return together


def is_second_half_sound(root: Path) -> bool:
    log = root / layout.ROLLOUTS
    with log.open("rb") as handle:
        handle.seek(log.stat().st_size // 2)
        handle.readline()
        return read_half(handle, DEFAULT_LIMITS) is not None


def read_second_half(root: Path) -> pl.DataFrame | None:
    with reading_second_half(list_run(root), DEFAULT_LIMITS, split_bytes=1) as half:
        return None if half is None else half.wait()


def seam_of(lines: list[bytes]) -> int:
    """Find the first line of the second half."""
    middle, begin = sum(map(len, lines)) // 2, 0
    for place, line in enumerate(lines):
        begin += len(line)
        if begin > middle:
            return place + 1
    raise ValueError("the log is empty")


def interleave(lines: list[bytes]) -> list[bytes]:
    """Put the first lines of all episodes first, then the second ones, and so on: where it is cut, all are open."""
    turns: dict[str, int] = {}
    order = []
    for line in lines:
        episode = orjson.loads(line)["episode_id"]
        turns[episode] = turns.get(episode, 0) + 1
        order.append((turns[episode], line))
    return [line for _, line in sorted(order, key=lambda pair: pair[0])]


@pytest.fixture
def woven(run_copy: Path) -> Path:
    """A sound run whose episodes are all open where its log is cut."""
    lines = interleave((run_copy / layout.ROLLOUTS).read_bytes().splitlines(keepends=True))
    write(run_copy, layout.ROLLOUTS, b"".join(lines))
    return run_copy


def edit_log(root: Path, edit: Edit) -> None:
    lines = (root / layout.ROLLOUTS).read_bytes().splitlines(keepends=True)
    edit(lines, seam_of(lines))
    write(root, layout.ROLLOUTS, b"".join(lines))


def change(line: bytes, **changes: object) -> bytes:
    return orjson.dumps({**orjson.loads(line), **changes}) + b"\n"


def _spell_with_blanks(lines: list[bytes], seam: int) -> None:
    for place in (1, seam + 3):
        lines[place] = lines[place].replace(b'":', b'": ')


def _blank_early(lines: list[bytes], _: int) -> None:
    lines[1] = b"\n" + lines[1]


def _blank_late(lines: list[bytes], seam: int) -> None:
    lines[seam + 3] = b"\n" + lines[seam + 3]


def _misfit_early(lines: list[bytes], seam: int) -> None:
    lines[seam - 2] = change(lines[seam - 2], turn="late")


def _misfit_late(lines: list[bytes], seam: int) -> None:
    lines[seam + 2] = change(lines[seam + 2], turn="late")


def _nul_early(lines: list[bytes], _: int) -> None:
    lines[2] = lines[2].replace(b"e", b"\0", 1)


def _nul_late(lines: list[bytes], seam: int) -> None:
    lines[seam + 2] = lines[seam + 2].replace(b"e", b"\0", 1)


def _mark_start(lines: list[bytes], _: int) -> None:
    lines[0] = BYTE_ORDER_MARK + lines[0]


def _mark_seam(lines: list[bytes], seam: int) -> None:
    lines[seam] = BYTE_ORDER_MARK + lines[seam]


def _return_all(lines: list[bytes], _: int) -> None:
    lines[:] = [line[:-1] + b"\r\n" for line in lines]


def _cut_end(lines: list[bytes], _: int) -> None:
    lines[-1] = lines[-1][:-20]


def _leave_end_open(lines: list[bytes], _: int) -> None:
    lines[-1] = lines[-1][:-1]


def _repeat_key_late(lines: list[bytes], seam: int) -> None:
    lines[seam + 2] = lines[seam + 2].replace(b"{", b'{"turn":0,', 1)


def _make_one_list(lines: list[bytes], _: int) -> None:
    lines[:] = [b"[\n", *(line[:-1] + b",\n" for line in lines[:-1]), lines[-1], b"]\n"]


@pytest.mark.parametrize(
    ("edit", "is_sound", "codes"),
    [
        (_make_one_list, False, {"LINE_NOT_OBJECT"}),
        (_spell_with_blanks, True, set()),
        (_blank_early, True, {"LINE_BLANK"}),
        (_blank_late, False, {"LINE_BLANK"}),
        (_misfit_early, True, {"SCHEMA_UNMET"}),
        (_misfit_late, False, {"SCHEMA_UNMET"}),
        (_nul_early, True, {"TEXT_NUL"}),
        (_nul_late, False, {"TEXT_NUL"}),
        (_mark_start, True, {"TEXT_MARKED"}),
        (_mark_seam, False, set()),
        (_return_all, False, {"LINE_RETURNED"}),
        (_cut_end, False, {"LINE_CUT"}),
        (_leave_end_open, True, set()),
        (_repeat_key_late, False, {"KEY_REPEATED"}),
    ],
)
def test_an_odd_line_is_read_as_by_one_process(woven: Path, edit: Edit, is_sound: bool, codes: set[str]) -> None:
    edit_log(woven, edit)
    reading = assert_read_alike(woven)

    assert {found.code for found in reading.findings} == codes
    assert is_second_half_sound(woven) is is_sound


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_a_blank_line_at_the_seam_is_read_as_by_one_process(woven: Path, shift: int) -> None:
    def blank(lines: list[bytes], seam: int) -> None:
        lines[seam + shift] = b"\n" * 3 + lines[seam + shift]

    edit_log(woven, blank)
    reading = assert_read_alike(woven)

    assert [found.code for found in reading.findings] == ["LINE_BLANK"]


def test_a_sound_log_is_read_as_by_one_process(run_copy: Path) -> None:
    reading = assert_read_alike(run_copy)

    assert reading.findings == ()
    assert reading.table["chain_holds"].all()
    assert read_second_half(run_copy) is not None


def test_chains_go_on_over_the_seam(woven: Path) -> None:
    reading = assert_read_alike(woven)
    episodes = reading.table.group_by("episode_id").agg(pl.len())
    half = read_second_half(woven)

    assert reading.table["chain_holds"].all()
    assert half is not None
    assert half.filter(~pl.col("chain_holds")).height == half["episode_id"].n_unique() > len(episodes) // 2


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_a_chain_that_breaks_at_the_seam_breaks_once(woven: Path, shift: int) -> None:
    def pay(lines: list[bytes], seam: int) -> None:
        # As many bytes as before, so that the log is cut at the same line.
        old = orjson.loads(lines[seam + shift])["timestamp"]
        lines[seam + shift] = change(lines[seam + shift], timestamp=old.replace("2026", "2025"))

    seam = seam_of((woven / layout.ROLLOUTS).read_bytes().splitlines(keepends=True))
    edit_log(woven, pay)
    broken = assert_read_alike(woven).table.filter(~pl.col("chain_holds"))

    assert broken["line"].to_list() == [seam + shift + 1]
    assert is_second_half_sound(woven)


def test_a_line_dropped_before_the_seam_breaks_the_chain_behind_it(woven: Path) -> None:
    edit_log(woven, lambda lines, seam: lines.__delitem__(seam - 2))

    assert assert_read_alike(woven).table["chain_holds"].to_list().count(False) == 1


def test_the_limit_on_faults_ends_the_reading_at_the_same_line(woven: Path) -> None:
    def spoil(lines: list[bytes], seam: int) -> None:
        lines[seam - 4 : seam] = [b"x" + line[1:] for line in lines[seam - 4 : seam]]

    edit_log(woven, spoil)
    reading = assert_read_alike(woven, Limits(log_faults=3))

    assert reading.findings[-1].code == "LOG_UNREAD"


@pytest.mark.parametrize("limits", [Limits(line_bytes=700), Limits(json_depth=2)], ids=["line_bytes", "json_depth"])
def test_the_second_process_keeps_the_limits(woven: Path, limits: Limits) -> None:
    reading = assert_read_alike(woven, limits)

    assert reading.findings


@pytest.mark.parametrize(
    "program", ["exit 0", "exit 3", "kill -9 $$", "echo no table", "head -c 2000 /dev/zero", "exec sleep 0 <&- >&-"]
)
def test_a_process_that_gives_no_table_changes_nothing(
    woven: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\n{program}\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))

    assert read_second_half(woven) is None
    assert assert_read_alike(woven).findings == ()


def test_a_process_that_cannot_be_started_changes_nothing(woven: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(woven / "absent"))
    with reading_second_half(list_run(woven), DEFAULT_LIMITS, split_bytes=1) as half:
        assert half is None

    assert assert_read_alike(woven).findings == ()


def test_the_process_ends_with_the_reading(woven: Path) -> None:
    with reading_second_half(list_run(woven), DEFAULT_LIMITS, split_bytes=1) as half:
        assert half is not None

    assert half.process.returncode is not None


def test_a_short_log_or_a_single_core_starts_no_process(woven: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = list_run(woven)
    with reading_second_half(files, DEFAULT_LIMITS, split_bytes=files.sizes[layout.ROLLOUTS] + 1) as half:
        assert half is None
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    with reading_second_half(files, DEFAULT_LIMITS, split_bytes=1) as half:
        assert half is None


def test_a_log_of_one_line_is_not_cut(woven: Path) -> None:
    edit_log(woven, lambda lines, _: lines.__delitem__(slice(1, None)))
    reading = assert_read_alike(woven)

    assert len(reading.table) == 1


def test_a_half_is_not_joined_to_a_log_that_changed_since(woven: Path) -> None:
    files = list_run(woven)
    half = read_second_half(woven)
    assert half is not None
    last = dict.fromkeys(half["episode_id"], "0" * 64)
    write(woven, layout.ROLLOUTS, b"x" * files.sizes[layout.ROLLOUTS])

    assert join(half, files, DEFAULT_LIMITS, lines=0, last=last) is None
    (woven / layout.ROLLOUTS).unlink()
    assert join(half, files, DEFAULT_LIMITS, lines=0, last=last) is None


def test_a_half_with_an_odd_line_is_no_table(woven: Path) -> None:
    log = woven / layout.ROLLOUTS
    with log.open("rb") as handle:
        table = read_half(handle, DEFAULT_LIMITS)
    assert table is not None
    assert len(table) == log.read_bytes().count(b"\n")
    log.write_bytes(log.read_bytes() + b"\n")
    with log.open("rb") as handle:
        assert read_half(handle, DEFAULT_LIMITS) is None

"""The spreadsheet against the rollout log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from evidence_builder import read_lines, write

from molforge_eval import layout
from molforge_eval.checks.tables import check
from molforge_eval.findings import Finding
from molforge_eval.limits import Limits
from molforge_eval.run_directory import load

Edit = Callable[[list[bytes]], list[bytes]]


def compare(run: Path, edit: Edit) -> list[Finding]:
    table = run / layout.METRICS_TABLE
    table.write_bytes(b"".join(edit(table.read_bytes().splitlines(keepends=True))))
    return list(check(load(run)))


@pytest.mark.parametrize(
    "edit",
    [
        lambda rows: rows,
        lambda rows: [rows[0], *(row.replace(b",0.01,", b",1e-2,") for row in rows[1:])],
        lambda rows: [b'"timestamp"' + rows[0][len(b"timestamp") :], *rows[1:]],
    ],
    ids=["as written", "spelling of a number", "quotes"],
)
def test_another_spelling_of_the_same_table_is_the_same_table(run_copy: Path, edit: Edit) -> None:
    assert compare(run_copy, edit) == []


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (lambda rows: [row.replace(b"\n", b"\r\n") for row in rows], "LINE_RETURNED"),
        (lambda rows: [b"\xef\xbb\xbf" + rows[0], *rows[1:]], "TEXT_MARKED"),
    ],
)
def test_what_a_spreadsheet_adds_when_it_saves_is_tolerated_and_said(run_copy: Path, edit: Edit, code: str) -> None:
    (item,) = compare(run_copy, edit)

    assert (item.code, item.where.line) == (code, 1)
    assert item.severity != "error"


@pytest.mark.parametrize("cell", ["=1+1", "+cmd", "-2+3", "@SUM(1)", "\t=1", '"\r=1"'])
def test_a_cell_that_a_spreadsheet_would_run_is_named(run_copy: Path, cell: str) -> None:
    edit = lambda rows: [rows[0], rows[1].rsplit(b",", 1)[0] + b"," + cell.encode() + b"\n", *rows[2:]]  # noqa: E731 - an edit as above
    with_log = compare(run_copy, edit)
    (run_copy / layout.ROLLOUTS).unlink()
    alone = compare(run_copy, lambda rows: rows)

    assert {item.code for item in with_log} >= {"TABLE_FORMULA"}
    assert [(item.code, item.severity, item.where.pointer) for item in alone] == [
        ("TABLE_FORMULA", "warning", "summary")
    ]


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (lambda rows: [*rows, b'"open\n'], "TABLE_UNREADABLE"),
        (lambda rows: [*rows, b'"' + b"x" * 200_000 + b'"\n'], "TABLE_UNREADABLE"),
        (lambda rows: [*rows, b"," * 5_000_000 + b"\n"], "TABLE_UNREADABLE"),
        (lambda rows: [*rows, b'"\n",' * 3_000 + b"\n"], "TABLE_UNREADABLE"),
        (lambda rows: [*rows, b"\n" * 20_000], "TABLE_ROW_SURPLUS"),
        (lambda rows: [row.replace(b",", b";") for row in rows], "TABLE_HEADER_DIFFERS"),
        (lambda rows: [b"a" + b",a" * 1_000_000 + b"\n", *rows], "TABLE_HEADER_DIFFERS"),
        (lambda rows: [*rows[:3], b"a\0b\n", *rows[3:]], "TEXT_NUL"),
        (lambda rows: [*rows[:3], b"\xff\n", *rows[3:]], "TEXT_UNDECODABLE"),
        (lambda rows: [b"".join(rows).decode().encode("utf-16")], "TEXT_UNDECODABLE"),
    ],
)
def test_what_is_no_table_is_named_whatever_it_is(run_copy: Path, edit: Edit, code: str) -> None:
    assert code in {item.code for item in compare(run_copy, edit)}


def test_a_dropped_row_is_one_finding_with_its_episode_and_step(run_copy: Path) -> None:
    line = read_lines(run_copy)[9]
    (item,) = compare(run_copy, lambda rows: [*rows[:10], *rows[11:]])

    assert (item.code, item.where.line) == ("TABLE_ROW_MISSING", 11)
    assert (item.where.episode, item.where.step) == (line["episode_id"], line["step_index"])
    assert item.what.startswith("line 10 of the rollout log")


def test_an_added_row_is_one_finding_with_its_line(run_copy: Path) -> None:
    (item,) = compare(run_copy, lambda rows: [*rows[:10], rows[40], *rows[10:]])

    assert (item.code, item.where.line) == ("TABLE_ROW_SURPLUS", 11)


def test_a_changed_cell_is_named_by_its_column(run_copy: Path) -> None:
    line = read_lines(run_copy)[0]
    spelled = str(line["remaining_budget"]).encode()
    (item,) = compare(run_copy, lambda rows: [rows[0], rows[1].replace(b"," + spelled + b",", b",77777,"), *rows[2:]])

    assert (item.code, item.where.line, item.where.pointer) == ("TABLE_ROW_DIFFERS", 2, "remaining_budget")
    assert item.what == f'the cell is "77777", line 1 of the rollout log gives "{line["remaining_budget"]}"'


def test_a_ragged_row_is_named_by_its_number_of_cells(run_copy: Path) -> None:
    found = compare(run_copy, lambda rows: [*rows[:4], rows[4].rstrip(b"\n") + b",more\n", *rows[5:]])

    assert {item.where.line for item in found} == {5}
    assert {item.code for item in found} <= {"TABLE_ROW_DIFFERS", "TABLE_ROW_SURPLUS", "TABLE_ROW_MISSING"}


def test_a_column_that_stands_twice_is_another_header(run_copy: Path) -> None:
    (item,) = compare(run_copy, lambda rows: [rows[0].replace(b",summary", b",reward"), *rows[1:]])

    assert (item.code, item.where.line) == ("TABLE_HEADER_DIFFERS", 1)


def test_without_a_log_every_row_is_still_held_to_its_shape(run_copy: Path) -> None:
    (run_copy / layout.ROLLOUTS).unlink()
    assert compare(run_copy, lambda rows: rows) == []
    found = compare(run_copy, lambda rows: [*rows[:3], rows[3].replace(b",false,", b",no,", 1), b"1,2\n", *rows[4:]])

    assert [(item.code, item.where.line) for item in found] == [("SCHEMA_UNMET", 4), ("SCHEMA_UNMET", 5)]


def test_an_empty_file_is_another_header(run_copy: Path) -> None:
    (item,) = compare(run_copy, lambda _: [])

    assert item.code == "TABLE_HEADER_DIFFERS"


def test_a_flag_or_number_that_is_neither_is_named(run_copy: Path) -> None:
    found = compare(run_copy, lambda rows: [rows[0], rows[1].replace(b",false,", b",perhaps,", 1), *rows[2:]])

    assert [(item.code, item.where.pointer) for item in found] == [("TABLE_ROW_DIFFERS", "done")]


def test_a_table_beyond_the_limit_on_files_is_compared_too(run_copy: Path) -> None:
    run = replace(load(run_copy), limits=Limits(file_bytes=100))

    assert list(check(run)) == []


def test_a_difference_in_a_table_beyond_the_limit_is_named_with_what_was_not_compared(run_copy: Path) -> None:
    path = run_copy / layout.METRICS_TABLE
    head, first, *rows = path.read_bytes().split(b"\n")
    write(run_copy, layout.METRICS_TABLE, b"\n".join([head, first.replace(b"level_", b"lever_"), *rows]))
    found = list(check(replace(load(run_copy), limits=Limits(file_bytes=100))))

    assert [(item.code, item.where.line, item.where.pointer) for item in found] == [
        ("TABLE_ROW_DIFFERS", 2, "scenario_id"),
        ("FILE_TOO_LARGE", None, None),
    ]
    assert found[-1].what.endswith("the rows from 1 on were not all compared")

"""Levels, order, counts and independence of checks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from evidence_builder import edit_line, read_lines, write, write_lines

from molforge_eval import layout
from molforge_eval.catalogue import finding
from molforge_eval.findings import Finding
from molforge_eval.limits import Limits
from molforge_eval.run_directory import RunDirectory, load
from molforge_eval.validate import conclude, count_evidence, examine, level_of, validate


@pytest.mark.parametrize(
    ("codes", "level"),
    [
        ((), "E2"),
        (("FILE_LINKED",), None),
        (("SCHEMA_UNMET",), "E0"),
        (("CHAIN_BROKEN",), "E1"),
        (("CHAIN_BROKEN", "SCHEMA_UNMET"), "E0"),
        (("FILE_STRAY", "TEXT_MARKED"), "E2"),
        (("REPLAY_STEP_DIFFERS",), "E2"),
    ],
)
def test_the_level_is_the_highest_that_no_error_denies(codes: tuple[str, ...], level: str | None) -> None:
    assert level_of([finding(code, "x") for code in codes], "E2")[0] == level


def test_the_reason_names_the_code_that_denies_the_next_level() -> None:
    found = [finding(code, "x") for code in ("ROOT_DIFFERS", "CHAIN_BROKEN", "CHAIN_BROKEN")]

    assert level_of(found, "E3") == ("E1", "E2 is denied by CHAIN_BROKEN and 1 more")


def test_a_check_that_stops_is_a_finding_and_hides_no_other(built_run: Path) -> None:
    def stop(_: RunDirectory) -> Iterator[Finding]:
        yield finding("FILE_STRAY", "seen before it stopped")
        raise RuntimeError("nobody thought of this")

    def go_on(_: RunDirectory) -> Iterator[Finding]:
        yield finding("ARTIFACT_MISSING", "seen by the next check")

    found = examine(load(built_run), {"first": stop, "second": go_on}).findings()

    assert [item.code for item in found] == ["FILE_STRAY", "CHECK_STOPPED", "ARTIFACT_MISSING"]
    assert found[1].what == "check first stopped on this evidence: RuntimeError: nobody thought of this"


def test_findings_stand_in_the_order_of_the_checks_whichever_is_done_first(built_run: Path) -> None:
    is_done = Event()

    def scan(_: RunDirectory) -> Iterator[Finding]:
        yield finding("FILE_STRAY", "scanned" if is_done.wait(timeout=60) else "the others waited")

    def count(_: RunDirectory) -> Iterator[Finding]:
        yield finding("FILE_STRAY", "counted")
        is_done.set()

    def stop(_: RunDirectory) -> Iterator[Finding]:
        raise RuntimeError("beside the others")
        yield

    run = load(built_run, Limits(findings_a_code=3))
    ledger = examine(run, {"privacy": scan, "numbers": count, "seals": stop, "tables": count, "plots": count})

    assert [item.what for item in ledger.findings()] == [
        "scanned",
        "counted",
        "check seals stopped on this evidence: RuntimeError: beside the others",
        "counted",
    ]
    assert ledger.omitted() == {"FILE_STRAY": 1}


def test_a_file_that_vanishes_while_it_is_checked_is_named(run_copy: Path) -> None:
    run = load(run_copy)
    for path in (layout.TRAINER_LOG, layout.METRICS_TABLE, layout.ADAPTER_WEIGHTS, "plots/loss_curve.png"):
        (run_copy / path).unlink()
    found = examine(run).findings()

    assert {item.where.file for item in found if item.code == "FILE_UNREADABLE"} == {
        layout.TRAINER_LOG,
        layout.METRICS_TABLE,
        layout.ADAPTER_WEIGHTS,
        "plots/loss_curve.png",
    }
    assert {item.code for item in found} == {"FILE_UNREADABLE"}


def test_findings_stand_by_severity_then_file_then_line(run_copy: Path) -> None:
    write(run_copy, "stray", b"")
    edit_line(run_copy, 9, chain="0" * 64)
    edit_line(run_copy, 2, layout.TRAINER_LOG, time="yesterday")
    found = validate(run_copy).findings
    places = [(item.severity != "error", item.where.file or "", item.where.line or 0) for item in found]

    assert places == sorted(places)
    assert found[-1].code == "FILE_STRAY"


def test_a_flood_of_findings_is_counted_beyond_the_limit(run_copy: Path) -> None:
    write_lines(run_copy, [{**line, "chain": "0" * 64} for line in read_lines(run_copy)])
    count = len(read_lines(run_copy))
    result = validate(run_copy, Limits(findings_a_code=10))

    assert sum(item.code == "CHAIN_BROKEN" for item in result.findings) == 10
    assert result.omitted["CHAIN_BROKEN"] == count - 10


def test_what_was_looked_at_is_counted(built_run: Path) -> None:
    assert validate(built_run).counts == {
        "records": 17,
        "rollout_lines": len(read_lines(built_run)),
        "training_episodes": 24,
        "trainer_rows": 5,
        "evaluation_episodes": 18,
        "plots": 6,
    }


def test_a_pointer_into_a_json_file_gets_its_line(built_run: Path) -> None:
    run = load(built_run)
    ledger = examine(run, {})
    ledger.add(finding("SUMMARY_DIFFERS", "x", file=layout.SUMMARY, pointer="/run_name"))
    ledger.add(finding("SUMMARY_DIFFERS", "x", file=layout.SUMMARY, pointer="plan.turn_limit"))
    first, second = conclude(run, ledger, reached="E2", reason="", counts=count_evidence(run)).findings
    lines = (built_run / layout.SUMMARY).read_text("utf-8").splitlines()

    assert first.where.line is None
    assert '"run_name"' in lines[(second.where.line or 0) - 1]


def test_a_result_says_nothing_of_the_place_where_the_run_stood(built_run: Path) -> None:
    assert str(built_run.parent) not in validate(built_run).model_dump_json()

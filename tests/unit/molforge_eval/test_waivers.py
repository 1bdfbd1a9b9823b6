"""Waivers let a finding pass until a day, and hide nothing."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from xml.etree import ElementTree as ET

import orjson
import pytest
from evidence_builder import write

from molforge_env.command_line import run_to_code
from molforge_env.errors import UsageError
from molforge_eval.cli.evaluate import cli
from molforge_eval.findings import Finding, Place
from molforge_eval.limits import Limits
from molforge_eval.shape import shape_of
from molforge_eval.validate import validate
from molforge_eval.waivers import Waiver, apply_waivers, read_waivers

DAY = date(2027, 1, 31)
STRAY = """
[[waiver]]
code = "FILE_STRAY"
where = "notes*"
reason = "the organiser asked for notes"
until = 2027-01-31
"""


def run(*arguments: str | Path) -> int:
    return run_to_code(cli, [str(argument) for argument in arguments])


def found(code: str = "FILE_STRAY", **place: object) -> Finding:
    return Finding(code=code, severity="warning", where=Place.model_validate(place), what="x", mend="Mend it.")


def waiver(where: str, code: str = "FILE_STRAY") -> Waiver:
    return Waiver(code=code, where=where, reason="known", until=DAY)


@pytest.fixture
def flawed(run_copy: Path) -> Path:
    write(run_copy, "notes.txt", b"hello")
    return run_copy


@pytest.fixture
def waivers(tmp_path: Path) -> Path:
    file = tmp_path / "waivers.toml"
    file.write_text(STRAY, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("where", "place"),
    [
        ("*", {}),
        ("run directory", {}),
        ("notes.txt", {"file": "notes.txt"}),
        ("notes.*", {"file": "notes.txt", "line": 3}),
        ("notes.txt:3", {"file": "notes.txt", "line": 3}),
        ("a.json /b/*", {"file": "a.json", "pointer": "/b/0"}),
        ("*, episode e1, step 2", {"file": "a", "episode": "e1", "step": 2}),
    ],
)
def test_a_place_is_covered_in_each_of_its_spellings(where: str, place: dict[str, object]) -> None:
    assert waiver(where).covers(found(**place))


@pytest.mark.parametrize("where", ["notes.txt:4", "note", "NOTES.TXT", "b/notes.txt"])
def test_another_place_and_another_code_are_not_covered(where: str) -> None:
    assert not waiver(where).covers(found(file="notes.txt", line=3))
    assert not waiver("*", "PICKLE_PRESENT").covers(found())


def test_a_waiver_holds_through_its_last_day_and_no_longer() -> None:
    held = apply_waivers([found()], {}, [waiver("*")], today=DAY)
    over = apply_waivers([found()], {}, [waiver("*")], today=date(2027, 2, 1))

    assert (len(held.findings), len(held.waived), held.uses[0].state) == (0, 1, "used")
    assert (len(over.findings), len(over.waived)) == (1, 0)
    assert (over.uses[0].state, over.uses[0].findings) == ("expired", 1)


def test_the_first_waiver_takes_a_finding_and_the_second_covers_nothing() -> None:
    parted = apply_waivers([found(file="a")], {}, [waiver("a"), waiver("*")], today=DAY)

    assert [use.state for use in parted.uses] == ["used", "unused"]


def test_findings_that_were_not_kept_are_waived_by_anywhere_only(flawed: Path) -> None:
    for number in range(5):
        write(flawed, f"stray{number}.txt", b"x")
    result = validate(flawed, Limits(findings_a_code=2))
    assert result.omitted == {"FILE_STRAY": 4}

    by_place = result.waived_by([waiver("*.txt")], today=DAY)
    assert by_place.has_errors(strict=True)
    everywhere = result.waived_by([waiver("*")], today=DAY)
    assert everywhere.waived_omitted == {"FILE_STRAY": 4}
    assert not everywhere.limited_to({"FILE_STRAY"}).has_errors(strict=True)


def test_a_waived_finding_does_not_fail_the_run_and_is_shown_in_every_voice(
    flawed: Path, waivers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kinds = ("json", "github", "markdown", "junit", "sarif")
    options = [word for kind in kinds for word in ("--format", f"{kind}={tmp_path / kind}")]
    only = ("--only", "FILE_STRAY")
    assert run("validate", flawed, "--strict", "--quiet", *only) == 1
    assert run("validate", flawed, "--strict", *only, "--waivers", waivers, "--as-of", "2027-01-31", *options) == 0
    printed = capsys.readouterr().out
    said = {kind: (tmp_path / kind).read_text(encoding="utf-8") for kind in kinds}

    line = "waived (1): FILE_STRAY at notes* until 2027-01-31: the organiser asked for notes"
    assert line in printed
    assert "    where: notes.txt" in printed
    assert "findings: none, 1 waived" in printed
    assert line in said["github"]
    assert "the organiser asked for notes" in said["markdown"]
    assert ET.fromstring(said["junit"]).get("skipped") == "1"
    value = orjson.loads(said["json"])
    assert (value["waivers"][0]["state"], value["waived"][0]["finding"]["where"]["file"]) == ("used", "notes.txt")
    assert list(shape_of("validation_result").explain(value)) == []
    (result,) = orjson.loads(said["sarif"])["runs"][0]["results"]
    assert result["suppressions"] == [
        {"kind": "external", "status": "accepted", "justification": "the organiser asked for notes (until 2027-01-31)"}
    ]


def test_an_expired_waiver_is_told_and_the_finding_counts(
    flawed: Path, waivers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--strict", "--only", "FILE_STRAY", "--waivers", waivers, "--as-of", "2027-02-01")
    assert run("validate", flawed, *arguments) == 1

    assert "expired waiver (1 count again): FILE_STRAY at notes*" in capsys.readouterr().out


def test_the_level_counts_what_was_waived(run_copy: Path) -> None:
    (run_copy / "checksums.json").unlink()
    result = validate(run_copy)
    waived = result.waived_by([waiver("*", finding.code) for finding in result.findings], today=DAY)

    assert not waived.has_errors(strict=True)
    assert waived.level == result.level != "E2"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("x = 1", "waivers file: key"),
        ("[waiver]", "waivers file: waiver is no list of tables"),
        ("waiver = [1]", "waivers file: waiver is no list of tables"),
        ("[[waiver]]\ncode", "waivers file: it is no TOML"),
        ("\udcff", "waivers file: it is no TOML"),
        (STRAY.replace("FILE_STRAY", "NO_SUCH"), "waivers file: waiver 1: code"),
        (STRAY.replace("until = 2027-01-31", ""), "waivers file: waiver 1: until: Field required"),
        (STRAY.replace("2027-01-31", '"soon"'), "waivers file: waiver 1: until: "),
        (STRAY.replace("the organiser asked for notes", "  "), "waivers file: waiver 1: reason: "),
        (STRAY + "who = 1", "waivers file: waiver 1: who: "),
        ("#" * 2**21, "waivers file: it is larger than"),
        (".".join("a" * 50_000) + " = 1", "waivers file: a line of it has more than 200 dots"),
        (STRAY * 1_001, "waivers file: it holds 1001 waivers"),
    ],
)
def test_a_waivers_file_that_says_something_else_is_wrong_usage(text: str, what: str, tmp_path: Path) -> None:
    file = tmp_path / "waivers.toml"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError) as caught:
        read_waivers(file)

    assert str(caught.value).startswith(what)
    assert len(str(caught.value).splitlines()) == 3


def test_nobody_waives_the_findings_of_their_own_run(flawed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(flawed, "waivers.toml", STRAY.encode())
    assert run("validate", flawed, "--waivers", flawed / "waivers.toml") == 2
    assert "it stands in the run that is judged" in capsys.readouterr().err


def test_a_waivers_file_that_is_absent_is_wrong_usage(flawed: Path) -> None:
    assert run("validate", flawed, "--waivers", "absent.toml", "--quiet") == 2

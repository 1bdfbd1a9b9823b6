"""`--format KIND[=FILE]` and `--only CODE` on the command line."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import orjson
import pytest
from evidence_builder import edit_line, write

from molforge_env.command_line import run_to_code
from molforge_eval.cli.evaluate import cli
from molforge_eval.shape import shape_of


def run(*arguments: str | Path) -> int:
    return run_to_code(cli, [str(argument) for argument in arguments])


@pytest.fixture
def flawed(run_copy: Path) -> Path:
    edit_line(run_copy, 3, chain="0" * 64)
    write(run_copy, "notes.txt", b"hello")
    return run_copy


def test_several_formats_go_to_files_and_text_is_printed(
    flawed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kinds = ("json", "github", "markdown", "junit", "sarif")
    options = [word for kind in kinds for word in ("--format", f"{kind}={kind}.out")]
    assert run("validate", flawed, *options, "absent") == 3
    files = {kind: (tmp_path / f"{kind}.out").read_text(encoding="utf-8") for kind in kinds}

    assert "error CHAIN_BROKEN (" in capsys.readouterr().out
    assert [answer["path"] for answer in orjson.loads(files["json"])] == ["run", "absent"]
    assert files["github"].startswith("::error file=run/")
    assert "| <code>absent</code> | unreadable |" in files["markdown"]
    assert ET.fromstring(files["junit"]).get("errors") == "1"
    assert orjson.loads(files["sarif"])["version"] == "2.1.0"
    assert all(str(tmp_path) not in text for text in files.values())


@pytest.mark.parametrize("kind", ["github", "markdown", "junit", "sarif"])
def test_a_format_without_a_file_is_printed_alone(
    kind: str, built_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("validate", built_run, "--format", kind) == 0
    out = capsys.readouterr().out

    assert out
    assert "looked at:" not in out


@pytest.mark.parametrize("asked", [1, 2])
def test_a_run_that_cannot_be_read_has_its_answer_in_json(
    asked: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = [tmp_path / name for name in ("gone", "absent")][-asked:]
    assert run("validate", *absent, "--format", "json") == 3
    value = orjson.loads(capsys.readouterr().out)
    answer = value if asked == 1 else value[-1]

    assert list(shape_of("validation_result").explain(answer)) == []
    assert (answer["run"], answer["level"], answer["run_format"]) == ("absent", None, None)
    assert "does not exist" in answer["unreadable"]["what"]


def test_a_run_that_cannot_be_read_is_told_by_the_other_voices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("validate", tmp_path / "absent", "--format", "github") == 3
    assert capsys.readouterr().out.startswith("::error title=unreadable%3A absent::")


def test_quiet_prints_nothing_and_still_writes_the_files(
    built_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("validate", built_run, "--quiet", "--format", "github", "--format", f"json={tmp_path / 'a.json'}") == 0

    assert capsys.readouterr().out == ""
    assert orjson.loads((tmp_path / "a.json").read_bytes())["level"] == "E2"


@pytest.mark.parametrize(
    ("formats", "what"),
    [
        (("yaml",), "format 'yaml': 'yaml' is no kind"),
        (("json", "text"), "format 'text': json is printed already"),
        (("json=",), "format 'json=': no file can be written there"),
        (("json=absent/a.json",), "format 'json=absent/a.json': no file can be written there"),
        (("json=a", "junit=./a"), "format 'junit=./a': the file is named twice"),
        (("json=run/a.json",), "format 'json=run/a.json': the file would stand in the run"),
    ],
)
def test_a_format_that_cannot_be_had_is_wrong_usage(
    formats: tuple[str, ...], what: str, run_copy: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(run_copy.parent)
    assert run("validate", "run", *(word for kind in formats for word in ("--format", kind))) == 2
    said, where, _ = capsys.readouterr().err.splitlines()

    assert (said, where) == (what, "  where: --format")


def test_only_limits_what_is_shown_and_what_fails(flawed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("validate", flawed, "--only", "file_stray", "--format", "json") == 0
    value = orjson.loads(capsys.readouterr().out)

    assert {finding["code"] for finding in value["findings"]} == {"FILE_STRAY"}
    assert value["only"] == ["FILE_STRAY"]
    assert value["left_out"] > 0
    assert list(shape_of("validation_result").explain(value)) == []
    assert run("validate", flawed, "--only", "FILE_STRAY", "--only", "CHAIN_BROKEN", "--quiet") == 1
    assert run("validate", flawed, "--only", "FILE_STRAY", "--require", "E2", "--quiet") == 1
    assert run("validate", flawed, "--only", "NO_SUCH", "--quiet") == 2

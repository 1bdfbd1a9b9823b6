"""The voices of a CI job: golden on a flawed run, and on texts that a stranger chose to be read as something else."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import orjson
import pytest
from evidence_builder import edit_line
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from syrupy.assertion import SnapshotAssertion

from molforge_env.errors import UnreadableError
from molforge_eval.findings import Finding, Place, Severity
from molforge_eval.validate import validate
from molforge_eval.validation_result import ValidationResult
from molforge_eval.voices import github, junit, markdown, sarif, text
from molforge_eval.voices.judged_run import JudgedRun

VOICES = {"github": github.render, "markdown": markdown.render, "junit": junit.render, "sarif": sarif.render}
HOSTILE = (
    "a\n::add-mask::b\r\n##[error]c\x00\x1b[2J\ud800\ufffe %0A::error::d | `e` <img src=x onerror=f> &amp; "
    "[g](https://example.org) @h #1 ]]> </failure> {0} \u202e www.example.org **i** _j_ \\"
)


def found(code: str = "CHAIN_BROKEN", severity: Severity = "error", what: str = "x", **place: object) -> Finding:
    return Finding(code=code, severity=severity, where=Place.model_validate(place), what=what, mend="Mend it.")


def judged(*findings: Finding, path: str = "runs/a", is_folder: bool = True, **given: object) -> JudgedRun:
    result = ValidationResult(
        run=path,
        run_id=None,
        run_format=1,
        level="E1",
        level_reason="E2 is denied by CHAIN_BROKEN",
        root_sha256=None,
        counts={},
        findings=findings,
        omitted={},
    )
    return JudgedRun(path, is_folder, result)._replace(**given)


def hostile_run() -> JudgedRun:
    # `model_construct`: the schema of a finding refuses some of these texts, and a voice must stand without it.
    place = Place.model_construct(file=HOSTILE, line=3, pointer=HOSTILE, episode=HOSTILE, step=1)
    finding = Finding.model_construct(
        code="CHAIN_BROKEN", severity="error", where=place, what=HOSTILE, mend="Copy the log again."
    )
    run = judged()
    assert run.result is not None
    result = run.result.model_copy(update={"findings": (finding,), "level_reason": HOSTILE})
    return run._replace(path=f"runs/{HOSTILE}", result=result, wanted="E2")


def unreadable(what: str = HOSTILE) -> JudgedRun:
    return JudgedRun("runs/b", is_folder=False, result=None, error=UnreadableError(what, where="b", mend="Name it."))


@pytest.fixture(scope="module")
def flawed(sample_run_archive: Path, tmp_path_factory: pytest.TempPathFactory) -> JudgedRun:
    import tarfile

    folder = tmp_path_factory.mktemp("flawed")
    with tarfile.open(sample_run_archive) as archive:
        archive.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    edit_line(root, 3, chain="0" * 64)
    (root / "notes.txt").write_bytes(b"hello")
    return JudgedRun("submissions/a", is_folder=True, result=validate(root), wanted="E2")


@pytest.mark.parametrize("kind", sorted(VOICES))
def test_a_flawed_run_and_one_that_cannot_be_read(kind: str, flawed: JudgedRun, snapshot: SnapshotAssertion) -> None:
    assert VOICES[kind]([flawed, unreadable("the archive is cut")]) == snapshot


@pytest.mark.parametrize("kind", sorted(VOICES))
def test_a_voice_says_that_findings_were_limited(kind: str) -> None:
    run = judged(found(), found("FILE_STRAY", "warning"), found("FILE_STRAY", "warning"))
    assert run.result is not None
    limited = run.result.limited_to({"CHAIN_BROKEN"})
    said = VOICES[kind]([run._replace(result=limited)])

    assert "FILE_STRAY" not in said
    assert "CHAIN_BROKEN" in said
    if kind in {"github", "markdown"}:
        assert "findings of other codes that are not shown: 2" in said
    elif kind == "junit":
        assert '<property name="only" value="CHAIN_BROKEN" />' in said
        assert '<property name="left_out" value="2" />' in said
    else:
        told = orjson.loads(said)["runs"][0]["properties"]["evidence"][0]
        assert (told["only"], told["leftOut"]) == (["CHAIN_BROKEN"], 2)
    assert "limited to CHAIN_BROKEN; findings of other codes that are not shown: 2" in text.render(limited)


def test_limited_findings_still_count_for_the_level_and_omitted_ones_are_counted() -> None:
    run = judged(found(), found("FILE_STRAY", "warning"))
    assert run.result is not None
    many = run.result.model_copy(update={"omitted": {"CHAIN_BROKEN": 5, "FILE_STRAY": 7}})
    limited = many.limited_to(["FILE_STRAY"])

    assert [finding.code for finding in limited.findings] == ["FILE_STRAY"]
    assert limited.omitted == {"FILE_STRAY": 7}
    assert limited.left_out == 6
    assert limited.level == many.level
    assert not limited.has_errors()


def test_every_line_for_github_is_one_command_of_ours() -> None:
    lines = github.render([hostile_run(), unreadable()]).split("\n")

    assert lines.pop() == ""
    assert [line[: line.index(" ")] for line in lines] == ["::error", "::error", "::error"]
    for line in lines:
        assert line.isprintable()
        properties = line[len("::error ") :].split("::")[0]
        assert re.fullmatch(r"(file=[^,:]+,)?(line=\d+,)?title=[^,:]+", properties)


def test_github_escapes_percent_return_newline_colon_and_comma() -> None:
    assert github.command("error", "a%\r\n:,", title="a%\r\n:,") == "::error title=a%25%0D%0A%3A%2C::a%25%0D%0A:,"


def test_github_gets_the_gravest_first_and_three_of_a_code_unless_all_are_wanted() -> None:
    run = judged(found("FILE_STRAY", "warning"), *(found(file="logs/a.jsonl", line=number) for number in range(1, 6)))
    short = github.render([run]).splitlines()
    whole = github.render([run], show_all=True).splitlines()

    assert [line.split(" ")[0] for line in short] == ["::error", "::error", "::error", "::warning", "::error"]
    assert short[0].startswith("::error file=runs/a/logs/a.jsonl,line=1,title=CHAIN_BROKEN in runs/a::x%0Awhere: logs/")
    assert short[2].endswith("%0Amore of this code: 2")
    assert len(whole) == 7


def test_an_archive_is_annotated_as_a_whole_and_a_path_out_of_the_run_not_at_all() -> None:
    archive = judged(found(file="logs/a.jsonl", line=3), path="a.zip", is_folder=False)
    outside = judged(found(file="../../secret", line=3))

    assert github.render([archive]).startswith("::error file=a.zip,title=")
    assert github.render([outside]).startswith("::error title=")
    assert (
        "secret"
        not in orjson.loads(sarif.render([outside]))["runs"][0]["results"][0]["locations"][0]["physicalLocation"][
            "artifactLocation"
        ]["uri"]
    )


def test_a_hostile_text_is_a_plain_cell_of_the_summary() -> None:
    page = markdown.render([hostile_run(), unreadable()])
    assert all(line.isprintable() for line in page.split("\n"))
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(page)
    inline = [child for token in tokens if token.type == "inline" for child in token.children or ()]
    rows = [token.type for token in tokens].count("tr_open")
    cells = [token.type for token in tokens].count("td_open")

    assert {child.type for child in inline} <= {
        "text",
        "text_special",
        "html_inline",
        "code_inline",
        "strong_open",
        "strong_close",
    }
    assert {child.content for child in inline if child.type == "html_inline"} == {"<code>", "</code>"}
    assert (rows, cells) == (5, 2 * 7 + 6)
    assert "example.org" not in page
    assert "@" not in page


def test_junit_is_one_case_a_run_and_code_and_warnings_fail_when_strict() -> None:
    run = judged(found(), found(line=4), found("FILE_STRAY", "warning"))
    plain, strict = (ET.fromstring(junit.render([item])) for item in (run, run._replace(strict=True)))

    assert [case.get("name") for case in plain.iter("testcase")] == ["level", "CHAIN_BROKEN", "FILE_STRAY"]
    assert (plain.get("tests"), plain.get("failures"), plain.get("errors")) == ("3", "1", "0")
    assert strict.get("failures") == "2"


def test_junit_fails_for_a_level_that_was_required() -> None:
    top = ET.fromstring(junit.render([judged(wanted="E2"), unreadable("cut")]))

    assert [item.get("message") for item in top.iter("failure")] == [
        "level E2 is required, E1 was reached: E2 is denied by CHAIN_BROKEN"
    ]
    assert [item.get("message") for item in top.iter("error")] == ["cut"]


@given(st.text(st.characters(), max_size=40))
def test_junit_is_xml_whatever_a_text_holds(what: str) -> None:
    finding = found().model_copy(update={"what": what})
    top = ET.fromstring(junit.render([judged(finding), hostile_run()]).encode())

    assert len(list(top.iter("failure"))) == 3


def test_sarif_names_rules_places_and_relative_addresses() -> None:
    run = judged(found(file="logs/a b%.jsonl", line=7, episode="e1"), found("FILE_STRAY", "warning"))
    (log,) = orjson.loads(sarif.render([run, hostile_run(), unreadable()]))["runs"]
    rules = log["tool"]["driver"]["rules"]
    uris = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in log["results"]]

    assert [rule["id"] for rule in rules] == ["CHAIN_BROKEN", "FILE_STRAY"]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in log["results"])
    assert [result["level"] for result in log["results"]] == ["error", "warning", "error"]
    assert uris[:2] == ["runs/a/logs/a%20b%25.jsonl", "runs/a"]
    assert re.fullmatch(r"[A-Za-z0-9/%._~-]+", uris[2])
    assert unquote(uris[2]).isprintable()
    assert log["results"][0]["locations"][0]["physicalLocation"]["region"] == {"startLine": 7}
    assert "](" not in log["results"][2]["message"]["text"].replace("\\](", "")
    assert log["invocations"][0]["executionSuccessful"] is False


def test_a_fingerprint_outlives_moved_lines_and_tells_equal_places_apart() -> None:
    def prints(*findings: Finding) -> list[str]:
        (log,) = orjson.loads(sarif.render([judged(*findings)]))["runs"]
        return [result["partialFingerprints"][sarif.FINGERPRINT] for result in log["results"]]

    first = prints(found(file="a", line=3, pointer="/b"), found(file="a", line=4))
    moved = prints(found("FILE_STRAY"), found(file="a", line=9, pointer="/b", what="y"), found(file="a", line=12))
    twice = prints(found(file="a", line=3), found(file="a", line=4))

    assert moved[1:] == first
    assert len(set(twice)) == 2

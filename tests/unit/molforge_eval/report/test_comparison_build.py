from __future__ import annotations

import html
import re
import shutil
import subprocess

import orjson
import pikepdf
import pytest
from evidence_builder import edit_line
from pypdf import PdfReader
from rival_builder import build_rival, rival_id

from molforge_env.command_line import run_to_code
from molforge_env.errors import UnreadableError, UsageError
from molforge_eval import layout
from molforge_eval.cli.report import cli
from molforge_eval.report.comparison_build import ComparisonOptions, compare_runs
from molforge_eval.report.comparison_evidence import ComparisonEvidence
from molforge_eval.report.paper import PaperLimits

FILES = ("comparison.json", "comparison.html", "comparison.pdf")
POLICIES = ("heuristic", "heuristic+random_valid", "random_valid+heuristic")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rivals")
    names = ("first", "second", "third")
    return [
        build_rival(folder / name, number, after=after, seeds=6, settings={"max_grad_norm": 1.0 / number})
        for number, (name, after) in enumerate(zip(names, POLICIES, strict=True), start=1)
    ]


@pytest.fixture(scope="module")
def made(runs, tmp_path_factory):
    told: list[tuple] = []
    out = tmp_path_factory.mktemp("comparison")
    comparison = compare_runs(
        runs, out=out, on_run=lambda *words: told.append(words), on_stage=lambda stage: told.append((stage,))
    )
    return comparison, told


def test_page_paper_and_evidence_are_written_and_nothing_else(made) -> None:
    comparison, _ = made

    assert sorted(path.name for path in comparison.evidence_file.parent.iterdir()) == sorted(FILES)
    assert ComparisonEvidence.model_validate_json(comparison.evidence_file.read_bytes()) == comparison.evidence


def test_every_run_was_played_again(made) -> None:
    assert [run.level for run in made[0].evidence.runs] == ["E3"] * 3
    assert [run.run_id for run in made[0].evidence.runs] == [rival_id(number) for number in (1, 2, 3)]


def test_the_caller_is_told_of_every_run_and_stage(made) -> None:
    told = made[1]

    assert [words for words in told if len(words) == 3] == [
        (1, 3, "first"), (2, 3, "second"), (3, 3, "third"), (3, 3, ""),
    ]  # fmt: skip
    assert [words[0] for words in told[-5:]] == ["compare", "draw", "page", "paper", "write"]


def test_building_again_gives_the_same_bytes(made, runs, tmp_path) -> None:
    compare_runs(runs, out=tmp_path)

    for name in FILES:
        assert (tmp_path / name).read_bytes() == (made[0].evidence_file.parent / name).read_bytes()


def test_the_paper_is_one_sheet_tagged_and_carries_its_evidence(made) -> None:
    with pikepdf.open(made[0].pdf) as pdf:
        assert len(pdf.pages) == 1
        assert bool(pdf.Root.MarkInfo.Marked)
        assert bytes(pdf.attachments["comparison.json"].get_file().read_bytes()) == made[0].evidence_file.read_bytes()
    words = PdfReader(made[0].pdf).pages[0].extract_text()

    assert "first" in words
    assert "max_grad_norm" in words


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    folder = tmp_path_factory.mktemp("others")
    return [build_rival(folder / f"run-{number}", number, after=POLICIES[number % 3], seeds=6) for number in (4, 5, 6)]


@pytest.mark.parametrize("paper", ["A4", "letter"])
def test_six_runs_stand_on_one_sheet_of_its_size(runs, others, tmp_path, paper, press_in_use) -> None:
    options = ComparisonOptions(replay=False, html=False, paper_size=paper)
    comparison = compare_runs([*runs, *others], out=tmp_path, options=options)
    told = subprocess.run(["pdfinfo", str(comparison.pdf)], check=True, capture_output=True, text=True)

    assert paper in told.stdout
    assert len(comparison.evidence.pairs) == 15
    with pikepdf.open(comparison.pdf) as pdf:
        assert len(pdf.pages) == 1


def test_the_page_runs_nothing_and_reads_nothing(made) -> None:
    text = made[0].html.read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]

    assert "script" not in policy
    assert html.unescape(policy).startswith("default-src 'none'")
    assert re.findall(r"<script|<link|<img|<iframe|https?:", text) == []


def test_every_number_on_the_page_is_one_of_the_evidence(made) -> None:
    shown = re.findall(r'<a class="n" data-n="([^"]+)"[^>]*>([^<]*)</a>', made[0].html.read_text())

    assert len(shown) > 40
    assert [(name, text) for name, text in shown if made[0].evidence.number(name).text != text] == []


def test_every_link_of_the_page_leads_inside(made) -> None:
    text = made[0].html.read_text()
    ids = re.findall(r'\bid="([^"]+)"', text)

    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(ids)


def test_a_forged_run_is_marked_and_its_scores_stand_nowhere(runs, tmp_path) -> None:
    forged = shutil.copytree(runs[0], tmp_path / "forged")
    lines = [orjson.loads(line) for line in (forged / layout.ROLLOUTS).read_bytes().splitlines()]
    edit_line(forged, next(n for n, line in enumerate(lines, start=1) if line["ended_by"]), episode_score=0.99)
    options = ComparisonOptions(pdf=False, replay=False)
    comparison = compare_runs([forged, *runs[1:]], out=tmp_path / "out", options=options)
    row = re.search(r'<tr id="r1">.*?</tr>', comparison.html.read_text(), re.DOTALL)[0]

    assert comparison.evidence.run("r1").state == "withheld"
    assert "Withheld" in row
    assert "0.8" not in row


def test_a_run_that_cannot_be_read_stands_on_the_page_and_is_code_3(runs, tmp_path, capsys) -> None:
    (tmp_path / "broken.zip").write_bytes(b"no archive")
    code = run_to_code(
        cli,
        ["compare", str(tmp_path / "broken.zip"), *map(str, runs[:2]), "--out", str(tmp_path / "out"), "--no-pdf",
         "--verify-level", "E2"],
    )  # fmt: skip
    printed = capsys.readouterr()

    assert code == 3
    assert "unreadable" in printed.out
    assert len(printed.err.strip().splitlines()) == 3
    assert "broken.zip" in (tmp_path / "out" / "comparison.html").read_text()


def test_a_name_that_is_not_there_is_said_before_anything_is_played(runs, tmp_path) -> None:
    with pytest.raises(UnreadableError):
        compare_runs([runs[0], runs[1], tmp_path / "absent"], out=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("count", [1, 13])
def test_too_few_or_too_many_runs_are_code_2(runs, tmp_path, count) -> None:
    with pytest.raises(UsageError, match="cannot be compared"):
        compare_runs([runs[0]] * count, out=tmp_path / "out")


def test_the_same_run_twice_is_named_and_nothing_is_compared(runs, tmp_path) -> None:
    shutil.copytree(runs[0], tmp_path / "copy")
    options = ComparisonOptions(pdf=False, replay=False)
    comparison = compare_runs([runs[0], tmp_path / "copy"], out=tmp_path / "out", options=options)

    assert comparison.evidence.outcome == "nothing compared"
    assert "byte for byte" in comparison.html.read_text()


def test_nothing_is_written_into_a_run(runs, tmp_path) -> None:
    with pytest.raises(UsageError, match="would stand in the run"):
        compare_runs(runs, out=runs[0] / "comparison")


def test_a_paper_that_cannot_be_made_leaves_the_page(runs, tmp_path) -> None:
    options = ComparisonOptions(replay=False, paper_limits=PaperLimits(memory_bytes=2**26))
    comparison = compare_runs(runs, out=tmp_path, options=options)

    assert comparison.html.is_file()
    assert comparison.pdf is None
    assert "PDF" in str(comparison.paper_fault)


def test_an_old_run_is_listed_with_what_its_layout_lacks(runs, old_run, tmp_path) -> None:
    options = ComparisonOptions(pdf=False, replay=False)
    comparison = compare_runs([*runs[:2], old_run], out=tmp_path, options=options)
    text = comparison.html.read_text()

    assert comparison.evidence.run("r3").state == "unpaired"
    assert "the layout lacks plan, seeds" in text


def test_the_command_prints_runs_pairs_and_files(runs, tmp_path, capsys) -> None:
    words = ["compare", *map(str, runs), "--out", str(tmp_path), "--no-pdf", "--verify-level", "E2"]

    assert run_to_code(cli, words) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^r1 +first +E2 ", printed, re.MULTILINE)
    assert re.search(r"^r1-r2 +higher|^r1-r2 +not told apart", printed, re.MULTILINE)
    assert f"html      {tmp_path}/comparison.html" in printed


def test_as_json_the_answer_names_every_pair_with_its_numbers(runs, tmp_path, capsys) -> None:
    words = ["compare", *map(str, runs[:2]), "--out", str(tmp_path), "--no-pdf", "--verify-level", "E2", "--json"]
    run_to_code(cli, words)
    answer = orjson.loads(capsys.readouterr().out)

    assert answer["pairs"][0]["seeds"] == 6
    assert answer["pdf"] is None
    assert [run["key"] for run in answer["runs"]] == ["r1", "r2"]


def test_a_broken_template_is_three_lines_and_leaves_what_stood_there(runs, tmp_path, capsys) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "compare_body.html.j2").write_text("\n{{ nothing }}")
    (tmp_path / "comparison.html").write_text("older")
    words = ["compare", *map(str, runs), "--out", str(tmp_path), "--verify-level", "E2"]

    assert run_to_code(cli, [*words, "--templates", str(tmp_path / "own")]) == 2
    assert "compare_body.html.j2:2" in capsys.readouterr().err
    assert (tmp_path / "comparison.html").read_text() == "older"


def test_a_run_that_changes_while_it_is_read_stands_in_the_list_without_a_score(runs, tmp_path) -> None:
    changing = shutil.copytree(runs[0], tmp_path / "changing")
    seen: list[str] = []

    def change(stage: str) -> None:
        seen.append(stage)
        if stage == "judge" and seen.count(stage) == 1:
            (changing / layout.AFTER).touch()

    options = ComparisonOptions(pdf=False, replay=False)
    comparison = compare_runs([changing, *runs[1:]], out=tmp_path / "out", options=options, on_stage=change)

    assert comparison.evidence.run("r1").state == "unreadable"
    assert "changed while it was read" in comparison.evidence.run("r1").reasons[0]
    assert len(comparison.run_faults) == 1

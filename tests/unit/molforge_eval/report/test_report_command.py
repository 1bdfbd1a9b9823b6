from __future__ import annotations

import os

import orjson
import pytest

from molforge_env.command_line import run_to_code
from molforge_eval.cli.report import cli
from molforge_eval.validate import validate


def test_a_built_packet_is_code_0_whatever_was_found_and_names_its_files(run_copy, capsys) -> None:
    (run_copy / "run_manifest.json").write_bytes(b"{}")
    code = run_to_code(cli, ["build", str(run_copy), "--no-pdf", "--no-pack"])
    printed = capsys.readouterr().out

    assert code == 0
    assert "verdict   withheld" in printed
    assert f"html      {run_copy}/judge_packet.html" in printed


def test_as_json_the_answer_is_one_object(run_copy, capsys) -> None:
    run_to_code(cli, ["build", str(run_copy), "--no-pdf", "--no-html", "--no-pack", "--verify-level", "E2", "--json"])
    answer = orjson.loads(capsys.readouterr().out)

    assert answer["level"] == "E2"
    assert answer["html"] is answer["pdf"] is None
    assert answer["evidence"].endswith("evidence.json")


def test_quiet_prints_nothing(run_copy, capsys) -> None:
    run_to_code(cli, ["build", str(run_copy), "--no-pdf", "--no-html", "--no-pack", "--verify-level", "E2", "--quiet"])

    assert capsys.readouterr() == ("", "")


def test_a_title_of_ones_own_stands_on_the_page(small_run) -> None:
    arguments = [
        "build",
        str(small_run),
        "--no-pdf",
        "--no-pack",
        "--verify-level",
        "E2",
        "--quiet",
        "--title",
        "<b>Ours",
    ]

    assert run_to_code(cli, arguments) == 0
    assert "<h1>&lt;b&gt;Ours</h1>" in (small_run / "judge_packet.html").read_text()


@pytest.mark.parametrize(("path", "code"), [("absent", 3), ("", 3)])
def test_what_cannot_be_read_is_three_lines_and_code_3(tmp_path, capsys, path, code) -> None:
    assert run_to_code(cli, ["build", str(tmp_path / path)]) == code
    assert len(capsys.readouterr().err.strip().splitlines()) == 3


def test_a_wrong_option_is_code_2(tmp_path, capsys) -> None:
    assert run_to_code(cli, ["build", str(tmp_path), "--paper", "A0"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 3


def test_an_empty_title_is_code_2_and_three_lines(run_copy, capsys) -> None:
    code = run_to_code(cli, ["build", str(run_copy), "--title", " "])

    assert code == 2
    assert capsys.readouterr().err.splitlines()[:2] == ["the title is empty", "  where: --title"]
    assert not (run_copy / "evidence.json").exists()


def test_an_archive_without_a_folder_to_write_to_is_code_2(tmp_path, capsys) -> None:
    (tmp_path / "run.zip").write_bytes(b"PK")

    assert run_to_code(cli, ["build", str(tmp_path / "run.zip")]) == 2
    assert "--out" in capsys.readouterr().err


def test_a_title_that_is_too_long_is_code_2_and_not_cut(run_copy, capsys) -> None:
    code = run_to_code(cli, ["build", str(run_copy), "--title", "x" * 201])

    assert code == 2
    assert capsys.readouterr().err.splitlines()[0] == "the title has 201 characters, the limit is 200"
    assert not (run_copy / "evidence.json").exists()


def test_a_run_of_the_public_script_gets_its_packet_with_code_0(old_copy, capsys) -> None:
    code = run_to_code(cli, ["build", str(old_copy), "--no-pdf", "--no-pack"])

    assert code == 0
    assert "verdict   inconclusive" in capsys.readouterr().out
    assert "does not record" in (old_copy / "judge_packet.html").read_text()


def test_regeneration_and_a_lower_level_contradict_each_other(run_copy, capsys) -> None:
    assert run_to_code(cli, ["build", str(run_copy), "--regenerate", "--verify-level", "E2"]) == 2
    assert "--regenerate with --verify-level E2" in capsys.readouterr().err


def test_a_title_of_half_characters_is_spelled_out(small_run) -> None:
    options = ["--no-pdf", "--no-pack", "--verify-level", "E2", "--quiet"]

    assert run_to_code(cli, ["build", str(small_run), *options, "--title", "a\udcffb"]) == 0
    assert "a\\udcffb" in (small_run / "judge_packet.html").read_text()


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("raise OSError(\"cannot load library 'libgobject-2.0-0'\")", "needs Pango"),
        ("raise ModuleNotFoundError('no weasyprint')", "needs WeasyPrint"),
        ("import os; os.kill(os.getpid(), 9)", "ended by SIGKILL"),
        ("raise MemoryError", "MemoryError"),
        ("raise RecursionError('too deep')", "too deep"),
    ],
)
def test_a_paper_that_cannot_be_made_is_code_2_in_three_lines_and_the_page_stands(
    small_run, capsys, tmp_path, monkeypatch, fault, why
) -> None:
    # A stand-in for the library, which fails as the real one does on a machine that lacks something.
    (tmp_path / "stand_in").mkdir()
    (tmp_path / "stand_in" / "weasyprint.py").write_text(f"{fault}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "stand_in"), prepend=os.pathsep)
    code = run_to_code(cli, ["build", str(small_run), "--no-pack", "--verify-level", "E2"])
    shown = capsys.readouterr()

    assert code == 2
    assert why in shown.err
    assert len(shown.err.splitlines()) == 3
    assert (small_run / "judge_packet.html").is_file()
    assert not (small_run / "judge_packet.pdf").exists()


@pytest.mark.parametrize("name", [b"run\xff", b"run\nand more\x1b[2J"])
def test_a_run_of_any_name_gets_its_packet_archive_and_answer(run_copy, tmp_path, capsys, name) -> None:
    odd = tmp_path / os.fsdecode(name)
    run_copy.rename(odd)
    arguments = ["build", os.fspath(odd), "--no-pdf", "--verify-level", "E2"]

    assert run_to_code(cli, arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert run_to_code(cli, [*arguments, "--no-html", "--json"]) == 0
    answer = orjson.loads(capsys.readouterr().out)

    assert len(lines) == 6
    assert any(line.endswith("/judge_packet.html") for line in lines)
    assert all(line.isprintable() for line in lines)
    assert answer["evidence"].endswith("/evidence.json")
    assert validate(tmp_path / f"{odd.name}.zip").level == "E2"


@pytest.mark.parametrize(
    "arguments",
    [
        ["build", ""],
        ["build", "{run}", "--out", ""],
        ["build", "{run}", "--templates", ""],
        ["compare", "{run}", ""],
        ["compare", "{run}", "{run}", "--out", ""],
        ["trace", "", "score.mean.after"],
    ],
)
def test_an_empty_name_is_not_taken_for_the_working_folder(run_copy, monkeypatch, capsys, arguments) -> None:
    monkeypatch.chdir(run_copy)
    before = sorted(path.name for path in run_copy.iterdir())

    assert run_to_code(cli, [argument.format(run=run_copy) for argument in arguments]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert "is empty" in lines[-3]
    assert sorted(path.name for path in run_copy.iterdir()) == before


def test_a_folder_of_something_else_is_told_of_its_links_nothing(tmp_path, capsys) -> None:
    (tmp_path / "localtime").symlink_to("/etc/hostname")
    code = run_to_code(cli, ["build", str(tmp_path)])
    told = capsys.readouterr().err

    assert code == 3
    assert "localtime" not in told
    assert "Name the folder that holds run_manifest.json." in told


def test_a_folder_that_holds_a_packet_alone_is_told_to_name_the_packet(tmp_path, capsys) -> None:
    (tmp_path / "judge_packet.pdf").write_bytes(b"%PDF-")
    run_to_code(cli, ["build", str(tmp_path)])

    assert f"Name the packet in it: {tmp_path / 'judge_packet.pdf'}" in capsys.readouterr().err

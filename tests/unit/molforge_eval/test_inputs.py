"""Runs as they are named on the command line: one by one, or by a pattern that the shell left alone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from molforge_env.command_line import run_to_code
from molforge_env.errors import UnreadableError, UsageError
from molforge_eval.archive import pack_run
from molforge_eval.cli.evaluate import cli
from molforge_eval.cli.inputs import expand_run, expand_runs
from molforge_eval.run_directory import load


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with two runs and an archive in sub-folders."""
    for name in ("a", "b", ".hidden", "deep/er/c"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "run_manifest.json").write_text("{}")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.zip").write_bytes(b"")
    (tmp_path / "sub" / "[a].zip").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(*given: str) -> list[str]:
    return [str(run) for run in expand_runs([Path(name) for name in given])]


def test_a_pattern_stands_for_what_it_matches_in_order(here: Path) -> None:
    assert names("runs/*", "sub/*.zip") == ["runs/a", "runs/b", "runs/deep", "sub/[a].zip", "sub/x.zip"]
    assert names("runs/[ab]") == ["runs/a", "runs/b"]
    assert names("*/?.zip") == ["sub/x.zip"]
    assert names("runs/.h*") == ["runs/.hidden"]
    assert names(str(here / "runs" / "?")) == [str(here / "runs/a"), str(here / "runs/b")]


def test_two_stars_match_folders_of_any_depth(here: Path) -> None:
    assert names("runs/**") == ["runs/a", "runs/b", "runs/deep/er/c"]
    assert names("**/*.zip") == ["sub/[a].zip", "sub/x.zip"]
    assert names("**/er/c") == ["runs/deep/er/c"]


def test_a_name_that_exists_wins_over_the_pattern_that_it_is(here: Path) -> None:
    assert names("sub/[a].zip") == ["sub/[a].zip"]


def test_a_name_without_a_pattern_stays_even_if_nothing_is_there(here: Path) -> None:
    assert names("runs/none") == ["runs/none"]


@pytest.mark.parametrize("pattern", ["runs/z*", "none/*", "runs/*/none", "**/none", "sub/x.zip/*"])
def test_a_pattern_that_matches_nothing_is_wrong_usage(here: Path, pattern: str) -> None:
    with pytest.raises(UsageError, match="nothing matches") as caught:
        names(pattern)

    assert len(str(caught.value).splitlines()) == 3


def test_a_pattern_that_ends_in_a_slash_matches_folders_only(here: Path) -> None:
    (here / "runs" / "c.zip").write_bytes(b"")

    assert [str(run) for run in expand_runs(["runs/*"])] == ["runs/a", "runs/b", "runs/c.zip", "runs/deep"]
    assert [str(run) for run in expand_runs(["runs/*/"])] == ["runs/a", "runs/b", "runs/deep"]
    assert run_to_code(cli, ["validate", "sub/*/"]) == 2


def test_a_pattern_follows_no_link(here: Path) -> None:
    (here / "runs" / "link").symlink_to(here / "sub")
    (here / "runs" / "loop").symlink_to(here / "runs")
    (here / "out").symlink_to("/")

    assert names("runs/*") == ["runs/a", "runs/b", "runs/deep"]
    assert names("**/*.zip") == ["sub/[a].zip", "sub/x.zip"]
    with pytest.raises(UsageError, match="nothing matches"):
        names("runs/*/link/../x")


def test_what_is_named_twice_is_looked_at_once_and_that_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "again").symlink_to("runs/a")

    assert names("runs/a", "./runs/a", "runs/?", "again") == ["runs/a", "runs/b"]
    assert capsys.readouterr().err.count("is named twice; it is looked at once") == 3


def test_a_command_that_takes_one_run_takes_a_pattern_that_matches_one(here: Path) -> None:
    assert expand_run(Path("runs/a*")) == Path("runs/a")
    with pytest.raises(UsageError, match="matches 2 files and folders"):
        expand_run(Path("runs/?"))


def test_validation_takes_a_pattern_and_judges_every_match(
    here: Path, built_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        shutil.copytree(built_run, here / "good" / name)
    code = run_to_code(cli, ["validate", "good/*", "--format", "json"])
    printed = capsys.readouterr().out

    assert code == 0
    assert printed.count('"level": "E2"') == 2
    assert run_to_code(cli, ["validate", "good/x*"]) == 2


def test_a_folder_of_runs_is_told_how_to_name_them(here: Path) -> None:
    with pytest.raises(UnreadableError) as caught:
        load(Path("runs"))

    assert "holds 3 of them: .hidden, a, b" in caught.value.what
    assert "molforge-eval validate 'runs/*'" in caught.value.mend


def test_a_folder_with_one_run_in_it_is_told_its_name(here: Path) -> None:
    with pytest.raises(UnreadableError) as caught:
        load(Path("runs/deep/er"))

    assert caught.value.mend == "Name the folder in it: runs/deep/er/c"


def test_an_archive_of_several_runs_names_them(here: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile("many.zip", "w") as archive:
        for name in ("a", "b"):
            archive.writestr(f"{name}/run_manifest.json", "{}")
    with pytest.raises(UnreadableError, match="holds 2 of them: a, b"):
        load(Path("many.zip"))


def test_a_run_under_further_folders_and_beside_the_litter_of_a_desktop_is_found(
    run_copy: Path, tmp_path: Path
) -> None:
    pack_run(run_copy, tmp_path / "plain.zip")
    with zipfile.ZipFile(tmp_path / "plain.zip") as plain, zipfile.ZipFile(tmp_path / "desk.zip", "w") as desk:
        for member in plain.infolist():
            desk.writestr(f"mine/{member.filename}", plain.read(member))
        desk.writestr("__MACOSX/mine/._run", b"\0\5\26\7")
        desk.writestr("mine/.DS_Store", b"")
    run = load(tmp_path / "desk.zip")

    assert run.manifest is not None
    assert [(item.code, item.where.file) for item in run.findings] == [
        ("FILE_STRAY", "mine/.DS_Store"),
        ("FILE_STRAY", "__MACOSX"),
    ]


def test_links_in_a_circle_are_an_unreadable_run(here: Path) -> None:
    (here / "x").symlink_to("y")
    (here / "y").symlink_to("x")

    assert run_to_code(cli, ["validate", "x", "--format", f"json={here}/out.json"]) == 3


def test_a_run_that_is_itself_a_link_is_read_as_the_user_named_it(here: Path, built_run: Path) -> None:
    (here / "link").symlink_to(built_run)

    assert run_to_code(cli, ["validate", "link", "--quiet"]) == 0


def test_a_request_to_end_leaves_nothing_unpacked(run_copy: Path, tmp_path: Path) -> None:
    pack_run(run_copy, tmp_path / "run.zip")
    private = tmp_path / "private"
    private.mkdir()
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", "from molforge_eval.cli.evaluate import main; main()", "verify",
         str(tmp_path / "run.zip"), "--workers", "1"],
        env={**os.environ, "TMPDIR": str(private)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until = time.monotonic() + 60
    while not any(private.iterdir()) and time.monotonic() < until and child.poll() is None:
        time.sleep(0.01)
    child.send_signal(signal.SIGTERM)
    child.wait(timeout=60)

    assert child.returncode != 0
    assert list(private.iterdir()) == []

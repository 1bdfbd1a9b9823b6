"""`molforge-eval validate`, `verify` and `explain` as a user and a CI job meet them."""

from __future__ import annotations

import errno
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from evidence_builder import edit_line, write

from molforge_env.command_line import EXIT_INTERRUPTED, run_to_code
from molforge_env.errors import EXIT_SOUND
from molforge_eval import layout
from molforge_eval.archive import pack_run
from molforge_eval.catalogue import codes
from molforge_eval.cli.evaluate import cli
from molforge_eval.cli.inputs import ended_like_a_key
from molforge_eval.run_directory import load
from molforge_eval.shape import shape_of


def contents(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def run(*arguments: str | Path) -> int:
    return run_to_code(cli, [str(argument) for argument in arguments])


def test_a_sound_run_leaves_with_0_and_says_the_level(built_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("validate", built_run) == 0
    out = capsys.readouterr().out

    assert "level E2: `molforge-eval verify` plays the episodes again" in out
    assert "findings: none" in out


def test_verify_reaches_e3_and_counts_what_was_played(built_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verify", built_run, "--workers", "1") == 0
    out = capsys.readouterr().out

    assert "42 episodes replayed" in out
    assert "0 episodes differing" in out
    assert "level E3" in out


def test_the_root_hash_is_printed_for_a_reader_who_compares_it(
    built_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("validate", built_run)

    assert f"root hash: {load(built_run).checksums.root_sha256}" in capsys.readouterr().out


def test_findings_are_grouped_by_code_and_the_rest_of_a_group_is_counted(
    run_copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(1, 8):
        edit_line(run_copy, number, layout.ROLLOUTS, chain="0" * 64)
    assert run("validate", run_copy) == 1
    short = capsys.readouterr().out
    run("validate", run_copy, "--all")
    whole = capsys.readouterr().out

    assert "error CHAIN_BROKEN (" in short
    assert "more like this (--all)" in short
    assert short.count("where: logs/") < whole.count("where: logs/")
    assert "more like this" not in whole
    assert "    mend:  Copy the log again from where the run was made." in short


def test_a_warning_fails_only_when_strict(run_copy: Path) -> None:
    write(run_copy, "notes.txt", b"hello")

    assert run("validate", run_copy, "--quiet") == 0
    assert run("validate", run_copy, "--quiet", "--strict") == 1


@pytest.mark.parametrize("level", ["E0", "E1", "E2"])
def test_a_required_level_is_one_that_was_reached(tmp_path: Path, level: str) -> None:
    write(tmp_path, layout.MANIFEST, b'{"run_name": "old"}')
    assert run("validate", tmp_path, "--quiet", "--require", level) == 0

    write(tmp_path, layout.MANIFEST, b'{"run_name": 3}')
    assert run("validate", tmp_path, "--quiet", "--require", level) == 1


def test_a_run_that_looks_old_is_validated_and_not_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, layout.MANIFEST, b'{"run_name": "old"}')
    assert run("validate", tmp_path) == 0
    assert capsys.readouterr().err == ""

    for options in ((), ("--quiet",), ("--format", "json")):
        assert run("verify", tmp_path, *options) == 1
        what, where, _ = capsys.readouterr().err.splitlines()
        assert what.startswith("level E3 is required, E2 was reached: the run has format version 0")
        assert what.endswith("no episode was played again")
        assert where == f"  where: {tmp_path.name}"


def test_json_output_fits_its_schema(run_copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit_line(run_copy, 3, chain="0" * 64)
    assert run("validate", run_copy, "--format", "json") == 1
    value = orjson.loads(capsys.readouterr().out)

    assert list(shape_of("validation_result").explain(value)) == []
    assert value["findings"][0]["where"]["file"]


def test_several_runs_give_a_list_and_one_that_is_unreadable_hides_no_other(
    built_run: Path, run_copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("validate", built_run, tmp_path / "absent", run_copy, "--format", "json") == 3
    told = capsys.readouterr()

    assert [answer["level"] for answer in orjson.loads(told.out)] == ["E2", None, "E2"]
    assert told.err.splitlines()[0].endswith("absent does not exist")
    assert [line[:9] for line in told.err.splitlines()[1:]] == ["  where: ", "  mend:  "]


@pytest.mark.parametrize("readable", [0, 1])
def test_several_runs_give_a_list_however_many_can_be_read(
    built_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], readable: int
) -> None:
    asked = [tmp_path / "absent", *[built_run] * readable, tmp_path / "gone"]

    assert run("validate", *asked, "--format", "json") == 3
    assert len(orjson.loads(capsys.readouterr().out)) == readable + 2


def test_a_folder_whose_name_is_no_utf_8_is_named_in_both_formats(
    run_copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = run_copy.with_name("odd\udcff")
    run_copy.rename(odd)

    assert run("validate", odd, "--format", "json") == 0
    assert orjson.loads(capsys.readouterr().out)["run"] == "odd\\udcff"
    assert run("validate", odd) == 0
    assert capsys.readouterr().out.startswith("odd\\udcff  run-")


def test_a_file_that_is_no_run_is_told_what_is_taken(built_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("validate", built_run / layout.PLAN) == 3
    what, _, mend = capsys.readouterr().err.splitlines()

    assert what == "eval_plan.json is no zip archive that can be read: File is not a zip file"
    assert mend.endswith("Name the folder of a run, a zip archive of one, or its packet PDF; no other file is judged.")


def test_a_hostile_name_or_text_moves_no_cursor(run_copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(run_copy, "\x1b[2Jstray", b"")
    edit_line(run_copy, 3, done="\x1b]0;owned\x07 \u202e")
    run("validate", run_copy)
    out = capsys.readouterr().out

    assert "\x1b" not in out
    assert "\x07" not in out
    assert "\u202e" not in out
    assert "u001b[2Jstray" in out


def pieces_of(screen: io.FileIO) -> Iterator[bytes]:
    """Read a terminal until its writer has ended, which Linux tells by an error."""
    with suppress(OSError):
        while piece := screen.read(1 << 16):
            yield piece


def test_the_progress_line_of_a_terminal_shows_a_hostile_name_escaped(run_copy: Path) -> None:
    hostile = run_copy.with_name("a\x1b]0;owned\x07[bold]\u202e")
    run_copy.rename(hostile)
    program = "from molforge_eval.cli.evaluate import main; main()"
    ours, theirs = os.openpty()
    with (
        os.fdopen(ours, "rb", buffering=0) as screen,
        subprocess.Popen(
            [sys.executable, "-c", program, "verify", str(hostile), "--workers", "1"],
            stdout=subprocess.DEVNULL,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
        ) as child,
    ):
        os.close(theirs)
        # A slow machine draws the line many times: a terminal that nobody reads is full after 4 KiB, and its writer
        # waits for ever.
        shown = b"".join(pieces_of(screen))
    assert child.returncode == 0

    assert rb"playing a\u001b]0;owned\u0007[bold]\u202e again" in shown
    assert b"\x1b]0;" not in shown
    assert "\u202e".encode() not in shown


def test_a_code_page_of_windows_on_standard_output_breaks_nothing(run_copy: Path) -> None:
    write(run_copy, "étrange→", b"")
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    command = [sys.executable, "-c", "from molforge_eval.cli.evaluate import main; main()", "validate", str(run_copy)]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)

    assert done.returncode == 0
    assert b"Error" not in done.stderr


def test_explain_prints_rule_reason_example_and_mend(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", "chain_broken") == 0
    entry = codes()["CHAIN_BROKEN"]
    out = capsys.readouterr().out

    assert all(text in out for text in (entry.meaning, entry.rule, entry.reason, entry.example, entry.mend))


def test_explain_without_a_code_lists_all_and_an_unknown_one_is_wrong_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("explain") == 0
    assert len(capsys.readouterr().out.splitlines()) == len(codes())
    assert run("explain", "NO_SUCH") == 2
    what, _, mend = capsys.readouterr().err.splitlines()

    assert what == "finding code 'NO_SUCH' is not in the table"
    assert mend == "  mend:  `molforge-eval explain` without a code lists them all."


def test_explain_names_the_codes_nearest_to_a_misspelled_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", "EPISODE_SEAL_DIFER") == 2

    assert "The nearest: EPISODE_SEAL_DIFFERS" in capsys.readouterr().err.splitlines()[2]


def test_a_limit_can_be_changed(built_run: Path) -> None:
    assert run("validate", built_run, "--quiet", "--limit", "line_bytes=200") == 1


@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ("lines=200", "'lines' is no limit"),
        ("foo", "'foo' is no limit"),
        ("line_bytes", "no number is given"),
        ("line_bytes=many", "'many' is no whole number above 0"),
        ("line_bytes=0", "'0' is no whole number above 0"),
        ("line_bytes=-1", "'-1' is no whole number above 0"),
        ("line_bytes=1e3", "'1e3' is no whole number above 0"),
        (f"line_bytes={'9' * 5000}", "is no whole number above 0"),
    ],
)
def test_a_wrong_limit_is_wrong_usage_in_words_of_ours(
    setting: str, what: str, built_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("validate", built_run, "--limit", setting) == 2
    said, where, mend = capsys.readouterr().err.splitlines()

    assert said.startswith(f"limit '{setting}': ")
    assert said.endswith(what)
    assert where == "  where: --limit"
    assert mend.startswith("  mend:  Give NAME=NUMBER with one of line_bytes, ")


def test_a_validation_writes_nothing_into_the_run(run_copy: Path, tmp_path: Path) -> None:
    untouched = shutil.copytree(run_copy, tmp_path / "untouched")
    run("verify", run_copy, "--workers", "1", "--quiet")

    assert contents(run_copy) == contents(untouched)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_or_a_closed_terminal_leaves_nothing_of_an_archive(
    sample_run: Path, tmp_path: Path, number: signal.Signals
) -> None:
    pack_run(sample_run, tmp_path / "run.zip")
    place = tmp_path / "place"
    place.mkdir()
    start = "from molforge_eval.cli.evaluate import main; main()"
    command = [sys.executable, "-c", start, "verify", "--workers", "1", str(tmp_path / "run.zip")]
    for _ in range(8):
        process = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(place)}, stderr=subprocess.PIPE)
        while process.poll() is None and not list(place.glob("molforge-run-*/*/run_manifest.json")):
            time.sleep(0.01)
        process.send_signal(number)
        _, told = process.communicate(timeout=60)
        # On a busy machine the check can be through before it is asked to end.
        if process.returncode != EXIT_SOUND:
            break

    assert process.returncode == EXIT_INTERRUPTED
    assert told.strip() == b"interrupted"
    assert list(place.iterdir()) == []


def test_a_run_whose_model_is_not_here_stays_at_e3_and_fails_what_was_asked(
    built_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("verify", built_run, "--workers", "1", "--regenerate") == 1
    told = capsys.readouterr()
    assert "warning REGENERATION_BASE_MISSING (2)" in told.out
    assert "level E4 is required, E3 was reached: " in told.err
    assert "verify again with --regenerate" in told.err


@pytest.mark.parametrize("option", ["--base-model", "--input-adapter", "--device"])
def test_an_option_of_regeneration_by_itself_is_refused(
    option: str, built_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("verify", built_run, option, "cpu") == 2
    assert f"{option} is given without --regenerate" in capsys.readouterr().err


def test_without_the_packages_of_a_model_regeneration_says_what_to_install(
    built_run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "trl", None)

    assert run("verify", built_run, "--regenerate") == 2
    told = capsys.readouterr().err
    assert "playing a model needs trl, which this environment has not" in told
    assert 'pip install -c constraints.txt ".[train]"' in told
    assert len(told.splitlines()) == 3


def test_whether_a_run_may_be_read_is_found_by_reading_it_so_that_one_hides_no_other(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    locked = run_copy.with_name("locked.zip")
    pack_run(run_copy, locked)
    opened = Path.open

    def refuse(path: Path, *given: Any, **named: Any) -> Any:
        if path == locked:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(path, *given, **named)

    monkeypatch.setattr(os, "access", lambda *_given, **_named: False)
    monkeypatch.setattr(Path, "open", refuse)

    assert run("validate", locked, run_copy) == 3
    told = capsys.readouterr()
    assert told.err.startswith("locked.zip is no zip archive that can be read: Permission denied\n")
    assert "findings: none" in told.out


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_is_full_while_an_archive_is_unpacked_is_no_fault_of_the_archive(
    run_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    archive = tmp_path / "run.zip"
    pack_run(run_copy, archive)
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    opened = Path.open

    def fill(path: Path, *given: Any, **named: Any) -> Any:
        if path.name == "eval_plan.json":
            raise OSError(number, os.strerror(number))
        return opened(path, *given, **named)

    monkeypatch.setattr(Path, "open", fill)

    assert run("validate", archive) == 3
    what, where, mend = capsys.readouterr().err.splitlines()
    assert what == f"there is no room to unpack run.zip: {os.strerror(number)}"
    assert where == f"  where: {room}"
    assert "TMPDIR" in mend
    assert not list(room.iterdir())


def test_a_folder_for_temporary_files_that_is_none_is_named(
    run_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = tmp_path / "run.zip"
    pack_run(run_copy, archive)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))

    assert run("validate", archive) == 3
    assert capsys.readouterr().err.splitlines()[:2] == [
        "nothing can be unpacked: No such file or directory",
        "  where: TMPDIR",
    ]


def test_a_run_in_which_nothing_names_a_run_id_is_judged_without_a_warning_of_a_library(run_copy: Path) -> None:
    for path in run_copy.rglob("*"):
        if path.suffix in {".json", ".jsonl"}:
            path.write_bytes(b"")
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        assert run("validate", run_copy, "--quiet") == 1


def test_a_closed_terminal_ends_nothing_that_is_to_outlive_it() -> None:
    earlier = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_like_a_key():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, earlier)

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import IO

import click
import pytest

from molforge_env.command_line import run_to_code
from molforge_env.errors import MissingDependencyError, UnreadableError, UsageError

ROOT = Path(__file__).resolve().parents[3]


def _command(error: BaseException | None = None, result: object = None) -> click.Command:
    @click.command(name="lab")
    @click.option("--count", type=int)
    def command(count: int | None) -> object:
        if error is not None:
            raise error
        return result

    return command


def _run_apart(body: str, closing: str, stdout: IO[bytes] | int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    """Run a command of that body in a shell that closes a stream."""
    imports = "import click\nfrom molforge_env.command_line import run\n"
    program = f"{imports}@click.command()\ndef lab():\n    {body}\nrun(lab, [])"
    return subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {closing}', sys.executable, program],
        cwd=ROOT,
        text=True,
        check=False,
        timeout=60,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("w", where="p", mend="m"), 2),
        (MissingDependencyError("w", where="p", mend="m"), 2),
        (UnreadableError("w", where="p", mend="m"), 3),
    ],
)
def test_an_error_of_ours_is_three_lines_and_its_code(capsys, error, code) -> None:
    assert run_to_code(_command(error), []) == code
    assert capsys.readouterr().err == "w\n  where: p\n  mend:  m\n"


def test_an_unforeseen_error_is_three_lines_and_no_traceback(capsys, monkeypatch) -> None:
    monkeypatch.delenv("MOLFORGE_TRACEBACK", raising=False)

    assert run_to_code(_command(ZeroDivisionError("by\nzero")), []) == 2

    what, where, mend = capsys.readouterr().err.splitlines()
    assert what == "unforeseen error (ZeroDivisionError: by zero)"
    assert where.startswith("  where: ")
    assert "MOLFORGE_TRACEBACK=1" in mend


def test_a_failing_disk_is_unreadable_evidence(capsys) -> None:
    assert run_to_code(_command(OSError(28, "No space left on device")), []) == 3

    what, where, mend = capsys.readouterr().err.splitlines()
    assert what == "there is no room to write to: No space left on device"
    assert where.startswith("  where: ")
    assert "Make room" in mend


@pytest.mark.parametrize(("name", "place"), [("runs/log", "runs/log"), (b"runs/log", "runs/log"), (7, __name__)])
def test_a_full_disk_is_named_by_the_file_that_it_was_met_in(name, place, capsys) -> None:
    """A file that was opened by its number has no name; then the line of ours is named that wrote."""
    error = OSError(28, "No space left on device", name)
    assert run_to_code(_command(error), []) == 3
    where = capsys.readouterr().err.splitlines()[1]
    assert where.startswith(f"  where: {place}" if name != 7 else "  where: molforge_env.command_line:")


@pytest.mark.parametrize(("text", "place"), [("click.echo('word')", "standard output"), ("print('word')", "molforge_")])
def test_a_full_standard_output_is_three_lines(text, place) -> None:
    with Path("/dev/full").open("wb") as full:
        done = _run_apart(text, "", stdout=full)

    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 3
    assert done.stderr.startswith("there is no room to write to")
    assert f"  where: {place}" in done.stderr


def test_a_closed_standard_output_changes_no_exit_code() -> None:
    done = _run_apart("click.echo('word'); return 1", ">&-")

    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_a_closed_standard_error_sends_no_error_to_standard_output() -> None:
    done = _run_apart("raise ZeroDivisionError", "2>&-")

    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


def test_the_traceback_shows_when_it_is_asked_for(monkeypatch) -> None:
    monkeypatch.setenv("MOLFORGE_TRACEBACK", "1")

    with pytest.raises(ZeroDivisionError):
        run_to_code(_command(ZeroDivisionError()), [])


def test_wrong_usage_is_three_lines(capsys) -> None:
    assert run_to_code(_command(), ["--count", "many"]) == 2
    assert run_to_code(_command(), ["--colour"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 6


def test_a_group_without_a_command_shows_its_help(capsys) -> None:
    group = click.Group("lab", commands=[_command()])

    assert run_to_code(group, []) == 2
    assert "Commands:" in capsys.readouterr().err


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interruption_is_130(capsys, error) -> None:
    assert run_to_code(_command(error), []) == 130
    assert capsys.readouterr().err.strip() == "interrupted"


@pytest.mark.parametrize(("result", "code"), [(None, 0), (0, 0), (1, 1), ("text", 0)])
def test_a_command_gives_its_code_by_returning_it(result, code) -> None:
    assert run_to_code(_command(result=result), []) == code


def test_help_is_no_failure(capsys) -> None:
    assert run_to_code(_command(), ["--help"]) == 0
    assert "--count" in capsys.readouterr().out


def test_what_stands_at_the_end_is_left_to_the_system() -> None:
    told = _run_apart("import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 0))", "")

    assert (told.returncode, told.stdout, told.stderr) == (0, "True\n", "")


def test_a_reader_that_goes_away_is_no_error() -> None:
    program = (
        "import click; from molforge_env.command_line import run\n"
        "@click.command()\n"
        "def lines():\n"
        "    for number in range(100_000): print(number)\n"
        "run(lines)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 0


def test_a_last_line_into_a_closed_pipe_is_no_error() -> None:
    program = (
        "import click, sys; from molforge_env.command_line import run\n"
        "@click.command()\n"
        "def line():\n"
        "    sys.stdin.read(); print('late')\n"
        "run(line)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == ""
        assert process.wait() == 0


def test_a_narrow_code_page_is_no_error() -> None:
    program = (
        "import click; from molforge_env.command_line import run\n"
        "@click.command()\n"
        "def line(): print('0.8 \\u2192 0.9')\n"
        "run(line)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONIOENCODING": "cp1252", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert "→" in done.stdout.decode("utf-8")


def test_an_error_that_nobody_can_be_told_keeps_its_exit_code() -> None:
    body = "from molforge_env.errors import UnreadableError; raise UnreadableError('a', where='b', mend='c')"

    assert _run_apart(body, "2>/dev/full").returncode == UnreadableError.exit_code


def test_a_working_directory_that_is_gone_is_told_of(tmp_path: Path) -> None:
    body = "import os; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); os.getcwd()"
    done = _run_apart(f"import os; os.chdir({str(tmp_path)!r}); {body}", "")

    assert done.returncode == UsageError.exit_code
    assert done.stderr.splitlines()[0] == "the working directory does not exist any more"

"""The one runner of every command line: text of errors, exit codes, streams.

An error of ours is three lines on standard error and its exit code; anything unforeseen becomes three lines as well.
A traceback shows only with `MOLFORGE_TRACEBACK=1`.
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import click

from molforge_env.errors import (
    EXIT_SOUND,
    EXIT_UNREADABLE,
    EXIT_USAGE,
    OUT_OF_SPACE,
    MolForgeError,
    UnreadableError,
    UsageError,
)

EXIT_INTERRUPTED = 130


def run(command: click.Command, arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and leave the process with its exit code.

    A command gives a code other than 0 by returning an integer or by `context.exit`.

    Args:
        command: A click command or group.
        arguments: Instead of the process's own.
    """
    code = run_to_code(command, arguments)
    # The collector would walk all that stands, half a million objects with torch, only to throw it away: 2 to 16 s.
    gc.freeze()
    sys.exit(_flush() or code)


def run_to_code(command: click.Command, arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; errors are printed, never raised."""
    _open_closed_streams()
    _force_utf8()
    stdout, stderr = sys.stdout, sys.stderr
    try:
        result = command.main(args=None if arguments is None else list(arguments), standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return EXIT_USAGE
    except click.ClickException as error:
        return report_error(_usage_error(error))
    except MolForgeError as error:
        return report_error(error)
    except SystemExit:
        # Click leaves by itself, behind a stream of its own, when the reader went away, such as `| head`: nothing is
        # wrong with the work.
        if sys.stdout is stdout:
            raise
        sys.stdout, sys.stderr = stdout, stderr
        _silence_stdout()
        return EXIT_SOUND
    except Exception as error:  # noqa: BLE001 - the process boundary: no traceback may reach a user
        return _report_unforeseen(error)
    return result if isinstance(result, int) else EXIT_SOUND


def report_error(error: MolForgeError) -> int:
    """Print the three lines of an error on standard error.

    Returns:
        The exit code that belongs to it.
    """
    _print_on_stderr(str(error))
    return error.exit_code


def report_note(text: str) -> None:
    """Print one line that is no error on standard error."""
    _print_on_stderr(text)


def _print_on_stderr(text: str) -> None:
    # What cannot be said there cannot be said anywhere, and the exit code still has to tell it.
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def _usage_error(error: click.ClickException) -> MolForgeError:
    context = getattr(error, "ctx", None)
    path = "command line" if context is None else context.command_path
    mend = "Look at `--help`." if context is None else f"Look at `{context.command_path} --help`."
    return MolForgeError(error.format_message().rstrip(".").replace("\n", " "), where=path, mend=mend)


def _report_unforeseen(error: Exception) -> int:
    # The one place that may show a traceback, and only when asked.
    if os.environ.get("MOLFORGE_TRACEBACK") == "1":  # noqa: TID251 - read where it is used, before any settings exist
        raise error
    if isinstance(error, OSError) and error.errno in OUT_OF_SPACE:
        return report_error(_without_room(error, _place_of_write(error)))
    if isinstance(error, FileNotFoundError) and _is_nowhere():
        what = "the working directory does not exist any more"
        return report_error(UsageError(what, where="working directory", mend="Change into a folder that exists."))
    what = " ".join(f"{type(error).__name__}: {error}".split())
    _print_on_stderr(
        f"unforeseen error ({what})\n  where: {_place_of(error)}\n"
        "  mend:  Run it again with MOLFORGE_TRACEBACK=1 and report the output."
    )
    return EXIT_UNREADABLE if isinstance(error, OSError) else EXIT_USAGE


def _is_nowhere() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _place_of(error: Exception) -> str:
    frame = error.__traceback__
    place = "unknown"
    while frame is not None:
        name = frame.tb_frame.f_globals.get("__name__", "")
        if name.startswith("molforge_"):
            place = f"{name}:{frame.tb_lineno}"
        frame = frame.tb_next
    return place


def _force_utf8() -> None:
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="replace")


def _without_room(error: OSError, place: str) -> UnreadableError:
    what = f"there is no room to write to: {error.strerror}"
    return UnreadableError(what, where=place, mend="Make room where the output goes, and run it again.")


def _place_of_write(error: OSError) -> str:
    # A file that was opened by its number has that in place of a name.
    if isinstance(error.filename, str | bytes):
        return os.fsdecode(error.filename)
    # What is said on standard error cannot be told of when that is full, so an echo that fails is one on the other.
    is_printing = any(frame.f_code is click.echo.__code__ for frame, _ in traceback.walk_tb(error.__traceback__))
    return "standard output" if is_printing else _place_of(error)


def _open_closed_streams() -> None:
    # A stream that the caller has closed is None here; without a void in its place, output would raise, errors would be
    # printed on the other stream, and the next file opened would be taken for it.
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open to the end


def _flush() -> int:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader went away, such as `| head`: nothing is wrong with the work.
        _silence_stdout()
    except OSError as error:
        _silence_stdout()
        return report_error(_without_room(error, "standard output"))
    return EXIT_SOUND


def _silence_stdout() -> None:
    # The interpreter flushes once more at exit; into the void it cannot fail.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import threading
from pathlib import Path

PROGRAM = "from molforge_eval.cli.report import main; main()"


def _said_on_a_terminal(*words: str) -> tuple[str, str]:
    """What a command prints on standard output, and what it shows on a standard error that is a terminal."""
    ours, theirs = pty.openpty()
    shown: list[bytes] = []

    def read() -> None:
        try:
            while block := os.read(ours, 65536):
                shown.append(block)
        except OSError:
            return  # the terminal is closed

    reader = threading.Thread(target=read)
    reader.start()
    line = [sys.executable, "-c", PROGRAM, *words]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    done = subprocess.run(
        line,
        check=True,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        env=environment,
    )
    os.close(theirs)
    reader.join(timeout=20)
    os.close(ours)
    return done.stdout, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", b"".join(shown).decode())


def test_a_terminal_is_shown_the_stages_and_a_bar_over_the_episodes(run_copy: Path) -> None:
    printed, shown = _said_on_a_terminal("build", str(run_copy), "--no-pdf", "--no-pack")

    for words in ("checking, playing again", "judging before and after", "drawing the charts", "making the page"):
        assert words in shown
    assert "0:00:" in shown
    assert "drawing" not in printed


def test_quiet_is_quiet_on_a_terminal_too(small_run: Path) -> None:
    words = ("build", str(small_run), "--no-pdf", "--no-pack", "--verify-level", "E2", "--quiet")

    assert _said_on_a_terminal(*words) == ("", "")


def test_a_standard_error_that_is_no_terminal_is_told_nothing(small_run: Path) -> None:
    line = [sys.executable, "-c", PROGRAM, "build", str(small_run), "--no-pdf", "--no-pack", "--verify-level", "E2"]
    done = subprocess.run(line, check=True, capture_output=True, text=True)

    assert done.stderr == ""
    assert done.stdout.startswith("verdict ")

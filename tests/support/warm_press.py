"""A press that has loaded its library: each document is printed by a fork of one process, under the usual limits.

Loading takes longer than printing one page, and many tests print one page. What a child of its own is good for, and how
it may end, has tests that start one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from molforge_eval.report import paper
from molforge_eval.report.paper import PaperLimits

_PROGRAM = """
import os, sys, traceback
from pathlib import Path
import weasyprint
from molforge_eval.report import paper_press
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = paper_press.main(Path(line.strip()))
        except BaseException:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Press:
    """The process; it ends when it is closed."""

    def __init__(self) -> None:
        line = [sys.executable, "-P", "-c", _PROGRAM]
        self._process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Print every paper here, as long as the block lasts."""
        with mock.patch.object(paper, "_run_child", self._print):
            yield

    def close(self) -> None:
        """Let the process end."""
        with self._process:
            pass

    def _print(self, folder: Path, _limits: PaperLimits) -> None:
        self._process.stdin.write(f"{folder}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "0\n"

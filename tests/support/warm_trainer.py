"""Processes that run the command line, forked from one that has imported the libraries of training, which is slow.

As a script it reads one order a line: what to run and where to say it, or which process to wait for.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class Child:
    """A process of the command line."""

    def __init__(self, server: subprocess.Popen[str], words: Sequence[str], said: Path, first: str) -> None:
        self._server = server
        self.returncode: int | None = None
        self.pid = int(self._ask({"words": list(words), "said": str(said), "first": first}))

    def _ask(self, order: object) -> str:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()
        return self._server.stdout.readline()

    def poll(self) -> int | None:
        """Return the exit code, or `None` as long as the process runs; what ended by a signal is negative."""
        if self.returncode is None:
            told = self._ask({"pid": self.pid, "how": os.WNOHANG}).strip()
            self.returncode = int(told) if told else None
        return self.returncode

    def wait(self) -> int:
        """Wait for the end, and return the exit code."""
        if self.returncode is None:
            self.returncode = int(self._ask({"pid": self.pid, "how": 0}))
        return self.returncode

    def kill(self) -> None:
        """End the process as the system does that is out of memory."""
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)


class WarmTrainer:
    """Starts processes that have imported what training takes."""

    def __init__(self, server: subprocess.Popen[str]) -> None:
        self._server = server

    def start(self, words: Sequence[str], said: Path, first: str = "") -> Child:
        """Start the command line.

        Args:
            words: Its arguments.
            said: File that gets both of its streams.
            first: Python that the process runs before.
        """
        return Child(self._server, words, said, first)


@contextmanager
def warm_trainer() -> Iterator[WarmTrainer]:
    """Import once, and leave no process behind."""
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).resolve())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        process_group=0,
    ) as server:
        try:
            yield WarmTrainer(server)
        finally:
            os.killpg(server.pid, signal.SIGKILL)


def _serve() -> None:
    from molforge_train.host_libraries import import_host

    import_host()
    for line in sys.stdin:
        order = json.loads(line)
        if "pid" in order:
            pid, status = os.waitpid(order["pid"], order["how"])
            told = str(os.waitstatus_to_exitcode(status)) if pid else ""
        else:
            told = str(os.fork())
            if told == "0":
                _run(order)
        sys.stdout.write(f"{told}\n")
        sys.stdout.flush()


def _run(order: dict[str, object]) -> None:
    from molforge_env.command_line import run_to_code
    from molforge_train.cli import cli

    said = os.open(str(order["said"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in enumerate((nothing, said, said)):
        os.dup2(source, target)
    exec(str(order["first"]), {})  # noqa: S102 - the test's own
    sys.exit(run_to_code(cli, order["words"]))


if __name__ == "__main__":
    _serve()

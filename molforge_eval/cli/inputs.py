"""The runs that a command line names: given one by one, or by patterns that a shell left as they are.

A name that exists wins over the pattern that it may be. A pattern matches no link, so that it never leads out of the
folder that it names.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import translate
from pathlib import Path
from typing import Any, NamedTuple

from molforge_env.command_line import report_note
from molforge_env.errors import UsageError

_MARKS = frozenset("*?[")
_ANY_DEPTH = "**"
_MOST_ENTRIES = 200_000
_WHERE = "RUN"
_MEND = "Name folders, archives or packets that are there, or a pattern that matches some: 'submissions/*.zip'."


class _Walk(NamedTuple):
    """How many entries a pattern may still look at, in a list so that it counts down."""

    left: list[int]

    def entries(self, folder: Path) -> list[os.DirEntry[str]]:
        """List what stands in a folder by name, without links and without what cannot be listed."""
        try:
            with os.scandir(folder) as scan:
                found = sorted((entry for entry in scan if not entry.is_symlink()), key=lambda entry: entry.name)
        except OSError:
            return []
        self.left[0] -= len(found)
        if self.left[0] < 0:
            what = f"the pattern looks at more than {_MOST_ENTRIES} files and folders"
            raise UsageError(what, where=_WHERE, mend="Write a narrower pattern.")
        return found


def expand_runs(given: Sequence[Path | str]) -> tuple[Path, ...]:
    """Put what a pattern matches in its place, sorted; what is named twice stays once, and that is said.

    Raises:
        UsageError: A pattern matches nothing.
    """
    runs: dict[str, Path] = {}
    for name in given:
        for run in _matches_of(name):
            real = os.path.realpath(run)
            if real in runs:
                report_note(f"{run} is named twice; it is looked at once")
            else:
                runs[real] = run
    return tuple(runs.values())


def expand_run(given: Path | str) -> Path:
    """Find the one run that a name or a pattern means.

    Raises:
        UsageError: A pattern matches nothing, or several.
    """
    found = _matches_of(given)
    if len(found) > 1:
        names = ", ".join(str(run) for run in found[:3])
        what = f"the pattern {str(given)!r} matches {len(found)} files and folders: {names}"
        raise UsageError(what, where=_WHERE, mend="Name one of them.")
    return found[0]


def _matches_of(given: Path | str) -> tuple[Path, ...]:
    name = Path(given)
    if given == "":
        raise UsageError("the name of the run is empty", where=_WHERE, mend="Name a folder, an archive or a packet.")
    if os.path.lexists(name) or not _MARKS.intersection(str(name)):
        return (name,)
    parts = name.parts
    first = next(place for place, part in enumerate(parts) if _MARKS.intersection(part))
    base = Path(*parts[:first])
    found = sorted(set(_walk(base, parts[first:], _Walk([_MOST_ENTRIES]))))
    if str(given).endswith(("/", os.sep)):
        # As in a shell, a pattern that ends so means folders. A path keeps no such end, so the word as given is asked.
        found = [run for run in found if run.is_dir()]
    if not found:
        raise UsageError(f"nothing matches the pattern {str(given)!r}", where=_WHERE, mend=_MEND)
    return tuple(found)


def _walk(folder: Path, parts: Sequence[str], walk: _Walk) -> Iterator[Path]:
    part, rest = parts[0], parts[1:]
    if part == _ANY_DEPTH:
        yield from _walk_deep(folder, rest, walk)
        return
    if not _MARKS.intersection(part):
        found = folder / part
        if found.is_symlink() or not found.exists():
            return
        yield from _walk(found, rest, walk) if rest else (found,)
        return
    pattern = re.compile(translate(part))
    for entry in walk.entries(folder):
        # As in a shell, a name that begins with a dot is matched by a pattern that does.
        if not pattern.match(entry.name) or entry.name.startswith(".") > part.startswith("."):
            continue
        if not rest:
            yield folder / entry.name
        elif entry.is_dir(follow_symlinks=False):
            yield from _walk(folder / entry.name, rest, walk)


def _walk_deep(folder: Path, rest: Sequence[str], walk: _Walk) -> Iterator[Path]:
    """Match the rest in a folder and in every one beneath it; at the end of a pattern folders that hold a manifest."""
    folders = [folder]
    while folders:
        here = folders.pop()
        entries = walk.entries(here)
        if rest:
            yield from _walk(here, rest, walk)
        elif any(entry.name == "run_manifest.json" for entry in entries):
            yield here
        folders += [
            here / entry.name
            for entry in entries
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
        ]


@contextmanager
def ended_like_a_key() -> Iterator[None]:
    """Let a request to end, or a terminal that is closed, unwind as Ctrl-C does, so that what was unpacked is removed.

    One that the caller has the process ignore, as `nohup` does, stays ignored.
    """
    earlier: dict[signal.Signals, Any] = {}
    try:
        # Windows has no terminals to close.
        for number in {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:
            if signal.getsignal(number) != signal.SIG_IGN:
                earlier[number] = signal.signal(number, signal.default_int_handler)
    except ValueError:
        # Only the main thread may ask; a caller's thread has its own way to end.
        yield
        return
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)

"""What a tampering operator is, and the ways in which one reaches into a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from evidence_builder import edit_json, read_lines, write_lines

from molforge_eval import layout
from molforge_eval.canonical import digest

Edit = Callable[[Path], None]
Line = dict[str, Any]
Part = Literal["means", "table", "totals", "summaries", "summary", "pictures", "adapter", "plan", "packet", "seal"]
"""What a forger would compute again, and leaves alone where it is the lie itself."""


class UnfitRunError(Exception):
    """A run has nothing that the operator could change."""


class Operator(NamedTuple):
    """One way to make a run look better than it was."""

    name: str
    gain: str
    """What a forger has of it."""
    edit: Edit
    kept: tuple[Part, ...] = ()
    finish: Callable[[Path], Path] | None = None
    """Makes what is handed in of the forged run, where that is no folder."""


class Belief(NamedTuple):
    """A forgery that no check can see, and what would."""

    operator: Operator
    shown_by: str
    """The level that shows it, or `nothing`."""


def find(lines: Iterable[Line], wanted: Callable[[Line], Any]) -> Line:
    """Return the first line for which something holds.

    Raises:
        UnfitRunError: There is none.
    """
    for line in lines:
        if wanted(line):
            return line
    raise UnfitRunError


def lines_edit(change: Callable[[list[Line]], list[Line] | None], path: str = layout.ROLLOUTS) -> Edit:
    """Change the lines of a log; the function changes them in place or returns others."""

    def edit(root: Path) -> None:
        lines = read_lines(root, path)
        changed = change(lines)
        write_lines(root, lines if changed is None else changed, path)

    return edit


def line_edit(wanted: Callable[[Line], Any], change: Callable[[Line], Any], path: str = layout.ROLLOUTS) -> Edit:
    """Change the first line for which something holds."""
    return lines_edit(lambda lines: change(find(lines, wanted)) and None, path)


def record_edit(change: Callable[[Any], Any], *paths: str) -> Edit:
    """Change JSON files in place."""

    def edit(root: Path) -> None:
        for path in paths:
            need(root, path)
            edit_json(root, path, lambda value: change(value) and None)

    return edit


def episode_edit(wanted: Callable[[Line], Any], change: Callable[[Line], Any], path: str = layout.AFTER) -> Edit:
    """Change the first record of an evaluation for which something holds."""
    return record_edit(lambda value: change(find(value["episodes"], wanted)), path)


def all_of(*edits: Edit) -> Edit:
    """Do several edits, one after the other."""

    def edit(root: Path) -> None:
        for part in edits:
            part(root)

    return edit


def need(root: Path, *paths: str) -> None:
    """Look for files that the operator changes.

    Raises:
        UnfitRunError: One is not there.
    """
    if not all((root / path).exists() for path in paths):
        raise UnfitRunError


def put(*keys: str | int, value: Any) -> Callable[[Any], None]:
    """Set one value somewhere inside another."""

    def change(node: Any) -> None:
        for key in keys[:-1]:
            node = node[key]
        node[keys[-1]] = value

    return change


def episodes_of(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """Group lines by their episode, in file order."""
    episodes: dict[str, list[Line]] = {}
    for line in lines:
        episodes.setdefault(line["episode_id"], []).append(line)
    return episodes


def is_called(line: Line) -> bool:
    """Tell whether a line holds a call that the laboratory carried out."""
    return line["transition_reward"] is not None


def is_last(line: Line) -> bool:
    """Tell whether a line ends its episode."""
    return line["ended_by"] is not None


def is_poor(line: Line) -> bool:
    """Tell whether a line ends an episode with a score that could be better."""
    return line["ended_by"] is not None and (line["episode_score"] or 0.0) < 0.5


def rename_policy(evaluation: Mapping[str, Any]) -> None:
    """Let the episodes name the policy of their file."""
    own = digest(evaluation["policy"])
    for episode in evaluation["episodes"]:
        episode["policy_sha256"] = own

"""What `--format KIND[=FILE]` asks for: at most one kind on standard output, each other one in a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from molforge_env.errors import UsageError

if TYPE_CHECKING:
    from molforge_eval.voices.judged_run import JudgedRun

KINDS = ("text", "json", "github", "markdown", "junit", "sarif")


class Outputs(NamedTuple):
    """Where each kind goes."""

    printed: str
    files: tuple[tuple[str, Path], ...]

    def write(self, runs: Sequence[JudgedRun], *, show_all: bool) -> None:
        """Write the files, replacing what stands there.

        Raises:
            UsageError: A file cannot be written.
        """
        for kind, file in self.files:
            try:
                file.write_text(render(kind, runs, show_all=show_all), encoding="utf-8", newline="\n")
            except OSError as error:
                raise _wrong(
                    f"{kind}={file}", error.strerror or "it cannot be written", "Name another file."
                ) from error


def parse_outputs(settings: Sequence[str], runs: Sequence[Path]) -> Outputs:
    """Read the values of `--format`.

    Args:
        settings: `KIND` or `KIND=FILE`, as given.
        runs: The runs that are looked at; nothing is written into them.

    Raises:
        UsageError: A kind is unknown, two are to be printed, or a file stands where none can or may be written.
    """
    printed: list[str] = []
    files: dict[Path, tuple[str, Path]] = {}
    for setting in settings:
        kind, sign, name = setting.partition("=")
        if kind not in KINDS:
            raise _wrong(setting, f"{kind!r} is no kind", f"Choose one of {', '.join(KINDS)}.")
        if not sign:
            printed.append(kind)
            continue
        file = Path(name)
        # Unlike Path.resolve, it takes links that lead round in a circle.
        target = Path(os.path.realpath(file))
        if not name or file.is_dir() or not target.parent.is_dir():
            raise _wrong(setting, "no file can be written there", "Name a file in a folder that exists.")
        if any(target.is_relative_to(os.path.realpath(run)) for run in runs):
            raise _wrong(setting, "the file would stand in the run", "Name a file outside the runs.")
        if target in files:
            raise _wrong(setting, "the file is named twice", "Give each kind a file of its own.")
        files[target] = (kind, file)
    if len(set(printed)) > 1:
        raise _wrong(printed[1], f"{printed[0]} is printed already", f"Give it a file: {printed[1]}=FILE.")
    return Outputs(printed[0] if printed else "text", tuple(files.values()))


def render(kind: str, runs: Sequence[JudgedRun], *, show_all: bool) -> str:
    """Spell runs in one of the kinds."""
    from molforge_eval.voices import github, junit, machine, markdown, sarif, text

    results = [run.result for run in runs if run.result is not None]
    if kind == "text":
        return "\n".join(text.render(result, show_all=show_all) for result in results)
    if kind == "json":
        return machine.render(runs)
    if kind == "github":
        return github.render(runs, show_all=show_all)
    voices = {"markdown": markdown.render, "junit": junit.render, "sarif": sarif.render}
    return voices[kind](runs)


def path_in_checkout(run: Path) -> str:
    """Spell the path of a run from the working directory; one outside it is named without its folder."""
    path = Path(os.path.relpath(run))
    return path.as_posix() if path.parts and path.parts[0] != ".." else Path(os.path.realpath(run)).name


def _wrong(setting: str, what: str, mend: str) -> UsageError:
    return UsageError(f"format {setting!r}: {what}", where="--format", mend=mend)

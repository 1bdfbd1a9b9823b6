"""Documents from templates of one's own, rendered in a child process that may use only so much time and memory.

A sandbox keeps a template from the files of the machine; it does not keep one from asking for a text of ten thousand
million letters, or from counting for ever.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import orjson

from molforge_env.errors import UsageError
from molforge_env.frozen import FrozenModel
from molforge_eval.canonical import file_bytes
from molforge_eval.catalogue import printable
from molforge_eval.report.render import Svg
from molforge_eval.scratch import scratch

if TYPE_CHECKING:
    from molforge_eval.report.paper import PaperLimits, Sheet

Task = Literal["page", "paper", "comparison page", "comparison paper"]
FAULT = 96
"""Exit code of a child that has named a fault of a template in `fault.json`."""
PAGE, MARKUP, STYLE, SHELF = "page", "markup", "style", "shelf "
"""Names of what a child makes; that of a piece of the shelf ends in its address."""
_PATIENCE = 4
_START = 30
"""On a busy machine a child may take so many times its processor time, and so many seconds until it has begun."""
_SHOWN = 300


def page_apart(
    task: Task, evidence: FrozenModel, figures: Mapping[str, Svg], *, templates: Path, limits: PaperLimits
) -> bytes:
    """Write a page.

    Args:
        task: Which one.
        evidence: Everything that is said.
        figures: The charts by name.
        templates: A folder whose templates stand for shipped ones of the same name.
        limits: Time and memory of the child process.

    Raises:
        UsageError: A template does not work, or needs more than it may.
    """
    return _render(task, evidence, figures, templates, limits, {})[PAGE]


def sheet_apart(
    task: Task,
    evidence: FrozenModel,
    figures: Mapping[str, Svg],
    *,
    templates: Path,
    limits: PaperLimits,
    **settings: str | bool,
) -> Sheet:
    """Write the document of a paper, with the settings of what writes it without a child.

    Raises:
        UsageError: A template does not work, or needs more than it may.
    """
    from molforge_eval.report.paper import Sheet

    pieces = _render(task, evidence, figures, templates, limits, settings)
    shelf = {name.removeprefix(SHELF): data for name, data in pieces.items() if name.startswith(SHELF)}
    return Sheet(pieces[MARKUP].decode(), pieces[STYLE].decode(), shelf)


def _render(
    task: Task,
    evidence: FrozenModel,
    figures: Mapping[str, Svg],
    templates: Path,
    limits: PaperLimits,
    settings: Mapping[str, str | bool],
) -> dict[str, bytes]:
    with scratch("templates") as folder:
        (folder / "evidence.json").write_bytes(file_bytes(evidence))
        (folder / "figures.json").write_bytes(orjson.dumps({name: svg._asdict() for name, svg in figures.items()}))
        order = {"task": task, "templates": str(templates), "settings": settings, **limits.model_dump()}
        (folder / "order.json").write_bytes(orjson.dumps(order))
        _run_child(folder, templates, limits)
        names = orjson.loads((folder / "made.json").read_bytes())
        return {name: (folder / f"made-{number}").read_bytes() for number, name in enumerate(names)}


def _run_child(folder: Path, templates: Path, limits: PaperLimits) -> None:
    # -P: the working folder may be a stranger's, and a module that lies in it must not be imported.
    command = [sys.executable, "-P", "-m", "molforge_eval.report.template_press", str(folder)]
    try:
        done = subprocess.run(  # noqa: S603 # our own module, no shell
            command,
            check=False,
            capture_output=True,
            timeout=_START + _PATIENCE * limits.seconds,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired as error:
        raise _beyond(templates, limits) from error
    if done.returncode == FAULT:
        fault = orjson.loads((folder / "fault.json").read_bytes())
        raise UsageError(fault["what"], where=fault["where"], mend=fault["mend"])
    if done.returncode < 0:
        raise _beyond(templates, limits)
    if done.returncode:
        last = (done.stderr.strip() or f"the child process ended with code {done.returncode}").splitlines()[-1]
        what = f"the page could not be made: {printable(last)[:_SHOWN]}"
        raise UsageError(what, where=printable(str(templates)), mend="Leave --templates out.")


def _beyond(templates: Path, limits: PaperLimits) -> UsageError:
    most = f"{limits.seconds} seconds of processor time and {limits.memory_bytes // 2**20} MiB"
    return UsageError(
        f"the templates need more than the {most} that they may use",
        where=printable(str(templates)),
        mend="Make them smaller, or leave --templates out.",
    )

"""The child process that renders templates of a user: it reads one folder and the templates, and writes that folder.

What it may use is counted from the moment at which the first template is read.
"""

from __future__ import annotations

import resource
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import orjson

from molforge_env.errors import MolForgeError
from molforge_eval.report.comparison_evidence import ComparisonEvidence
from molforge_eval.report.comparison_pages import render_comparison_page, write_comparison_sheet
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.page import render_page
from molforge_eval.report.paper import Sheet, write_markup
from molforge_eval.report.paper_press import end_with_parent
from molforge_eval.report.render import Svg
from molforge_eval.report.template_faults import blamed_on
from molforge_eval.report.template_room import FAULT, MARKUP, PAGE, SHELF, STYLE

_FILE_BYTES = 2**28
_GRACE = 2
"""Seconds between the word that the time is over and the end of a child that did not hear it."""
_TASKS: Mapping[str, tuple[type[Evidence | ComparisonEvidence], Callable[..., bytes | Sheet]]] = {
    "page": (Evidence, render_page),
    "paper": (Evidence, write_markup),
    "comparison page": (ComparisonEvidence, render_comparison_page),
    "comparison paper": (ComparisonEvidence, write_comparison_sheet),
}


class TimeIsOverError(Exception):
    """The processor time that a template may use."""


def main(folder: Path) -> int:
    """Render what the order in a folder says; return the exit code."""
    end_with_parent()
    order = orjson.loads((folder / "order.json").read_bytes())
    model, write = _TASKS[order["task"]]
    evidence = model.model_validate_json((folder / "evidence.json").read_bytes())
    figures = {name: Svg(**svg) for name, svg in orjson.loads((folder / "figures.json").read_bytes()).items()}
    templates = Path(order["templates"])
    _limit(order["memory_bytes"], order["seconds"])
    try:
        with blamed_on(templates):
            made = write(evidence, figures, templates=templates, **order["settings"])
        _put_down(folder, made)
    except MolForgeError as error:
        fault = {"what": error.what, "where": error.where, "mend": error.mend}
        (folder / "fault.json").write_bytes(orjson.dumps(fault))
        return FAULT
    return 0


def _put_down(folder: Path, made: bytes | Sheet) -> None:
    pieces: dict[str, bytes] = {PAGE: made} if isinstance(made, bytes) else {}
    if isinstance(made, Sheet):
        pieces = {MARKUP: made.markup.encode(), STYLE: made.style.encode()}
        pieces |= {f"{SHELF}{address}": data for address, data in made.shelf.items()}
    for number, data in enumerate(pieces.values()):
        (folder / f"made-{number}").write_bytes(data)
    (folder / "made.json").write_bytes(orjson.dumps(list(pieces)))


def _limit(memory_bytes: int, seconds: int) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    last = round(used.ru_utime + used.ru_stime) + seconds
    signal.signal(signal.SIGXCPU, _stop)
    resource.setrlimit(resource.RLIMIT_CPU, (last, last + _GRACE))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _stop(_number: int, _frame: Any) -> NoReturn:
    # The word comes again every second; what names the place must not be stopped by it.
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    raise TimeIsOverError("it took more processor time than a template may use")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

"""Three lines for a template that does not work: what is wrong, its file and line, and how to mend it.

Only a template of the folder that the caller named is blamed so. A fault of a shipped one is ours, and passes as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jinja2 import TemplateNotFound, TemplateSyntaxError

from molforge_env.errors import MolForgeError, UsageError
from molforge_eval.catalogue import printable
from molforge_eval.shipped import template_folder

_SHOWN = 300
_OF_BOTH = frozenset({"base.css.j2", "page.css.j2", "paper.css.j2", "marks.html.j2"})
"""What a comparison takes from the packet."""
_ELSEWHERE = frozenset({"model_card.md.j2", "notebook.html.j2"})
"""What neither document is made of."""
_KINDS = {
    "KeyError": "the template names what the evidence lacks",
    "TemplateSyntaxError": "the template cannot be read",
    "TimeIsOverError": "the template counts for too long",
    "MemoryError": "the template needs more memory than it may use",
    "UndefinedError": "the template uses what is not there",
    "UnicodeDecodeError": "the template is no UTF-8 text",
}
_MEND = "Mend it there, or leave --templates out; docs/templates.md lists what a template may use."


@contextmanager
def blamed_on(folder: Path | None) -> Iterator[None]:
    """Turn whatever a template of a folder raises into three lines that name its file and line.

    Args:
        folder: The folder of `--templates`; without one nothing is caught.

    Raises:
        UsageError: A template of the folder cannot be read, used or rendered.
    """
    try:
        yield
    except MolForgeError:
        raise
    except Exception as error:  # the boundary to templates of a user: whatever they raise is named with its place
        place = None if folder is None else _place_in(folder, error)
        if place is None:
            raise
        raise UsageError(_words_of(error), where=place, mend=_MEND) from error


def require_template(folder: Path, *, is_comparison: bool) -> None:
    """A folder of which nothing is used would change nothing, and nobody would be told.

    Args:
        folder: The folder of `--templates`.
        is_comparison: A comparison is to be written, else a packet.

    Raises:
        UsageError: No file of the folder has the name of a template that is used.
    """
    shipped = template_folder()
    names = sorted(path.relative_to(shipped).as_posix() for path in shipped.rglob("*.j2"))
    names = [name for name in names if _is_used(name, is_comparison=is_comparison)]
    if not any((folder / name).is_file() for name in names):
        document = "comparison" if is_comparison else "packet"
        raise UsageError(
            f"no file of this folder has the name of a template of a {document}",
            where=printable(str(folder)),
            mend=f"Name it as one of {', '.join(name for name in names if '/' not in name)}"
            + ("." if is_comparison else ", or in sections/ as there."),
        )


def _is_used(name: str, *, is_comparison: bool) -> bool:
    if is_comparison:
        return name.startswith("compare") or name in _OF_BOTH
    return not name.startswith("compare") and name not in _ELSEWHERE


def _place_in(folder: Path, error: Exception) -> str | None:
    """Find the innermost line of a template of the folder that the error passed through."""
    if isinstance(error, TemplateSyntaxError) and error.filename is not None:
        inside = _inside(folder, error.filename)
        return None if inside is None else f"{inside}:{error.lineno}"
    if isinstance(error, UnicodeDecodeError):
        return _undecodable(folder)
    if isinstance(error, OSError) and error.filename is not None:
        return _inside(folder, os.fsdecode(error.filename))
    found = None
    frame = error.__traceback__
    while frame is not None:
        inside = _inside(folder, frame.tb_frame.f_code.co_filename)
        if inside is not None:
            found = f"{inside}:{frame.tb_lineno}"
        frame = frame.tb_next
    return found


def _inside(folder: Path, file: str) -> str | None:
    path = Path(file)
    return str(path) if path.is_absolute() == folder.is_absolute() and path.is_relative_to(folder) else None


def _undecodable(folder: Path) -> str | None:
    """Find the template that is no text: the loader does not say which one it was reading."""
    for path in sorted(folder.rglob("*")):
        try:
            data = path.read_bytes() if path.is_file() else b""
        except OSError:
            continue
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            return f"{path}:{data.count(bytes([10]), 0, error.start) + 1}"
    return None


def _words_of(error: Exception) -> str:
    if isinstance(error, TemplateNotFound):
        return f"the template {error.name!r} is neither in the folder nor shipped"
    text = " ".join(str(error).split()) or "no reason is given"
    if isinstance(error, OSError):
        return f"the template cannot be read: {error.strerror}"
    name = type(error).__name__
    words = _KINDS.get(name, f"the template raised {name}")
    return printable(f"{words}: {text}")[:_SHOWN]

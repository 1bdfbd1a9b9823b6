"""The packet as one PDF, made in a child process that may use only so much time and memory.

A page is made of a stranger's text; a table of the wrong shape can cost minutes. What happens to the child cannot
happen to the caller: the HTML page stands whatever becomes of the PDF.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

import orjson
from pydantic import Field

from molforge_env.errors import MissingDependencyError, MolForgeError
from molforge_env.frozen import FrozenModel
from molforge_eval import layout
from molforge_eval.canonical import sha256_hex
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.glyphs import name_undrawn
from molforge_eval.report.page import FACES, font_faces
from molforge_eval.report.render import Svg
from molforge_eval.report.theme import palettes
from molforge_eval.report.wording import MEMORY, Medium, open_templates, words_for
from molforge_eval.scratch import scratch
from molforge_eval.shipped import font_folder

PaperSize = Literal["A4", "letter"]
UNDATED = "2000-01-01T00:00:00Z"
"""Date of a packet whose run has none: a file needs one, and the clock would make every build another."""
LOG_NAMES = {path: name for name, path in layout.ENCLOSURES.items() if path in layout.LOGS}
"""Names under which the logs are attached, by their paths in a run."""
NO_PANGO = 97
NO_WEASYPRINT = 98
"""Exit code of a child that could not load the system's text library."""
APT_LINE = "apt-get install --yes libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0"
_TIGHTER = (":root { font-size: 8.2pt }", ":root { font-size: 7.6pt }", ":root { font-size: 7pt }")
"""Styles tried in turn until what belongs on the first page stands on it."""
_MEMORY = 2 * 2**30
_SECONDS = 120
_SHOWN_ERROR = 300


class PaperError(MolForgeError):
    """The PDF could not be made; whatever else was written stands."""


class PaperLimits(FrozenModel):
    """What the child process may use."""

    seconds: int = Field(default=_SECONDS, ge=1)
    memory_bytes: int = Field(default=_MEMORY, ge=2**26)


OF_TEMPLATES = PaperLimits(seconds=60)
"""What templates of one's own may use."""


class Enclosure(NamedTuple):
    """A file that travels inside the PDF."""

    name: str
    description: str
    data: bytes


class Sheet(NamedTuple):
    """A document before it is printed."""

    markup: str
    style: str
    shelf: Mapping[str, bytes]
    """Typefaces and pictures, by the address under which the document names them."""


def render_paper(
    evidence: Evidence,
    figures: Mapping[str, Svg],
    enclosures: Sequence[Enclosure],
    *,
    created: str = UNDATED,
    size: PaperSize = "A4",
    limits: PaperLimits | None = None,
    templates: Path | None = None,
    template_limits: PaperLimits | None = None,
) -> bytes:
    """Write the PDF.

    Args:
        evidence: Everything that is said.
        figures: The charts by name.
        enclosures: Attached as they are.
        created: Date that the document and its attachments carry, in UTC to the second.
        size: Sheet.
        limits: Time and memory of the child process.
        templates: A folder whose templates stand for shipped ones of the same name.
        template_limits: Time and memory of the child process that renders those.

    Raises:
        MissingDependencyError: Pango is absent.
        PaperError: The child failed, or went beyond a limit.
        UsageError: A template of the folder does not work.
    """
    enclosed = {enclosure.name for enclosure in enclosures}
    left_out = any(entry.path in LOG_NAMES and LOG_NAMES[entry.path] not in enclosed for entry in evidence.artifacts)
    if templates is None:
        sheet = write_markup(evidence, figures, created=created, size=size, logs_left_out=left_out)
    else:
        from molforge_eval.report.template_room import sheet_apart

        sheet = sheet_apart(
            "paper",
            evidence,
            figures,
            templates=templates,
            limits=template_limits or OF_TEMPLATES,
            created=created,
            size=size,
            logs_left_out=left_out,
        )
    return print_sheet(sheet, enclosures, created, PaperLimits() if limits is None else limits)


def write_markup(
    evidence: Evidence,
    figures: Mapping[str, Svg],
    *,
    created: str = UNDATED,
    size: PaperSize = "A4",
    templates: Path | None = None,
    logs_left_out: bool = False,
) -> Sheet:
    """Write the document, its style sheet and its pictures, as the child process is given them."""
    environment = open_templates(templates)
    light = palettes()["light"]
    sheets = [environment.get_template("base.css.j2").render(light)]
    sheets.append(environment.get_template("paper.css.j2").render(palette=light, paper_size=size))
    faces = {f"{MEMORY}{name}.ttf": (font_folder() / f"{name}.ttf").read_bytes() for _, _, name in FACES}
    style = font_faces(lambda name: f"{MEMORY}{name}.ttf") + "".join(sheets)
    shelf: dict[str, bytes] = {}
    words = words_for(evidence, figures, Medium(lambda body: body, light.__getitem__, shelf))
    markup = environment.get_template("paper.html.j2").render(
        **words, created=created, creator=layout.PACKET_CREATOR, logs_left_out=logs_left_out
    )
    return Sheet(markup, style, {**faces, **shelf})


def print_sheet(sheet: Sheet, enclosures: Sequence[Enclosure], created: str, limits: PaperLimits) -> bytes:
    """Print a document in the child process.

    Args:
        sheet: The document with all that it shows.
        enclosures: Attached as they are.
        created: Date that the document and its attachments carry, in UTC to the second.
        limits: Time and memory of the child process.

    Raises:
        MissingDependencyError: Pango is absent.
        PaperError: The child failed, or went beyond a limit.
    """
    with scratch("paper") as folder:
        (folder / "page.html").write_text(name_undrawn(sheet.markup), encoding="utf-8")
        (folder / "page.css").write_text(sheet.style, encoding="utf-8")
        entries = []
        for number, enclosure in enumerate(enclosures):
            (folder / f"enclosure-{number}").write_bytes(enclosure.data)
            entries.append({"name": enclosure.name, "description": enclosure.description})
        shelf = {}
        for number, (address, data) in enumerate(sheet.shelf.items()):
            is_drawing = address.endswith(".svg")
            (folder / f"piece-{number}").write_bytes(name_undrawn(data.decode()).encode() if is_drawing else data)
            shelf[address] = f"piece-{number}"
        order = {
            "shelf": shelf,
            "enclosures": entries,
            "created": created,
            "tighter": _TIGHTER,
            "identifier": sha256_hex(sheet.markup.encode("utf-8", "surrogatepass"))[:32],
            "memory_bytes": limits.memory_bytes,
            "seconds": limits.seconds,
        }
        (folder / "order.json").write_bytes(orjson.dumps(order))
        _run_child(folder, limits)
        return (folder / "page.pdf").read_bytes()


def _run_child(folder: Path, limits: PaperLimits) -> None:
    # -P: the working folder may be a stranger's, and a module that lies in it must not be imported.
    command = [sys.executable, "-P", "-m", "molforge_eval.report.paper_press", str(folder)]
    try:
        done = subprocess.run(  # noqa: S603 # our own module, no shell
            command, check=False, capture_output=True, timeout=limits.seconds, text=True, errors="replace"
        )
    except subprocess.TimeoutExpired as error:
        raise _refused(f"the PDF took longer than {limits.seconds} seconds") from error
    if done.returncode == NO_PANGO:
        raise MissingDependencyError(
            f"the PDF needs Pango, which cannot be loaded: {_last_line(done.stderr)}",
            where="system libraries",
            mend=f"Install it: {APT_LINE}",
        )
    if done.returncode == NO_WEASYPRINT:
        raise MissingDependencyError(
            f"the PDF needs WeasyPrint, which cannot be imported: {_last_line(done.stderr)}",
            where="installed packages",
            mend="Install it: pip install 'weasyprint>=70'",
        )
    if done.returncode != 0 or not (folder / "page.pdf").is_file():
        reason = _last_line(done.stderr) or _ending(done.returncode)
        raise _refused(f"the PDF could not be made: {reason}")


def _ending(code: int) -> str:
    """Say how a child ended that said nothing; a limit on memory or time often leaves no word."""
    if code >= 0:
        return f"the child process ended with code {code}"
    with suppress(ValueError):
        return f"the child process was ended by {signal.Signals(-code).name}, as when memory or time runs out"
    return f"the child process was ended by signal {-code}"


def _refused(what: str) -> PaperError:
    return PaperError(
        what,
        where="judge_packet.pdf",
        mend="Read judge_packet.html, which holds the same; or run `molforge-report build RUN --no-pdf`.",
    )


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:_SHOWN_ERROR] if lines else ""

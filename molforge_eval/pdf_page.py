"""The first page of a packet PDF: its words, and what lies over them.

Read inside the child process of `pdf_reader`, whose limits hold here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pikepdf

_LONGEST_KIND = 40
_PAINTING = ("Do", "f", "F", "f*", "B", "B*", "b", "b*", "S", "s", "sh")


def creator_of(pdf: pikepdf.Pdf) -> str:
    """Return the program that a PDF names as its maker; nothing when it names none."""
    with suppress(KeyError, AttributeError, ValueError, TypeError):
        return str(pdf.trailer["/Info"]["/Creator"])
    return ""


def list_strange(pdf: pikepdf.Pdf) -> Iterator[str]:
    """Name what lies on the first page beside words, drawings and links: it can cover them."""
    import pikepdf

    try:
        page = pdf.pages[0].obj
        if _is_drawn_over(pdf.pages[0]):
            yield "a drawing put over it"
        kinds = [str(entry.get("/Subtype")) for entry in page.get("/Annots", ())]
        yield from (f"a note of kind {kind[1:_LONGEST_KIND]}" for kind in kinds if kind != "/Link")
        pictures: Any = page["/Resources"].get("/XObject", {})
        if any(str(pictures[name].get("/Subtype")) == "/Image" for name in pictures.keys()):  # noqa: SIM118 - no mapping
            yield "a picture of points"
    except (pikepdf.PdfError, KeyError, AttributeError, IndexError, ValueError, TypeError):
        # A page that no writer of ours made: what cannot be listed may lie over the words.
        yield "what cannot be listed"


def _is_drawn_over(page: pikepdf.Page) -> bool:
    """Tell whether something is painted after the last words, which the writer of packets puts down at the end."""
    import pikepdf

    last = ""
    for instruction in pikepdf.parse_content_stream(page, " ".join((*_PAINTING, "ET"))):
        last = str(instruction.operator)
    return last in _PAINTING


def read_first_page(pdf: pikepdf.Pdf) -> str | None:
    """Read the words of the first page without blanks, by the table of characters of each typeface."""
    import pikepdf

    with suppress(pikepdf.PdfError, KeyError, AttributeError, IndexError, ValueError, TypeError):
        page = pdf.pages[0]
        fonts = page.obj["/Resources"]["/Font"]
        tables = {name: _characters(fonts[name]) for name in fonts.keys()}  # noqa: SIM118 - no mapping
        words: list[str] = []
        table: dict[int, str] = {}
        for instruction in pikepdf.parse_content_stream(page, "Tf Tj TJ"):
            operands: Any = instruction.operands
            if str(instruction.operator) == "Tf":
                table = tables.get(str(operands[0]), {})
                continue
            pieces = operands[0] if isinstance(operands[0], pikepdf.Array) else [operands[0]]
            for piece in pieces:
                if isinstance(piece, pikepdf.String):
                    code = bytes(piece)
                    words += [table.get(int.from_bytes(code[at : at + 2]), "") for at in range(0, len(code), 2)]
        return "".join("".join(words).split())
    return None


def _characters(font: Any) -> dict[int, str]:
    lines = font["/ToUnicode"].read_bytes().decode("latin-1").splitlines()
    table = {}
    for line in lines:
        code, _, text = line.partition("> <")
        if code.startswith("<") and text.endswith(">"):
            table[int(code[1:], 16)] = bytes.fromhex(text[:-1]).decode("utf-16-be", "replace")
    return table

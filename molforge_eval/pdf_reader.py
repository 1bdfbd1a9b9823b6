"""The child process that reads a packet PDF: its attachments, what in it acts, and the words of its first page.

Its own limits on memory, processor time and the size of what it writes stand before the file is opened. It writes into
one folder; a name in the PDF never becomes a path.
"""

from __future__ import annotations

import errno
import resource
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from molforge_eval import pdf_page

if TYPE_CHECKING:
    import pikepdf

UNREADABLE = 96
ENCRYPTED = 95
CROWDED = 94
FULL = 93
"""Exit codes: no PDF, an encrypted one, one with more objects than the limit; a disk without room to unpack it."""
_CHUNK = 2**18
_RATIO_FROM = 2**20
_MOST_NODES = 2_000
"""Nodes of the tree of attachments."""
_DEEPEST = 16
_MOST_ACTIVE = 50
_MOST_STRANGE = 20
_LONGEST_NAME = 400
_LONGEST_PAGE = 100_000
_GZIP = 31
_ACTIONS = frozenset(
    {"/JavaScript", "/Launch", "/ImportData", "/SubmitForm", "/GoToR", "/GoToE", "/Rendition", "/Movie", "/Sound"}
)
_PROGRAMS = {"/JS": "action JavaScript", "/XFA": "a form with a program"}
_MEDIA = frozenset({"/RichMedia", "/Movie", "/Screen", "/3D", "/Sound"})


class _BrokenError(Exception):
    """A stream that cannot be unpacked; the first word is the fault, the rest says why."""

    def __init__(self, fault: str, reason: str) -> None:
        super().__init__(reason)
        self.fault = fault


class _Found(NamedTuple):
    """One attachment as the PDF lists it."""

    name: str
    stream: Any


def main(folder: Path) -> int:
    """Read the PDF that the order in a folder names, within limits; return the exit code."""
    order = orjson.loads((folder / "order.json").read_bytes())
    _limit(order["memory_bytes"], order["seconds"], order["room"])
    return read_packet(folder, order)


def read_packet(folder: Path, order: dict[str, Any]) -> int:
    """Unpack what is attached to a PDF into a folder and list it in `listing.json`; return the exit code."""
    import pikepdf

    try:
        # No recovery: what a damaged table of objects leaves open, two readers fill in two ways.
        with pikepdf.open(order["path"], suppress_warnings=True, attempt_recovery=False) as pdf:
            if pdf.is_encrypted:
                return ENCRYPTED
            if len(pdf.objects) > order["objects"]:
                return CROWDED
            listing = _read(pdf, folder, order)
        (folder / "listing.json").write_bytes(orjson.dumps(listing))
    except pikepdf.PasswordError:
        return ENCRYPTED
    except (pikepdf.PdfError, ValueError, TypeError, OverflowError, OSError, RecursionError) as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return FULL
        sys.stderr.write(_why(error) + "\n")
        return UNREADABLE
    return 0


def _why(error: Exception) -> str:
    """Say what is wrong with a PDF in our own words: those of the library name paths and its own parts."""
    import pikepdf

    if isinstance(error, OSError):
        return f"the system says: {error.strerror or 'it cannot be read'}"
    if isinstance(error, RecursionError):
        return "its objects nest too deep"
    if isinstance(error, pikepdf.PdfError):
        return "its head, its table of objects or its end is damaged"
    return "an object in it is not what the format says"


def _read(pdf: pikepdf.Pdf, folder: Path, order: dict[str, Any]) -> dict[str, Any]:
    room = order["room"]
    taken: set[str] = set()
    entries = []
    found = list(_list_attachments(pdf, most=order["attachments"] + 1))
    for number, (name, stream) in enumerate(found[: order["attachments"]]):
        entry = {"name": _plain_text(name), "size": 0, "compressed": 0, "piece": None, "fault": None, "reason": None}
        entries.append(entry)
        if name not in order["names"]:
            entry["fault"] = "unknown"
            continue
        if name in taken:
            entry["fault"] = "repeated"
            continue
        taken.add(name)
        piece = f"piece-{number}"
        try:
            packed = _raw_bytes(stream)
            entry["compressed"] = len(packed[0])
            most = min(room, max(_RATIO_FROM, order["ratio"] * max(len(packed[0]), 1)))
            entry["size"] = _unpack(packed, folder / piece, is_gzip=order["names"][name], most=most)
            room -= entry["size"]
            entry["piece"] = piece
        except _BrokenError as error:
            entry["fault"], entry["reason"] = error.fault, str(error)
            (folder / piece).unlink(missing_ok=True)
    words = pdf_page.read_first_page(pdf)
    return {
        "attachments": entries,
        "attachments_in_all": len(found),
        "active": list(_list_active(pdf)),
        "first_page": {
            "words": None if words is None else _plain_text(words, _LONGEST_PAGE),
            "creator": _plain_text(pdf_page.creator_of(pdf)),
            "strange": sorted({_plain_text(kind) for kind in pdf_page.list_strange(pdf)})[:_MOST_STRANGE],
        },
    }


def _list_attachments(pdf: pikepdf.Pdf, *, most: int) -> Iterator[_Found]:
    """Walk the tree of attachments and the catalog's list of associated files, each stream once."""
    import pikepdf

    count = 0
    listed: set[tuple[tuple[int, int], str]] = set()
    for key, spec in _file_specs(pdf):
        if not isinstance(spec, pikepdf.Dictionary):
            continue
        held = spec.get("/EF")
        if not isinstance(held, pikepdf.Dictionary):
            continue
        stream = held.get("/UF", held.get("/F"))
        name = spec.get("/UF", spec.get("/F", key))
        if stream is None or name is None:
            continue
        # A spec that the catalog lists too is one attachment; the tree comes first.
        place = (stream.objgen if stream.is_indirect else (0, 0), str(name))
        if key is None and place in listed:
            continue
        listed.add(place)
        yield _Found(str(name), stream)
        count += 1
        if count >= most:
            return


def _file_specs(pdf: pikepdf.Pdf) -> Iterator[tuple[Any, Any]]:
    import pikepdf

    names = pdf.Root.get("/Names")
    tree = names.get("/EmbeddedFiles") if isinstance(names, pikepdf.Dictionary) else None
    nodes = [tree] if isinstance(tree, pikepdf.Dictionary) else []
    visited: set[tuple[int, int]] = set()
    walked = 0
    while nodes and walked < _MOST_NODES:
        node = nodes.pop()
        walked += 1
        if node.is_indirect:
            if node.objgen in visited:
                continue
            visited.add(node.objgen)
        pairs = node.get("/Names")
        if isinstance(pairs, pikepdf.Array):
            yield from ((pairs[place], pairs[place + 1]) for place in range(0, len(pairs) - 1, 2))
        kids = node.get("/Kids")
        if isinstance(kids, pikepdf.Array):
            nodes += [kid for kid in reversed(list(kids)) if isinstance(kid, pikepdf.Dictionary)]
    associated = pdf.Root.get("/AF")
    if isinstance(associated, pikepdf.Array):
        yield from ((None, spec) for spec in associated)


def _raw_bytes(stream: Any) -> tuple[bytes, bool]:
    """Return the bytes as they stand and whether they are deflated."""
    import pikepdf

    if not isinstance(stream, pikepdf.Stream):
        raise _BrokenError("unreadable", "the attachment is no stream")
    filters = stream.get("/Filter", pikepdf.Array([]))
    names = [str(item) for item in filters] if isinstance(filters, pikepdf.Array) else [str(filters)]
    if names not in ([], ["/FlateDecode"]) or "/DecodeParms" in stream or "/F" in stream:
        raise _BrokenError("unreadable", f"the attachment is packed by {' and '.join(names)[:80] or 'another file'}")
    try:
        return bytes(stream.read_raw_bytes()), bool(names)
    except pikepdf.PdfError as error:
        raise _BrokenError("unreadable", "the attachment cannot be read where the PDF says that it stands") from error


def _unpack(packed: tuple[bytes, bool], target: Path, *, is_gzip: bool, most: int) -> int:
    """Write an attachment, unpacked as far as its name says, and return its size."""
    data, is_deflated = packed
    pieces: Iterator[bytes] = iter((data,))
    if is_deflated:
        pieces = _inflate(pieces, zlib.MAX_WBITS)
    if is_gzip:
        pieces = _inflate(pieces, _GZIP)
    size = 0
    with target.open("xb") as file:
        for piece in pieces:
            size += len(piece)
            if size > most:
                raise _BrokenError("too_large", f"the attachment unpacks to over {most} bytes")
            file.write(piece)
    return size


def _inflate(pieces: Iterator[bytes], window: int) -> Iterator[bytes]:
    inflater = zlib.decompressobj(window)
    try:
        for piece in pieces:
            rest = piece
            while rest and not inflater.eof:
                yield inflater.decompress(rest, _CHUNK)
                rest = inflater.unconsumed_tail
            if inflater.unused_data.strip(b"\r\n"):
                raise _BrokenError("unreadable", "bytes follow the end of the attachment")
    except zlib.error as error:
        raise _BrokenError(
            "unreadable", "the attachment cannot be unpacked: it is not packed as the PDF and its name say"
        ) from error
    if not inflater.eof:
        raise _BrokenError("unreadable", "the attachment breaks off")


def _list_active(pdf: pikepdf.Pdf) -> Iterator[dict[str, Any]]:
    """Name what acts or lies outside: of each kind the first."""
    named: set[str] = set()
    for entry in pdf.objects:
        for kind in _kinds_of(entry, 0):
            if kind not in named:
                named.add(kind)
                yield {"kind": kind[:80], "object_number": entry.objgen[0]}
        if len(named) >= _MOST_ACTIVE:
            return


def _kinds_of(entry: Any, depth: int) -> Iterator[str]:
    """Look into one object; what it refers to is looked at in its own turn."""
    import pikepdf

    if depth > _DEEPEST:
        return
    if isinstance(entry, pikepdf.Array):
        for item in entry:
            if isinstance(item, pikepdf.Dictionary | pikepdf.Array) and not item.is_indirect:
                yield from _kinds_of(item, depth + 1)
        return
    if not isinstance(entry, pikepdf.Dictionary | pikepdf.Stream):
        return
    keys = set(entry.keys())
    for key, names, word in (("/S", _ACTIONS, "action"), ("/Subtype", _MEDIA, "medium")):
        if key in keys and str(entry.get(key)) in names:
            yield f"{word} {str(entry.get(key))[1:]}"
    yield from (word for key, word in _PROGRAMS.items() if key in keys)
    is_outside = "/FFilter" in keys or (isinstance(entry, pikepdf.Stream) and "/F" in keys)
    if is_outside or (str(entry.get("/Type", "")) == "/Filespec" and "/EF" not in keys):
        yield "a file outside the PDF"
    for key in keys:
        value: Any = entry.get(key)
        if isinstance(value, pikepdf.Dictionary | pikepdf.Array) and not value.is_indirect:
            yield from _kinds_of(value, depth + 1)


def _plain_text(text: str, longest: int = _LONGEST_NAME) -> str:
    return text[:longest].encode("utf-8", "replace").decode()


def _limit(memory_bytes: int, seconds: int, room: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (room + _RATIO_FROM, room + _RATIO_FROM))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

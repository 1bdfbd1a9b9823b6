"""Secrets and home folders in records: warned of, never repeated in full."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.findings import Finding
from molforge_eval.png_text import PngFaultError, read_png_text
from molforge_eval.private_traces import TRACES, Trace
from molforge_eval.run_directory import RunDirectory

_BLOCK = 2**21
_SHOWN = 6
_MARKS = "|".join(re.escape(trace.mark.decode()) for trace in TRACES)


def check(run: RunDirectory) -> Iterator[Finding]:
    """Search the text records; of each kind the first place in a file is named."""
    for path in run.files.sizes:
        if path.endswith(".png") and layout.is_record(path):
            yield from _search_picture(run, path)
        is_text = path.endswith((".json", ".jsonl", ".csv", ".md", ".jinja")) and not path.startswith(
            "adapters/tokenizer"
        )
        if is_text and (layout.is_record(path) or path == layout.CHECKSUMS):
            yield from _search(run, path)


def _search(run: RunDirectory, path: str) -> Iterator[Finding]:
    named: set[str] = set()
    lines = 0
    try:
        with run.files.open(path) as handle:
            # A block ends with a line, so that no secret is cut in two.
            while block := handle.read(_BLOCK) + handle.readline(run.limits.line_bytes):
                for trace in TRACES if _has_mark(block) else ():
                    found = None if trace.code in named else trace.find(block)
                    if found is not None:
                        named.add(trace.code)
                        line = lines + block.count(b"\n", 0, found.start()) + 1
                        what = f"the text holds {_words(trace, found.group())}"
                        yield finding(trace.code, what, file=path, line=line)
                lines += block.count(b"\n")
    except OSError as error:
        yield finding("FILE_UNREADABLE", f"the file cannot be read: {error.strerror or error}", file=path)


def _search_picture(run: RunDirectory, path: str) -> Iterator[Finding]:
    try:
        data = run.files.read(path, at_most=run.limits.file_bytes)
        texts = {} if data is None else read_png_text(data).texts
    except (OSError, PngFaultError):
        # Whoever looks at pictures names it.
        return
    block = "\n".join(texts.values()).encode()
    for code in ("SECRET_PRESENT", "HOME_PATH_PRESENT"):
        found = next(((trace, hit) for trace in TRACES if trace.code == code and (hit := trace.find(block))), None)
        if found is not None:
            yield finding(code, f"a text of the picture holds {_words(found[0], found[1].group())}", file=path)


def _has_mark(block: bytes) -> bool:
    """Look for all marks in one pass, which the table library's search does ten times faster than one by one."""
    text = pl.Series([block.decode("utf-8", "replace")])
    return bool(text.str.contains(_MARKS)[0])


def _words(trace: Trace, found: bytes) -> str:
    text = found.decode("utf-8", "replace")
    if trace.code == "SECRET_PRESENT":
        return f"what looks like a secret, {seen(text[:_SHOWN])} and {len(text) - _SHOWN} more characters"
    return f"a path of a home folder, {seen(text)}"

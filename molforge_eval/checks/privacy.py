"""Secrets and home folders in records: warned of, never repeated in full."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.findings import Finding
from molforge_eval.png_text import PngFaultError, read_png_text
from molforge_eval.run_directory import RunDirectory

_BLOCK = 2**21
_SHOWN = 6


class _Trace(NamedTuple):
    """One spelling of what should not be in a record."""

    code: str
    mark: bytes
    """What the spelling begins with; a block without any mark is not searched."""
    tail: bytes

    def find(self, block: bytes) -> re.Match[bytes] | None:
        """Find it in a block of text."""
        return re.search(re.escape(self.mark) + self.tail, block) if self.mark in block else None


_TOKEN = rb"[A-Za-z0-9_]{30,}"
_NAME = rb"[A-Za-z0-9._-]{1,64}"
_TOKEN_MARKS = (b"hf_", b"ghp_", b"gho_", b"ghs_", b"ghu_", b"ghr_", b"github_pat_", b"npm_", b"wandb_v1_")
_HOMES = (b"/home/", b"/Users/", b"/root/", b":\\\\Users\\\\", b":\\Users\\")
"""The last two: as JSON spells a path of Windows, and as any other text does."""
_TRACES = (
    *(_Trace("SECRET_PRESENT", mark, _TOKEN) for mark in _TOKEN_MARKS),
    _Trace("SECRET_PRESENT", b"sk-", rb"[A-Za-z0-9_-]{32,}"),
    _Trace("SECRET_PRESENT", b"AKIA", rb"[0-9A-Z]{16}"),
    _Trace("SECRET_PRESENT", b"ASIA", rb"[0-9A-Z]{16}"),
    _Trace("SECRET_PRESENT", b"AIza", rb"[A-Za-z0-9_-]{35}"),
    _Trace("SECRET_PRESENT", b"ya29.", rb"[A-Za-z0-9_-]{20,}"),
    _Trace("SECRET_PRESENT", b"glpat-", rb"[A-Za-z0-9_-]{20,}"),
    _Trace("SECRET_PRESENT", b"hooks.slack.com/services/", rb"[A-Za-z0-9/]{20,}"),
    _Trace("SECRET_PRESENT", b"WANDB_API_KEY", rb"[\\\"':= ]{1,8}[0-9a-f]{40}"),
    _Trace("SECRET_PRESENT", b"aws_secret_access_key", rb"[\\\"':= ]{1,8}[A-Za-z0-9/+=]{40}"),
    _Trace("SECRET_PRESENT", b"xox", rb"[abprs]-[A-Za-z0-9-]{20,}"),
    _Trace("SECRET_PRESENT", b"-----BEGIN ", rb"[A-Z ]{0,20}PRIVATE KEY-----"),
    *(_Trace("HOME_PATH_PRESENT", mark, _NAME) for mark in _HOMES),
)
_MARKS = "|".join(re.escape(trace.mark.decode()) for trace in _TRACES)


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
                for trace in _TRACES if _has_mark(block) else ():
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
        found = next(((trace, hit) for trace in _TRACES if trace.code == code and (hit := trace.find(block))), None)
        if found is not None:
            yield finding(code, f"a text of the picture holds {_words(found[0], found[1].group())}", file=path)


def _has_mark(block: bytes) -> bool:
    """Look for all marks in one pass, which the table library's search does ten times faster than one by one."""
    text = pl.Series([block.decode("utf-8", "replace")])
    return bool(text.str.contains(_MARKS)[0])


def _words(trace: _Trace, found: bytes) -> str:
    text = found.decode("utf-8", "replace")
    if trace.code == "SECRET_PRESENT":
        return f"what looks like a secret, {seen(text[:_SHOWN])} and {len(text) - _SHOWN} more characters"
    return f"a path of a home folder, {seen(text)}"

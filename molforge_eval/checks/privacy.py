"""Secrets and home folders in records: warned of, never repeated in full."""

from __future__ import annotations

import re
from collections.abc import Iterator

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.findings import Finding
from molforge_eval.run_directory import RunDirectory

_SECRET = re.compile(
    rb"\b(?:hf_[A-Za-z0-9]{30,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|sk-[A-Za-z0-9_-]{32,}"
    rb"|AKIA[0-9A-Z]{16}|xox[abprs]-[A-Za-z0-9-]{20,})\b|-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----"
)
_HOME = re.compile(rb"(?:/home/|/Users/|[A-Za-z]:\\{1,2}Users\\{1,2})[A-Za-z0-9._-]{1,64}|/root/[A-Za-z0-9._-]{1,64}")
_SHOWN = 6


def check(run: RunDirectory) -> Iterator[Finding]:
    """Search the text records; of each kind the first place in a file is named."""
    for path in run.files.sizes:
        is_text = path.endswith((".json", ".jsonl", ".csv", ".md")) and not path.startswith("adapters/tokenizer")
        if is_text and (layout.is_record(path) or path == layout.CHECKSUMS):
            yield from _search(run, path)


def _search(run: RunDirectory, path: str) -> Iterator[Finding]:
    wanted = {"SECRET_PRESENT": _SECRET, "HOME_PATH_PRESENT": _HOME}
    try:
        with run.files.open(path) as handle:
            number = 0
            while wanted and (raw := handle.readline(run.limits.line_bytes)):
                number += 1
                for code, pattern in list(wanted.items()):
                    found = pattern.search(raw)
                    if found is not None:
                        del wanted[code]
                        yield finding(code, f"the text holds {_words(code, found.group())}", file=path, line=number)
    except OSError as error:
        yield finding("FILE_UNREADABLE", f"the file cannot be read: {error.strerror or error}", file=path)


def _words(code: str, found: bytes) -> str:
    text = found.decode("utf-8", "replace")
    if code == "SECRET_PRESENT":
        return f"what looks like a secret, {seen(text[:_SHOWN])} and {len(text) - _SHOWN} more characters"
    return f"a path of a home folder, {seen(text)}"

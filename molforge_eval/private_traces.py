"""How secrets and home folders are spelled: what a check looks for in records, and what a recorder takes out."""

from __future__ import annotations

import re
from typing import NamedTuple


class Trace(NamedTuple):
    """One spelling of what should not be in a record."""

    code: str
    mark: bytes
    """What the spelling begins with; a block without any mark is not searched."""
    tail: bytes

    @property
    def pattern(self) -> bytes:
        """Mark and what follows it, as a regular expression."""
        return re.escape(self.mark) + self.tail

    def find(self, block: bytes) -> re.Match[bytes] | None:
        """Find it in a block of text."""
        return re.search(self.pattern, block) if self.mark in block else None


_TOKEN = rb"[A-Za-z0-9_]{30,}"
_NAME = rb"[A-Za-z0-9._-]{1,64}"
_TOKEN_MARKS = (b"hf_", b"ghp_", b"gho_", b"ghs_", b"ghu_", b"ghr_", b"github_pat_", b"npm_", b"wandb_v1_")
_HOMES = (b"/home/", b"/Users/", b"/root/", b":\\\\Users\\\\", b":\\Users\\")
"""The last two: as JSON spells a path of Windows, and as any other text does."""
TRACES = (
    *(Trace("SECRET_PRESENT", mark, _TOKEN) for mark in _TOKEN_MARKS),
    Trace("SECRET_PRESENT", b"sk-", rb"[A-Za-z0-9_-]{32,}"),
    Trace("SECRET_PRESENT", b"AKIA", rb"[0-9A-Z]{16}"),
    Trace("SECRET_PRESENT", b"ASIA", rb"[0-9A-Z]{16}"),
    Trace("SECRET_PRESENT", b"AIza", rb"[A-Za-z0-9_-]{35}"),
    Trace("SECRET_PRESENT", b"ya29.", rb"[A-Za-z0-9_-]{20,}"),
    Trace("SECRET_PRESENT", b"glpat-", rb"[A-Za-z0-9_-]{20,}"),
    Trace("SECRET_PRESENT", b"hooks.slack.com/services/", rb"[A-Za-z0-9/]{20,}"),
    Trace("SECRET_PRESENT", b"WANDB_API_KEY", rb"[\\\"':= ]{1,8}[0-9a-f]{40}"),
    Trace("SECRET_PRESENT", b"aws_secret_access_key", rb"[\\\"':= ]{1,8}[A-Za-z0-9/+=]{40}"),
    Trace("SECRET_PRESENT", b"xox", rb"[abprs]-[A-Za-z0-9-]{20,}"),
    Trace("SECRET_PRESENT", b"-----BEGIN ", rb"[A-Z ]{0,20}PRIVATE KEY-----"),
    *(Trace("HOME_PATH_PRESENT", mark, _NAME) for mark in _HOMES),
)

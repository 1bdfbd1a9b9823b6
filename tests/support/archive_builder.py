"""Archives of a few members, and what unpacking one finds."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

from molforge_eval.archive import unpack_archive
from molforge_eval.limits import Limits


def make_archive(path: Path, *members: tuple[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> Path:
    """Write an archive of members, each a name and its bytes."""
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def unpacked_codes(path: Path, limits: Limits | None = None) -> list[str]:
    """Unpack an archive, remove what was unpacked, and return the codes of what was found."""
    unpacked = unpack_archive(path, limits or Limits())
    shutil.rmtree(unpacked.holder)
    return [finding.code for finding in unpacked.findings]

"""Ways in which a run is sealed after its edits: what a forger, or the script, computes again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from evidence_builder import reseal
from old_layout import reseal_old, summarise_old

from molforge_eval.sealing import seal_run

SEALS: Mapping[str, Callable[[Path], object]] = {
    "all": reseal,
    "hashes": seal_run,
    "old": reseal_old,
    "script": summarise_old,
}

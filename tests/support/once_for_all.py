"""Bytes that cost much to make and serve the tests of several files, made once for all processes of a run."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable

import pytest


def once_for_all(factory: pytest.TempPathFactory, name: str, make: Callable[[], bytes]) -> bytes:
    """Make bytes, or take them from the process of this run that has made them."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        # The folder above that of a single process holds earlier runs.
        return make()
    kept = factory.getbasetemp().parent / name
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_bytes(make())
    return kept.read_bytes()

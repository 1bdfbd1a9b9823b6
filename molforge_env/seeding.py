"""Seeds and the streams that grow from them.

A draw anywhere comes from a stream with a name; adding a stream moves no other one. Two processes get equal streams
from equal names, whatever the hash seed of the interpreter.
"""

from __future__ import annotations

from hashlib import sha256
from random import Random


def stream_seed(seed: int, *names: str | int) -> int:
    """Derive a 64-bit seed for another generator (numpy, torch) from a seed and a name.

    >>> stream_seed(7, "assay") == stream_seed(7, "assay"), stream_seed(7, "assay") == stream_seed(8, "assay")
    (True, False)
    """
    # The separator cannot occur in a number, and names are length-prefixed, so no two lists of names collide.
    text = "\x1f".join([str(seed), *(f"{len(str(name))}:{name}" for name in names)])
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big")


def stream(seed: int, *names: str | int) -> Random:
    """Open a stream of draws for one purpose.

    Args:
        seed: The recorded seed.
        names: What is drawn, such as `"policy", "level_0_easy"`.
    """
    return Random(stream_seed(seed, *names))

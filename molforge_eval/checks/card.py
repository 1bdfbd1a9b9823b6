"""The card of the adapter: written from the records, so every line of it is held to what they give.

Another version words a card in another way; its card is only held to the seal.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from molforge_env import __version__
from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.findings import Finding
from molforge_eval.run_directory import RunDirectory

_MOST_BYTES = 2**18


def check(run: RunDirectory) -> Iterator[Finding]:
    """Write the card again and name the first line that differs."""
    path = layout.ADAPTER_CARD
    if path not in run.files or run.manifest is None or run.manifest.product_version != __version__:
        return
    from molforge_eval.report.model_card import write_card

    wanted = write_card(run)
    if wanted is None:
        return
    try:
        data = run.files.read(path, at_most=_MOST_BYTES)
    except OSError as error:
        yield finding("FILE_UNREADABLE", f"the file cannot be read: {error.strerror or error}", file=path)
        return
    if data is None:
        yield finding("CARD_DIFFERS", f"the card has more than {_MOST_BYTES} bytes", file=path)
        return
    pairs = zip_longest(data.decode("utf-8", "replace").split("\n"), wanted.split("\n"))
    for line, (said, given) in enumerate(pairs, start=1):
        if said != given:
            what = f"the card says {_words(said)} where the records give {_words(given)}"
            yield finding("CARD_DIFFERS", what, file=path, line=line)
            return


def _words(line: str | None) -> str:
    return "nothing more" if line is None else seen(line)

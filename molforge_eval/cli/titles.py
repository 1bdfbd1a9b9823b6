"""The `--title` of a packet or a comparison."""

from __future__ import annotations

from typing import Any

from molforge_env.errors import UsageError

LONGEST_TITLE = 200


def take_title(given: str | None) -> dict[str, Any]:
    """Return the title as an option to pass on; nothing when none is given.

    Raises:
        UsageError: It is empty or too long.
    """
    if given is None:
        return {}
    if not given.strip():
        raise UsageError("the title is empty", where="--title", mend="Write one, or leave --title out.")
    if len(given) > LONGEST_TITLE:
        what = f"the title has {len(given)} characters, the limit is {LONGEST_TITLE}"
        raise UsageError(what, where="--title", mend="Shorten it.")
    from molforge_eval.catalogue import printable

    # A title in another encoding than the terminal's arrives with half characters, which no model of ours holds.
    return {"title": printable(given)}

"""Whether each line of a rollout log is chained to the line of its episode that stands before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from molforge_eval.canonical import chain_of, chain_start


def chains_hold(rows: Iterable[dict[str, Any]], last: dict[str, str]) -> list[bool]:
    """Tell of each row that fits its schema whether it is chained to the one before it.

    Args:
        rows: Rows in file order.
        last: Chain value of the latest row of each episode; brought forward.
    """
    holds = []
    for row in rows:
        episode_id, chain = row["episode_id"], row.pop("chain")
        previous = last.get(episode_id) or chain_start(row["run_id"], episode_id)
        holds.append(chain_of(previous, row) == chain)
        row["chain"] = last[episode_id] = chain
    return holds


def holds_chain(row: Mapping[str, Any], last: dict[str, str]) -> bool:
    """Tell the same of a row that may not fit its schema; one without a chain of its own is chained to nothing."""
    run_id, episode_id, chain = row.get("run_id"), row.get("episode_id"), row.get("chain")
    if not (isinstance(run_id, str) and isinstance(episode_id, str) and isinstance(chain, str)):
        return False
    previous = last.get(episode_id) or chain_start(run_id, episode_id)
    # The recorded value goes on, so that one edited line is one break.
    last[episode_id] = chain
    try:
        return chain_of(previous, row) == chain
    except TypeError:
        # Nested deeper than the canonical spelling can be written.
        return False

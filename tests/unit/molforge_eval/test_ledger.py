"""Findings up to a limit, and what is remembered of the others."""

from __future__ import annotations

from molforge_eval.catalogue import finding
from molforge_eval.ledger import Ledger


def test_a_number_that_is_counted_only_is_remembered_as_lost() -> None:
    ledger = Ledger(2)
    lost = [finding("NUMBER_NOT_FINITE", "NaN", file="a.jsonl", line=line, pointer="/reward") for line in (1, 2, 3)]
    ledger.extend(lost)
    follows = finding("SCHEMA_UNMET", "null is no number", file="a.jsonl", line=3, pointer="/reward")
    other = finding("SCHEMA_UNMET", "null is no number", file="a.jsonl", line=3, pointer="/loss")

    assert len(ledger.findings()) == 2
    assert ledger.omitted() == {"NUMBER_NOT_FINITE": 1}
    assert ledger.has_lost(follows.where)
    assert not ledger.has_lost(other.where)

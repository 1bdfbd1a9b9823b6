"""Moments of logs as instants, however they are spelled: with an offset, with fractions, with neither."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import polars as pl

_LEAP = re.compile(r":60(?=[.,Z+-]|$)")
"""A leap second, which this calendar has no room for."""
_ZONE = r"(?i)(Z|[+-][0-9]{2}:?[0-9]{2})$"
_INSTANT = pl.Datetime("us", "UTC")


def moment_of(column: str) -> pl.Expr:
    """Read a column of texts as instants in whole seconds; a text that is no moment is null.

    A moment without a zone is read as UTC: within one log that keeps the order of its lines.
    """
    return pl.col(column).map_batches(_parsed, return_dtype=_INSTANT)


def has_zones(moments: pl.Series) -> bool:
    """Tell whether every moment of a column of texts says in which zone it is; only then can two logs be compared."""
    return bool(moments.drop_nulls().str.contains(_ZONE).all())


def instant_of(text: str) -> datetime | None:
    """Read one moment as ISO 8601 spells it; `None` when it is none.

    >>> instant_of("2026-01-01T02:00:00.5+02:00").isoformat(), instant_of("2026-13-01")
    ('2026-01-01T00:00:00+00:00', None)
    """
    try:
        moment = datetime.fromisoformat(_LEAP.sub(":59", text.strip().upper())).replace(microsecond=0)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return moment.replace(tzinfo=UTC)


def _parsed(texts: pl.Series) -> pl.Series:
    # Nearly all are spelled as every writer of ours spells them; only the others are read one by one.
    plain = texts.str.to_datetime("%Y-%m-%dT%H:%M:%SZ", strict=False, time_unit="us").dt.replace_time_zone("UTC")
    odd = plain.is_null() & texts.is_not_null()
    if not odd.any():
        return plain
    places = odd.arg_true()
    return plain.scatter(places, [instant_of(text) for text in texts.gather(places)])

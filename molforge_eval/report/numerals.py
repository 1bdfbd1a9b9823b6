"""Spell a number for a reader: the one place that turns a float into text.

A minus is a true minus sign, a number that is not known is an en dash, and nothing is ever rounded twice.
"""

from __future__ import annotations

from molforge_eval.statistics import spell_p_value

ABSENT = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
THIN = "\N{NARROW NO-BREAK SPACE}"
_THOUSAND = 1000
_LONGEST_PLAIN = 1e7


def decimal(value: float | None, places: int = 2, *, signed: bool = False) -> str:
    """Spell a number with fixed places.

    Args:
        value: Any finite number; `None` gives an en dash.
        places: Digits behind the point.
        signed: A positive number gets a plus.

    >>> decimal(-0.125) == MINUS + "0.12", decimal(0.5, signed=True), decimal(None) == ABSENT
    (True, '+0.50', True)
    """
    if value is None:
        return ABSENT
    if abs(value) >= _LONGEST_PLAIN:
        return f"+{scientific(value)}" if signed and value > 0 else scientific(value)
    text = f"{value:.{places}f}"
    if float(text) == 0.0:
        return text.lstrip("-")
    if text.startswith("-"):
        return MINUS + text[1:]
    return f"+{text}" if signed else text


def whole(value: int | None) -> str:
    """Spell a count with narrow blanks between thousands.

    >>> whole(61440).replace(THIN, "_")
    '61_440'
    """
    if value is None:
        return ABSENT
    return f"{abs(value):,}".replace(",", THIN) if value >= 0 else MINUS + f"{-value:,}".replace(",", THIN)


def scientific(value: float | None) -> str:
    """Spell a number of any size with three digits, as for a learning rate.

    >>> scientific(0.002), scientific(2e-6).replace(MINUS, "-"), scientific(12.5)
    ('0.002', '2e-6', '12.5')
    """
    if value is None:
        return ABSENT
    text = f"{value:.3g}"
    if "e" in text:
        head, tail = text.split("e")
        return f"{head}e{int(tail)}".replace("-", MINUS)
    return text.replace("-", MINUS)


def probability(value: float | None) -> str:
    """Spell a p-value; one below 0.0001 is called so.

    >>> probability(0.25), probability(0.00002).split()
    ('0.250', ['<', '0.0001'])
    """
    return ABSENT if value is None else spell_p_value(value).replace(" ", "\N{NO-BREAK SPACE}")


def percent(value: float | None, places: int = 0) -> str:
    """Spell a share as a percentage.

    >>> percent(0.125, 1).replace(THIN, " ")
    '12.5 %'
    """
    return ABSENT if value is None else f"{decimal(100 * value, places)}{THIN}%"


def interval(low: float | None, high: float | None, places: int = 2, *, signed: bool = False) -> str:
    """Spell an interval as `low to high`; an unknown bound makes it unknown."""
    if low is None or high is None:
        return ABSENT
    return f"{decimal(low, places, signed=signed)} to {decimal(high, places, signed=signed)}"


def size(count: int) -> str:
    """Spell a number of bytes.

    >>> size(2_100_000).replace(THIN, " "), size(812).replace(THIN, " ")
    ('2.1 MB', '812 B')
    """
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < _THOUSAND:
            return f"{amount:.0f}{THIN}{unit}" if unit == "B" else f"{amount:.1f}{THIN}{unit}"
        amount /= _THOUSAND
    return f"{amount:.1f}{THIN}GB"


def duration(seconds: float | None) -> str:
    """Spell a time span as seconds, minutes or hours.

    >>> duration(42.4), duration(190), duration(7300)
    ('42 s', '3 min 10 s', '2 h 1 min')
    """
    if seconds is None:
        return ABSENT
    total = round(seconds)
    minutes, rest = divmod(total, 60)
    hours, minutes_left = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes_left} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def short_commit(value: str) -> str:
    """Spell a commit by its first digits, and keep the word that says the tree was changed.

    >>> short_commit("9c41d0e6b1f34a558cc2"), short_commit("9c41d0e6b1f34a558cc2-dirty")
    ('9c41d0e6b1', '9c41d0e6b1-dirty')
    """
    return value[:10] + ("-dirty" if value.endswith("-dirty") else "")


def short_hash(value: str | None) -> str:
    """Spell a hash by its first and last digits; the full one stands in the tables."""
    return ABSENT if value is None else f"{value[:8]}…{value[-4:]}"

"""Headlines of an old summary (rule R4): a score that it names is an evaluation's, a change is after minus before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.checks.old_claims import counted
from molforge_eval.checks.quantities import words_of
from molforge_eval.checks.rounding import agrees, mean_of, number_of
from molforge_eval.findings import Finding
from molforge_eval.records.old import OldEvaluation, OldRun
from molforge_eval.strict_json import escape_step

_SIDES: Mapping[str, Literal["before", "after"]] = {
    **dict.fromkeys(("before", "pre", "initial"), "before"),
    **dict.fromkeys(("after", "post", "trained"), "after"),
}
_GROUPS = {"submission": "submission_score", "progress": "progress_score"}
_CHANGES = frozenset({"change", "delta", "diff", "difference", "gain", "improvement", "increase", "lift", "uplift"})
_RATIOS = frozenset({"relative", "rel", "pct", "percent", "percentage"})
_NAMES = frozenset({"headline", "result", "results", "score", *_SIDES})
"""One of these a headline has in its name."""
_BESIDE = frozenset(
    {
        *("absolute", "abs", "average", "avg", "comparison", "eval", "evaluation", "final", "mean", "metrics"),
        *("overall", "points", "summary", "to", "training", "vs", "minus", "rl"),
        *_GROUPS,
    }
)
"""Words that may stand beside; with any other word a number is of something else."""


class _Named(NamedTuple):
    pointer: str
    name: str
    words: frozenset[str]
    value: float
    room: float = 0.0
    """Of a text in percent, which is written for people: half of its last digit."""


def check_headlines(old: OldRun, values: Mapping[str, Any]) -> Iterator[Finding]:
    """Hold numbers whose names say that they are a score, or a change of it, to the evaluations.

    Args:
        old: The records of the run.
        values: What the summary says beyond the public keys.
    """
    for named in _numbers(values, "", "", frozenset()):
        group = next((_GROUPS[word] for word in sorted(named.words) if word in _GROUPS), "final_score")
        means = {name: _mean_of(old, name, group) for name in ("before", "after")}
        if not _CHANGES.isdisjoint(named.words):
            if not named.words <= _CHANGES | _RATIOS | _NAMES | _BESIDE:
                continue
            wanted = _changes(means["before"], means["after"], named.words)
            words = "after minus before"
        elif named.words <= _NAMES | _BESIDE and (
            not _NAMES.isdisjoint(named.words) or {"average", "final"} <= named.words
        ):
            sides = {_SIDES[word] for word in named.words if word in _SIDES}
            chosen = sides if len(sides) == 1 else set(means)
            wanted = [mean for name, mean in means.items() if name in chosen and mean is not None]
            words = f"the mean of the {min(chosen)} evaluation" if len(chosen) == 1 else "any mean of an evaluation"
        else:
            continue
        if not any(agrees(named.value, mean) or abs(named.value - mean) <= named.room for mean in wanted):
            what = f"{named.name} is {seen(named.value)}, which is not {words}: {seen(wanted)}"
            yield finding("HEADLINE_DIFFERS", what, file=layout.SUMMARY, pointer=named.pointer)


def _changes(before: float | None, after: float | None, words: frozenset[str]) -> list[float]:
    """Compute a change in the ways that it is written: plain, in points, or in parts of what was before."""
    if before is None or after is None:
        return []
    change = after - before
    ratios = [change / before, 100.0 * change / before] if before else []
    return [*ratios, 100.0 * change] if words & _RATIOS else [change, 100.0 * change, *ratios]


def _mean_of(old: OldRun, name: str, group: str) -> float | None:
    found: OldEvaluation | None = getattr(old, name)
    scores = [] if found is None else [getattr(episode, group) for episode in counted(found.episodes or ())]
    return mean_of(score for score in scores if score is not None)


def _numbers(values: Mapping[str, Any], pointer: str, prefix: str, words: frozenset[str]) -> Iterator[_Named]:
    """List numbers with their pointers, each under its own name and that of the objects around it."""
    for key, value in values.items():
        place, name, own = f"{pointer}/{escape_step(key)}", f"{prefix}{key}", words | words_of(key)
        if isinstance(value, Mapping):
            yield from _numbers(value, place, f"{name}.", own)
        elif (number := number_of(value)) is not None:
            yield _Named(place, name, own, number)
        elif isinstance(value, str) and (points := number_of(value.strip().removesuffix("%"))) is not None:
            decimals = len(value.strip().removesuffix("%").partition(".")[2])
            yield _Named(place, name, own, points / 100.0, room=0.5 * 10.0 ** -(decimals + 2))

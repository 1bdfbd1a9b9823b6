"""Statistics that an old run states in keys of its own, computed again from the episodes that they are over (rule R4).

Only what a key says in its own words is judged: a mean, a spread, an interval of a score, a share of the episodes, at
the top or in a table by task. A number of something else is held to what can be, and to nothing more.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from molforge_eval.catalogue import finding, seen
from molforge_eval.checks.bounds import contradictions_within
from molforge_eval.checks.old_episodes import SCORES, is_broken
from molforge_eval.checks.quantities import Quantity, is_multiple, quantity_of
from molforge_eval.checks.rounding import agrees, with_numbers
from molforge_eval.findings import Finding
from molforge_eval.records.old import OldEpisode
from molforge_eval.strict_json import escape_step

_SCORES = {
    **dict.fromkeys(("", "final", "score", "scores", "final_score", "final_scores"), "final_score"),
    **dict.fromkeys(("submission", "submission_score", "submission_scores"), "submission_score"),
    **dict.fromkeys(("progress", "progress_score", "progress_scores"), "progress_score"),
}
_SAID = frozenset({"score", *SCORES})
"""Names that say a score without a word for its statistic: its mean is meant."""
_FILLERS = frozenset({"eval", "evaluation", "overall", "all", "greedy"})
_TABLES = _FILLERS | {
    *("agg", "aggregate", "aggregates", "breakdown", "by", "difficulties", "difficulty", "each", "episode", "episodes"),
    *("level", "levels", "metrics", "per", "results", "scenario", "scenarios", "statistics", "stats", "summary"),
    *("table", "task", "tasks", "values"),
}
"""Words of the name of an object that say nothing of what its numbers are of."""
_SETTINGS = frozenset(
    {
        *("args", "config", "configuration", "decoding", "env", "environment", "generation", "params"),
        *("sampling", "settings"),
    }
)
_TASK_KEYS = ("scenario_id", "scenario", "task", "task_id", "difficulty", "level", "name")
_EPISODIC = frozenset(
    {
        *("", "fail", "failed", "failure", "finish", "finished", "pass", "passed", "solve", "solved", "submission"),
        *("submit", "submitted", "success", "successes", "successful", "succeeded"),
    }
)
"""What an episode as a whole does or does not: a share of it is one of so many episodes."""
_OVER = ("", "episode", "episodes", "sample", "samples")
_ROOM = 1e-4


def counted(episodes: Sequence[OldEpisode]) -> list[OldEpisode]:
    """Return the episodes that a mean is over: those with a score that the environment did not break."""
    return [episode for episode in episodes if episode.final_score is not None and not is_broken(episode)]


_NOTHING_SAID = Quantity(None, "")


class _Claim(NamedTuple):
    pointer: str
    key: str
    said: Quantity
    value: float
    episodes: Sequence[OldEpisode]
    depth: int
    is_by_task: bool = False
    """Whether the key is the name of a task, and what is said is said by the table around it."""


def check_claims(
    path: str,
    values: Mapping[str, Any],
    episodes: Sequence[OldEpisode],
    *,
    pointer: str = "",
    mean: float | None = None,
) -> Iterator[Finding]:
    """Hold every statistic that an object states to the episodes that it is over, and to what can be.

    Args:
        path: File of the object.
        values: The object, without what is compared elsewhere.
        episodes: Episodes that it is over.
        pointer: Where the object stands in the file.
        mean: The public mean beside it, which spreads and ends are held to.
    """
    values = with_numbers(values)
    beside = {} if mean is None else {"average_final_score": mean}
    impossible = dict(contradictions_within({**values, **beside}))
    for place, what in impossible.items():
        yield finding("NUMBER_IMPOSSIBLE", what, file=path, pointer=f"{pointer}{place}")
    for claim in _claims(values, "", _NOTHING_SAID, episodes):
        if claim.pointer in impossible or not claim.episodes:
            continue
        fault = _fault_of(claim)
        if fault is not None:
            yield finding(*fault, file=path, pointer=f"{pointer}{claim.pointer}")


def _claims(
    values: Mapping[str, Any], pointer: str, held: Quantity, episodes: Sequence[OldEpisode], depth: int = 0
) -> Iterator[_Claim]:
    """Walk an object: numbers under keys that say what they are, each with the episodes that it is over."""
    for key, value in values.items():
        place = f"{pointer}/{escape_step(key)}"
        said = quantity_of(key)
        about = _without(said.subject, _FILLERS)
        if isinstance(value, Mapping):
            yield from _claims_of_object(key, value, place, held, episodes, depth)
        elif isinstance(value, list | tuple):
            yield from _claims_of_rows(key, value, place, held, episodes, depth)
            if said.kind == "interval" and len(value) == 2:
                for index, (kind, end) in enumerate(zip(("low", "high"), value, strict=True)):
                    if _is_number(end):
                        ends = Quantity(kind, about or held.subject)  # type: ignore[arg-type] # one of the two kinds
                        yield _Claim(f"{place}/{index}", key, ends, float(end), episodes, depth)
        elif _is_number(value):
            own = said._replace(kind=said.kind or held.kind, subject=about or held.subject)
            yield _Claim(place, key, own, float(value), episodes, depth)


def _claims_of_object(
    key: str, value: Mapping[str, Any], place: str, held: Quantity, episodes: Sequence[OldEpisode], depth: int
) -> Iterator[_Claim]:
    said = quantity_of(key)
    about = _without(said.subject, _TABLES)
    own = _of_task(key, episodes)
    if own is not None:
        yield from _claims(value, place, held, own, depth + 1)
        return
    if about not in _SCORES or _is_of_one(key) or not _SETTINGS.isdisjoint(key.lower().split("_")):
        # What is inside is of something else: a reward, a baseline, the settings, one episode.
        return
    tasks = {name: chosen for name in value if (chosen := _of_task(name, episodes)) is not None}
    table = said._replace(kind=said.kind or held.kind, subject=about or held.subject)
    for name, chosen in tasks.items():
        if _is_number(value[name]):
            yield _Claim(
                f"{place}/{escape_step(name)}", name, table, float(value[name]), chosen, depth + 1, is_by_task=True
            )
    rest = {name: inner for name, inner in value.items() if name not in tasks or isinstance(inner, Mapping)}
    if said.kind == "interval":
        rest = {f"ci_{name}": inner for name, inner in rest.items()}
        for claim in _claims(rest, "", table._replace(kind=None), episodes, depth + 1):
            yield claim._replace(pointer=f"{place}/{claim.pointer.removeprefix('/ci_')}")
        return
    yield from _claims(rest, place, table, episodes, depth + 1)


def _claims_of_rows(
    key: str, rows: Sequence[Any], place: str, held: Quantity, episodes: Sequence[OldEpisode], depth: int
) -> Iterator[_Claim]:
    """Walk a list that is a table by task; where two rows are of one task, they are single episodes."""
    about = _without(quantity_of(key).subject, _TABLES)
    objects = [(index, row) for index, row in enumerate(rows) if isinstance(row, Mapping)]
    names = [_names_of(row) for _, row in objects]
    if about not in _SCORES or _is_of_one(key) or len(set(names)) < len(names):
        return
    table = Quantity(None, about or held.subject)
    for index, row in objects:
        own = next((found for name in _names_of(row) if (found := _of_task(name, episodes)) is not None), ())
        yield from _claims(row, f"{place}/{index}", table, own, depth + 1)


def _names_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(value for key in _TASK_KEYS if isinstance(value := row.get(key), str))


def _is_of_one(key: str) -> bool:
    words = key.lower().split("_")
    return "episode" in words or not {"best", "worst"}.isdisjoint(words)


def _without(subject: str, fillers: frozenset[str]) -> str:
    return "_".join(word for word in subject.split("_") if word not in fillers)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _of_task(name: str, episodes: Sequence[OldEpisode]) -> list[OldEpisode] | None:
    """Choose the episodes of a task or a difficulty of this name; `None` when there is none."""
    own = [episode for episode in episodes if name in (episode.scenario_id, episode.difficulty)]
    return own or None


_Fault = tuple[str, str]


def _fault_of(claim: _Claim) -> _Fault | None:
    """Return code and sentence of what is wrong with a claim."""
    own = counted(claim.episodes)
    if claim.said.kind == "count":
        return _fault_of_count(claim, len(own))
    if claim.said.kind == "share":
        return _fault_of_share(claim, len(own))
    if claim.said.kind is None and claim.is_by_task and claim.said.subject == "":
        return _fault_of_cell(claim, own)
    group = _SCORES.get(claim.said.subject)
    if group is None or (claim.said.kind is None and claim.said.subject not in _SAID):
        return None
    scores = [score for episode in own if (score := getattr(episode, group)) is not None]
    return _fault_of_score(claim, scores) if scores else None


def _fault_of_share(claim: _Claim, valid: int) -> _Fault | None:
    _, subject, is_percent = claim.said
    sizes = [size for size in (valid, len(claim.episodes)) if size]
    if subject not in _EPISODIC or any(is_multiple(claim.value, size, is_percent=is_percent) for size in sizes):
        return None
    return "NUMBER_IMPOSSIBLE", f"{claim.key} is {seen(claim.value)}, which is no number of {sizes[0]}-ths"


def _fault_of_score(claim: _Claim, scores: Sequence[float]) -> _Fault | None:
    kind, value = claim.said.kind, claim.value
    if kind == "std" and len(scores) == 1:
        what = f"{claim.key} is {seen(value)} over 1 episode"
        return ("NUMBER_IMPOSSIBLE", what) if abs(value) > 0.0 else None
    if kind in ("low", "high"):
        mean = statistics.fmean(scores)
        is_beyond = value > mean + _ROOM if kind == "low" else value < mean - _ROOM
        what = f"{claim.key} is {seen(value)} as the {kind} end of an interval, the mean is {seen(mean)}"
        return ("NUMBER_IMPOSSIBLE", what) if is_beyond else None
    wanted = _computed(kind or "mean", scores)
    if not wanted or any(agrees(value, computed) for computed in wanted):
        return None
    return "SUMMARY_DIFFERS", f"recorded is {seen(value)}, computed over n={len(scores)} it is {seen(wanted[-1])}"


def _computed(kind: str, scores: Sequence[float]) -> list[float]:
    """Compute a statistic in each way that it is computed: spreads of a sample and of a whole."""
    if kind in ("std", "sem"):
        spreads = [statistics.pstdev(scores)] + ([statistics.stdev(scores)] if len(scores) > 1 else [])
        return spreads if kind == "std" else [spread / math.sqrt(len(scores)) for spread in spreads]
    simple: Mapping[str, Callable[[Sequence[float]], float]] = {
        "mean": statistics.fmean,
        "median": statistics.median,
        "min": min,
        "max": max,
    }
    return [float(simple[kind](scores))] if kind in simple else []


def _fault_of_count(claim: _Claim, valid: int) -> _Fault | None:
    """Compare a count; those at the top are compared with those of the file."""
    is_episodes = claim.said.subject in _OVER[1:] or "episode" in claim.key.lower()
    is_known = claim.is_by_task and claim.said.subject in _OVER
    if claim.depth == 0 or not (is_episodes or is_known) or claim.value in (valid, len(claim.episodes)):
        return None
    what = f"{claim.key} is {claim.value:g}, there are {len(claim.episodes)} episodes, {valid} of them counted"
    return "SUMMARY_DIFFERS", what


def _fault_of_cell(claim: _Claim, own: Sequence[OldEpisode]) -> _Fault | None:
    """A number by task in a table that says no more: any mean, a count or a share of its episodes."""
    groups = [[score for episode in own if (score := getattr(episode, key)) is not None] for key in SCORES]
    means = [statistics.fmean(scores) for scores in groups if scores]
    if not 0.0 <= claim.value <= 1.0 or is_multiple(claim.value, len(own)):
        return None
    if any(agrees(claim.value, mean) for mean in means):
        return None
    return "SUMMARY_DIFFERS", f"{claim.key} is {seen(claim.value)}, its {len(own)} episodes give {seen(means[0])}"

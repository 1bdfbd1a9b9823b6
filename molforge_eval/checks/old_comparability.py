"""Whether before and after of format version 0 measure the same thing (rule R5), as far as the files say how."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.checks.old_claims import counted
from molforge_eval.checks.old_episodes import SCORES
from molforge_eval.checks.old_evaluations import is_constant
from molforge_eval.findings import Finding
from molforge_eval.records.old import OldEpisode, OldEvaluation
from molforge_eval.run_directory import RunDirectory
from molforge_eval.strict_json import pointer_of

_SETTINGS = re.compile(
    r"(^|[/_.\s-])(temperature|top|sampl(e|ing)|decoding|seeds?|turns?|budget|horizon|tokens?|length|limit|penalty|beams"
    r"|mode|suite|prompt|interface|rules|env(ironment)?|randomi[sz](ed|ation)|quanti[sz]ation|dtype|backend|tools|version"
    r"|model|tokenizer|template|deterministic|greedy|thinking)([/_.\s-]|$)"
)
_HOLDERS = re.compile(
    r"(eval_|generation_|sampling_)?(config|configuration|settings|args|params|parameters|decoding|generation|sampling"
    r"|env|environment)"
)
"""Objects whose every key is a setting."""
_RESULTS = re.compile(
    r"score|reward|mean|average|std|median|success|rate|delta|improve|gain|interval|ci_|_ci$|p_value|elapsed|duration"
    r"|seconds|runtime|created|started|ended|finished|timestamp|adapter|checkpoint|path|output|run_name|label|reason"
)
_SEEDS = ("seed", "seeds")
_TASKS = "episodes by task"
_OF_EPISODES = "episodes/*/"
_DECIMALS = 3
"""The rules give four; a copy may be written with fewer."""


def check(run: RunDirectory) -> Iterator[Finding]:
    """Compare the two evaluations with each other."""
    if run.old is None or len(run.old.evaluations()) < 2:
        return
    (_, before), (_, after) = run.old.evaluations()
    for key, left, right in _differences(before, after):
        what = f"{key}: {seen(left)} before, {seen(right)} after"
        yield finding("BEFORE_AFTER_UNLIKE", what, file=layout.AFTER, pointer=_pointer_of(key, after))
    if not any(_seeds_of(evaluation) for evaluation in (before, after)):
        what = "neither evaluation names seeds: no episode is the pair of another, and a paired difference is refused"
        yield finding("SEEDS_ABSENT", what, file=layout.AFTER, pointer="/episodes")
    yield from _check_effect(before.episodes or (), after.episodes or ())


def settings_of(evaluation: OldEvaluation) -> dict[str, Any]:
    """Collect what an evaluation says about how it was played, by key; results and names are no settings."""
    found = dict(_settings_in(evaluation.model_extra or {}))
    for episode in evaluation.episodes or ():
        for key, value in _settings_in(episode.model_extra or {}, _OF_EPISODES):
            if key.rsplit("/", 1)[-1] not in _SEEDS:
                values = found.setdefault(key, [])
                if isinstance(values, list) and value not in values:
                    values.append(value)
    return found


def _settings_in(values: Mapping[str, Any], prefix: str = "", *, is_held: bool = False) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        name = key.lower()
        if isinstance(value, Mapping):
            yield from _settings_in(value, f"{prefix}{key}.", is_held=is_held or bool(_HOLDERS.fullmatch(name)))
        elif is_held or (not _RESULTS.search(name) and (isinstance(value, bool) or _SETTINGS.search(name))):
            yield f"{prefix}{key}", value


def _differences(before: OldEvaluation, after: OldEvaluation) -> Iterator[tuple[str, Any, Any]]:
    left, right = (_tasks_of(evaluation.episodes or ()) for evaluation in (before, after))
    if left != right:
        yield _TASKS, left, right
    seeds = [_seeds_of(evaluation) for evaluation in (before, after)]
    if seeds[0] != seeds[1]:
        yield "seeds", seeds[0], seeds[1]
    known = [settings_of(evaluation) for evaluation in (before, after)]
    for key in dict.fromkeys([*known[0], *known[1]]):
        if key not in _SEEDS and known[0].get(key) != known[1].get(key):
            yield key, known[0].get(key), known[1].get(key)


def _pointer_of(key: str, evaluation: OldEvaluation) -> str:
    """Point at what differs; what no single value of the file says is said of its episodes."""
    extra = evaluation.model_extra or {}
    if key == _TASKS or key.startswith(_OF_EPISODES):
        return "/episodes"
    if key == "seeds":
        return next((f"/{name}" for name in _SEEDS if name in extra), "/episodes")
    return pointer_of([key] if key in extra else key.split("."))


def _tasks_of(episodes: Sequence[OldEpisode]) -> dict[str, int]:
    return dict(sorted(Counter(episode.scenario_id for episode in episodes).items()))


def _seeds_of(evaluation: OldEvaluation) -> list[Any]:
    """The seeds that an evaluation names, of the file or of its episodes, in an order of their own."""
    extra = evaluation.model_extra or {}
    own = [extra[key] for key in _SEEDS if extra.get(key) is not None]
    flat = [item for value in own for item in (value if isinstance(value, list) else [value])]
    for episode in evaluation.episodes or ():
        seed = (episode.model_extra or {}).get("seed")
        if seed is not None:
            flat.append([episode.scenario_id, seed])
    return sorted(flat, key=repr)


def _check_effect(before: Sequence[OldEpisode], after: Sequence[OldEpisode]) -> Iterator[Finding]:
    """Find an after that is the before again, and a grader that knows one score."""
    every = [*before, *after]
    if is_constant(every):
        own = counted(every)
        tasks = len({episode.scenario_id for episode in own})
        what = f"all {len(own)} episodes over {tasks} tasks have final_score {seen(own[0].final_score)}"
        yield finding("SCORE_CONSTANT", what, file=layout.AFTER, pointer="/episodes")
    elif Counter(map(_conduct, before)) == Counter(map(_conduct, after)):
        what = f"all {len(after)} episodes are step for step those of the before evaluation"
        yield finding("EVALUATIONS_EQUAL", what, file=layout.AFTER, pointer="/episodes")


def _conduct(episode: OldEpisode) -> tuple[object, ...]:
    """What was done and scored; a copy that was rounded is one all the same."""
    steps = tuple((step.action_type, _rounded(step.reward), step.error) for step in episode.trace or ())
    return episode.scenario_id, *(_rounded(getattr(episode, key)) for key in SCORES), steps


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, _DECIMALS)

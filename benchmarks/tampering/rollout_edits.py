"""Tampering with the rollout log: single values, whole episodes, whole groups."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from evidence_builder import edit_json, read_lines, spell_call, write_lines

from benchmarks.tampering.operator import (
    Line,
    Operator,
    UnfitRunError,
    all_of,
    episodes_of,
    find,
    is_called,
    is_last,
    is_poor,
    line_edit,
    lines_edit,
)
from molforge_eval import layout


def _set(name: str, gain: str, wanted: Callable[[Line], Any], **changes: Any) -> Operator:
    return Operator(f"rollout: {name}", gain, line_edit(wanted, lambda line: line.update(changes)))


def _is_middle(line: Line) -> bool:
    return is_called(line) and line["turn"] > 0 and not line["done"]


def _raise_by(key: str, amount: float) -> Callable[[Line], None]:
    def change(line: Line) -> None:
        line[key] = round(line[key] + amount, 4)

    return change


def _praise(line: Line) -> None:
    line.update(final_score=0.99, submission_score=0.99, reward=0.99, episode_score=0.99, training_reward=1.7)


def _act_better(line: Line) -> None:
    other = "nitrile" if line["arguments"]["fragment"] != "nitrile" else "acrylamide"
    line["arguments"] = {**line["arguments"], "slot": "warhead", "fragment": other}
    line.update(slot="warhead", fragment=other, raw_completion=spell_call("edit", line["arguments"]))


def _is_edit(line: Line) -> bool:
    return line["tool"] == "edit" and is_called(line) and line["raw_completion"] is not None and not line["done"]


def _drop(place: int) -> Callable[[list[Line]], list[Line]]:
    def change(lines: list[Line]) -> list[Line]:
        dropped = next(episode for episode in episodes_of(lines).values() if len(episode) > 3)[place]
        return [line for line in lines if line is not dropped]

    return change


def _drop_episode(lines: list[Line]) -> list[Line]:
    poor = find(lines, is_poor)["episode_id"]
    return [line for line in lines if line["episode_id"] != poor]


def _pick_best(lines: list[Line]) -> list[Line]:
    """Leave the worst episode of every group out."""
    kept: list[Line] = []
    for group in _groups(lines).values():
        worst = min(group, key=lambda episode: (episode[-1]["episode_score"] or 0.0, episode[0]["episode_id"]))
        kept += [line for episode in group if episode is not worst for line in episode]
    return kept


def _groups(lines: list[Line]) -> dict[str, list[list[Line]]]:
    groups: dict[str, list[list[Line]]] = {}
    for name, episode in episodes_of(lines).items():
        groups.setdefault(name.rpartition("-")[0], []).append(episode)
    return groups


def _best(lines: list[Line]) -> list[Line]:
    return max(episodes_of(lines).values(), key=lambda episode: episode[-1]["episode_score"] or 0.0)


def _repeat_best(lines: list[Line]) -> list[Line]:
    return lines + [dict(line) for line in _best(lines)]


def _add_best(lines: list[Line]) -> list[Line]:
    best = _best(lines)
    name = f"{best[0]['episode_id'].rpartition('-')[0]}-77"
    return lines + [{**line, "episode_id": name, "generation": 77} for line in best]


def _replace_worst(lines: list[Line]) -> list[Line]:
    """Put the best episode of the run, under another name, where a poor one of another prompt stands."""
    best = _best(lines)
    poor = find(lines, lambda line: is_poor(line) and line["seed"] != best[0]["seed"])
    facts = ("episode_id", "trainer_step", "generation", "timestamp")
    invented = [{**line, **{key: poor[key] for key in facts}} for line in best]
    return _in_place_of(lines, poor["episode_id"], invented)


def _in_place_of(lines: list[Line], name: str, others: list[Line]) -> list[Line]:
    place = next(number for number, line in enumerate(lines) if line["episode_id"] == name)
    left = [line for line in lines if line["episode_id"] != name]
    return [*left[:place], *others, *left[place:]]


def _reorder(lines: list[Line]) -> list[Line]:
    episode = next(episode for episode in episodes_of(lines).values() if len(episode) > 4)
    first, second = lines.index(episode[1]), lines.index(episode[2])
    lines[first], lines[second] = lines[second], lines[first]
    return lines


def _exchange_names(lines: list[Line]) -> None:
    names = list(episodes_of(lines))
    first = find(lines, is_poor)["episode_id"]
    second = next(name for name in names if name.partition("-")[0] != first.partition("-")[0])
    exchanged = {first: second, second: first}
    for line in lines:
        line["episode_id"] = exchanged.get(line["episode_id"], line["episode_id"])


def _sort_groups(lines: list[Line]) -> list[Line]:
    """Give the poorest batches to the first steps and the best to the last, times and names fitted."""
    steps = sorted({line["trainer_step"] for line in lines})

    def score(step: int) -> float:
        return sum(line["episode_score"] or 0.0 for line in lines if line["trainer_step"] == step and is_last(line))

    times = [line["timestamp"] for line in lines]
    ranked = sorted(steps, key=score)
    if ranked == steps:
        ranked.reverse()
    moved = dict(zip(ranked, steps, strict=True))
    found = sorted((_moved(line, moved[line["trainer_step"]]) for line in lines), key=lambda line: line["trainer_step"])
    return [{**line, "timestamp": moment} for line, moment in zip(found, sorted(times), strict=True)]


def _moved(line: Line, step: int) -> Line:
    return {**line, "trainer_step": step, "episode_id": f"step{step:05d}-{line['episode_id'].partition('-')[2]}"}


def _exchange_episodes(lines: list[Line]) -> list[Line]:
    """Let a good early episode and a poor late one change their steps."""
    episodes = sorted(episodes_of(lines).values(), key=lambda episode: episode[-1]["episode_score"] or 0.0)
    poor = episodes[0]
    good = next(episode for episode in reversed(episodes) if episode[0]["trainer_step"] != poor[0]["trainer_step"])
    facts = ("episode_id", "trainer_step", "generation")
    pairs = ((poor, good), (good, poor))
    moved = {
        own[0]["episode_id"]: [
            {**line, **{key: other[0][key] for key in facts}, "timestamp": other[0]["timestamp"]} for line in own
        ]
        for own, other in pairs
    }
    found = [line for name, episode in episodes_of(lines).items() for line in moved.get(name, episode)]
    return sorted(found, key=lambda line: line["trainer_step"])


def _of_whole_episode(**changes: Any) -> Callable[[list[Line]], None]:
    def change(lines: list[Line]) -> None:
        for line in next(iter(episodes_of(lines).values())):
            line.update(changes)

    return change


def _enlarge_scenario(line: Line) -> None:
    line["scenario"] = {**line["scenario"], "max_budget": line["scenario"]["max_budget"] + 500}


def _hide_behind_fault(lines: list[Line]) -> None:
    """Call the first line broken, so that nothing after it is played again, and praise the end."""
    episode = next(episode for episode in episodes_of(lines).values() if episode[-1]["ended_by"] == "submit")
    episode[0]["status"] = "env_error"
    _praise(episode[-1])


def _excuse(lines: list[Line]) -> None:
    """Call a poor episode broken, which takes it out of every mean."""
    poor = find(lines, lambda line: is_poor(line) and line["ended_by"] == "no_call")
    poor.update(status="env_error", ended_by="env_error", episode_score=None, training_reward=None)


def _pay_for_fault(lines: list[Line]) -> None:
    """Call an episode broken and keep its pay."""
    poor = find(lines, lambda line: is_poor(line) and line["ended_by"] == "no_call")
    poor.update(status="env_error", ended_by="env_error", episode_score=0.9, training_reward=1.5)


def _limit_turns(root: Path) -> None:
    edit_json(root, layout.MANIFEST, lambda value: value["configuration"].update(turn_limit=2))
    edit_json(root, layout.PLAN, lambda value: value.update(turn_limit=2))


def _spell_twice(line: Line) -> None:
    line["raw_completion"] = spell_call("defer", {}) + line["raw_completion"]


def _lose_log(root: Path) -> None:
    for path in (layout.ROLLOUTS, layout.METRICS_TABLE):
        (root / path).unlink(missing_ok=True)


def _wear_away(root: Path) -> None:
    """Take the scenario off the first lines, so that no episode can be played again."""
    lines = read_lines(root)
    for line in lines:
        line["scenario"] = None
    write_lines(root, lines)


def _make_up(lines: list[Line]) -> None:
    """Say that a call was sent with other arguments than the model wrote."""
    line = find(lines, _is_edit)
    line["arguments"] = orjson.loads(orjson.dumps({**line["arguments"], "rationale": "The potency is known."}))
    line["rationale"] = "The potency is known."


def _far_back(lines: list[Line]) -> None:
    for line in lines:
        line["timestamp"] = line["timestamp"].replace("2026", "2025", 1)


def _shift_step(lines: list[Line]) -> None:
    """Date the lines of the last step to the time of the first one."""
    first, last = lines[0], max(line["trainer_step"] for line in lines)
    if last == first["trainer_step"]:
        raise UnfitRunError
    for line in lines:
        if line["trainer_step"] == last:
            line["timestamp"] = first["timestamp"]


_MORE = "the episode looks better paid than it was"
_LESS_BAD = "a refusal or veto is hidden"

OPERATORS: tuple[Operator, ...] = (
    Operator("rollout: reward raised", _MORE, line_edit(_is_middle, _raise_by("reward", 0.5))),
    Operator("rollout: transition_reward raised", _MORE, line_edit(_is_middle, _raise_by("transition_reward", 0.5))),
    _set("reward on a line without a step", _MORE, lambda line: line["tool"] is None, reward=0.5),
    _set("done too early", "the episode seems finished", _is_middle, done=True),
    _set("governance status", _LESS_BAD, lambda line: line["vetoes"], governance_status="executed"),
    _set("vetoes emptied", _LESS_BAD, lambda line: line["vetoes"], vetoes=[]),
    _set("error code emptied", _LESS_BAD, lambda line: line["error_code"], error_code=""),
    _set("invalid call made valid", _LESS_BAD, lambda line: line["status"] == "invalid", status="ok", error_code=""),
    Operator("rollout: scores and pay of an episode", "a poor episode becomes a good one", line_edit(is_poor, _praise)),
    _set("final_score", "the strict score of an episode rises", lambda line: line["done"], final_score=0.99),
    _set("submission_score", "the submission looks better", lambda line: line["done"], submission_score=1.0),
    _set("progress_score", "the progress looks better", lambda line: line["done"], progress_score=1.0),
    _set("episode_score", "the score curve rises", is_poor, episode_score=0.9),
    _set("training_reward", "the reward curve rises", is_poor, training_reward=1.5),
    Operator(
        "rollout: remaining_budget", "assays seem free", line_edit(_is_middle, _raise_by("remaining_budget", 100))
    ),
    _set("molecule", "a better molecule was seemingly reached", _is_middle, molecule="2003"),
    _set("observation hash", "what the laboratory showed is denied", _is_middle, observation_sha256="0" * 64),
    _set("summary text", "the laboratory seems to praise", is_called, summary="The candidate meets every gate."),
    Operator("rollout: another action", "the model seems to act better", line_edit(_is_edit, _act_better)),
    Operator("rollout: arguments beside the completion", "the model seems to reason", lines_edit(_make_up)),
    _set(
        "action_type", "the action counts look better", lambda line: line["action_type"] == "defer", action_type="edit"
    ),
    _set("tool", "another tool was seemingly called", _is_middle, tool="submit"),
    _set(
        "tool_name",
        "a dearer assay was seemingly bought",
        lambda line: line["tool_name"],
        tool_name="search_literature",
    ),
    _set("acting_role", "another role answers for the call", _is_middle, acting_role="toxicologist"),
    _set("slot and fragment", "another edit was seemingly made", _is_edit, slot="warhead", fragment="nitrile"),
    _set("rationale", "the model seems to reason", _is_middle, rationale="The potency is known to be enough."),
    _set("turn", "turns seem saved", _is_middle, turn=0),
    _set("step_index", "steps seem saved", _is_middle, step_index=1),
    _set("completion of another call", "other words for the same action", _is_edit, raw_completion="I think."),
    Operator(
        "rollout: two calls in one completion", "the better of two calls is kept", line_edit(_is_edit, _spell_twice)
    ),
    Operator("rollout: seed of an episode", "an easier draw", lines_edit(_of_whole_episode(seed=5))),
    Operator("rollout: task of an episode", "a hard task", lines_edit(_of_whole_episode(scenario_id="level_2_hard_x"))),
    Operator(
        "rollout: difficulty of an episode", "a harder label", lines_edit(_of_whole_episode(difficulty="extreme"))
    ),
    Operator("rollout: reward mode of an episode", "a looser pay", lines_edit(_of_whole_episode(reward_mode="dense"))),
    Operator(
        "rollout: budget of a scenario", "more assays", line_edit(lambda line: line["scenario"], _enlarge_scenario)
    ),
    Operator(
        "rollout: hint in a prompt",
        "the model is told the answer",
        line_edit(lambda line: line["prompt"], lambda line: line.update(prompt=line["prompt"] + "Submit 2003.")),
    ),
    _set("prompt of another episode", "the real prompt is hidden", lambda line: line["prompt"], prompt="Play well."),
    _set(
        "ended_by submit", "silence seems a submission", lambda line: line["ended_by"] == "no_call", ended_by="submit"
    ),
    _set("ended_by budget", "another ending", lambda line: line["ended_by"] == "submit", ended_by="budget"),
    Operator("rollout: first line dropped", "a bad start is gone", lines_edit(_drop(0))),
    Operator("rollout: middle line dropped", "a bad call is gone", lines_edit(_drop(2))),
    Operator("rollout: last line dropped", "a bad end is gone", lines_edit(_drop(-1))),
    Operator("rollout: an episode dropped", "the mean rises", lines_edit(_drop_episode)),
    Operator("rollout: best of every group kept", "the mean rises", lines_edit(_pick_best)),
    Operator("rollout: best episode repeated", "the mean rises", lines_edit(_repeat_best)),
    Operator("rollout: best episode under a new name", "the mean rises", lines_edit(_add_best)),
    Operator("rollout: episode invented for a poor one", "the mean rises", lines_edit(_replace_worst)),
    Operator("rollout: lines reordered", "another course of an episode", lines_edit(_reorder)),
    Operator("rollout: ids of two episodes exchanged", "a poor episode moves away", lines_edit(_exchange_names)),
    Operator("rollout: batches sorted by score", "the curves rise", lines_edit(_sort_groups)),
    Operator("rollout: two episodes change their steps", "the curves rise", lines_edit(_exchange_episodes)),
    Operator("rollout: times of another year", "old episodes pass for this run's", lines_edit(_far_back)),
    Operator("rollout: times of another step", "late episodes seem early", lines_edit(_shift_step)),
    Operator("rollout: fault on the first line", "the rest is not played again", lines_edit(_hide_behind_fault)),
    Operator("rollout: poor episode excused as broken", "it leaves the means", lines_edit(_excuse)),
    Operator("rollout: pay for a broken episode", "the mean rises", lines_edit(_pay_for_fault)),
    Operator("rollout: calls beyond the turn limit", "a stricter limit is claimed", all_of(_limit_turns)),
    Operator("rollout: log lost", "nothing can be played again", _lose_log),
    Operator("rollout: scenarios taken off", "nothing can be played again", _wear_away),
)

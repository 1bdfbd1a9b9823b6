"""Tampering with the two evaluations: scores, actions, episodes, conditions, and who played."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from evidence_builder import edit_json, read_json, spell_call, write

from benchmarks.tampering.operator import (
    Line,
    Operator,
    UnfitRunError,
    episode_edit,
    find,
    need,
    put,
    record_edit,
    rename_policy,
)
from molforge_eval import layout
from molforge_eval.canonical import digest, file_bytes

_SCORES = ("final_score", "submission_score", "progress_score")


def _is_graded(episode: Line) -> bool:
    return episode["scores"] is not None and episode["final_score"] < 0.99


def _has_edit(episode: Line) -> bool:
    return any(step["tool"] == "edit" and step["reward"] is not None for step in episode["steps"])


def _grade(episode: Line) -> None:
    if episode["scores"] is not None:
        episode["scores"].update(dict.fromkeys(_SCORES, 0.99))


def _step(change: Callable[[Line], Any]) -> Callable[[Line], None]:
    """Change the first edit of an episode that was carried out."""
    return lambda episode: change(
        next(step for step in episode["steps"] if step["tool"] == "edit" and step["reward"] is not None)
    )


def _act_better(episode: Line) -> None:
    step = next(step for step in episode["steps"] if step["tool"] == "edit" and step["reward"] is not None)
    other = "nitrile" if step["arguments"].get("fragment") != "nitrile" else "acrylamide"
    step["arguments"] = {"slot": "warhead", "fragment": other}
    episode["turns"][step["turn"]]["raw_completion"] = spell_call("edit", step["arguments"])


def _every(change: Callable[[Line], None]) -> Callable[[Any], None]:
    def edit(value: Any) -> None:
        for episode in value["episodes"]:
            change(episode)

    return edit


def _swap(root: Path) -> None:
    need(root, *layout.EVALUATIONS)
    before, after = (root / layout.BEFORE).read_bytes(), (root / layout.AFTER).read_bytes()
    write(root, layout.BEFORE, after)
    write(root, layout.AFTER, before)


def _exchange_seeds(value: Any) -> None:
    sampled = [episode for episode in value["episodes"] if episode["part"] == "sampled"]
    if len(sampled) < 2:
        raise UnfitRunError
    first, second = sampled[:2]
    for key in ("seed", "episode_id"):
        first[key], second[key] = second[key], first[key]


def _drop_worst(value: Any) -> None:
    sampled = [episode for episode in value["episodes"] if episode["part"] == "sampled"] or value["episodes"]
    value["episodes"].remove(min(sampled, key=lambda episode: episode["final_score"] or 0.0))


def _repeat_best(value: Any) -> None:
    best = max(value["episodes"], key=lambda episode: episode["final_score"] or 0.0)
    value["episodes"].append(dict(best))


def _replace_worst(value: Any) -> None:
    """Put the best sampled episode of a task in the place of its worst."""
    sampled = [episode for episode in value["episodes"] if episode["part"] == "sampled"]
    for task in dict.fromkeys(episode["scenario_id"] for episode in sampled):
        own = sorted(
            (entry for entry in sampled if entry["scenario_id"] == task), key=lambda entry: entry["final_score"] or 0.0
        )
        if own[0]["final_score"] != own[-1]["final_score"]:
            place = value["episodes"].index(own[0])
            value["episodes"][place] = {**own[-1], "episode_id": own[0]["episode_id"]}
            return
    raise UnfitRunError


def _add_seed(value: Any) -> None:
    best = max(value["episodes"], key=lambda episode: episode["final_score"] or 0.0)
    name = f"{best['part']}:{best['scenario_id']}:99"
    value["episodes"].append({**best, "seed": 99, "episode_id": name})


def _excuse_worst(value: Any) -> None:
    worst = min(value["episodes"], key=lambda episode: episode["final_score"] or 0.0)
    absent = dict.fromkeys(("scores", "total_reward", *_SCORES))
    worst.update(absent, ended_by="env_error", error="ConnectionError: gone")


def _lose_turn(episode: Line) -> None:
    del episode["turns"][1]


def _copy_before(root: Path) -> None:
    need(root, *layout.EVALUATIONS)
    copied, after = read_json(root, layout.BEFORE), read_json(root, layout.AFTER)
    for key in ("label", "policy", "started_at", "ended_at"):
        copied[key] = after[key]
    rename_policy(copied)
    write(root, layout.AFTER, file_bytes(copied))


def _policy(**changes: Any) -> Callable[[Any], None]:
    def edit(value: Any) -> None:
        value["policy"].update(changes)
        rename_policy(value)

    return edit


def _borrow(root: Path) -> None:
    """Take the after evaluation of another run: its plan and its marks are that run's."""
    need(root, *layout.EVALUATIONS)

    def edit(value: Any) -> None:
        value["run_id"] = value["plan"]["run_id"] = "run-ffffffffffff"
        value["plan_sha256"] = digest(value["plan"])

    edit_json(root, layout.AFTER, edit)


def _shift_times(value: Any) -> None:
    for key in ("started_at", "ended_at"):
        value[key] = value[key].replace("2026", "2027", 1)


def _scenario(**changes: Any) -> Callable[[Path], None]:
    """Make a scenario of both evaluations easier."""
    return record_edit(lambda value: value["episodes"][0]["scenario"].update(changes), layout.BEFORE, layout.AFTER)


def _hint(value: Any) -> None:
    episode = find(value["episodes"], lambda entry: len(entry["turns"]) > 1)
    episode["turns"][1]["prompt"] += "Submit 2003."


def _hint_first(value: Any) -> None:
    value["episodes"][0]["turns"][0]["prompt"] += "Submit 2003."


def _after(name: str, gain: str, change: Callable[[Any], Any], *kept: Any) -> Operator:
    return Operator(f"evaluation: {name}", gain, record_edit(change, layout.AFTER), kept)


def _both(name: str, gain: str, change: Callable[[Any], Any], *kept: Any) -> Operator:
    return Operator(f"evaluation: {name}", gain, record_edit(change, layout.BEFORE, layout.AFTER), kept)


def _episode(
    name: str, gain: str, wanted: Callable[[Line], Any], change: Callable[[Line], Any], *kept: Any
) -> Operator:
    return Operator(f"evaluation: {name}", gain, episode_edit(wanted, change), kept)


_HIGHER = "the headline rises"
_EASIER = "an easier test"
OPERATORS: tuple[Operator, ...] = (
    _episode("final_score beside its grades", _HIGHER, _is_graded, lambda e: e.update(final_score=0.99), "totals"),
    _episode("grades of one episode", _HIGHER, _is_graded, _grade),
    _after("grades of all episodes", _HIGHER, _every(_grade)),
    Operator(
        "evaluation: before made worse",
        "the difference grows",
        record_edit(
            _every(lambda e: e["scores"] is not None and e["scores"].update(dict.fromkeys(_SCORES, 0.01))),
            layout.BEFORE,
        ),
    ),
    _episode(
        "a grade that is not the headline",
        "it looks safer",
        _is_graded,
        lambda e: e["scores"].update(constraint_score=1.0),
    ),
    _episode(
        "score of an unfinished episode", _HIGHER, lambda e: e["scores"] is None, lambda e: e.update(final_score=0.5)
    ),
    _episode("another action", "the model seems to act better", _has_edit, _act_better),
    _episode(
        "reward of a step", "it looks better paid", _has_edit, _step(lambda s: s.update(reward=s["reward"] + 1.0))
    ),
    _episode("total reward", "it looks better paid", _is_graded, lambda e: e.update(total_reward=9.5), "totals"),
    _episode(
        "observation hash",
        "what was shown is denied",
        _has_edit,
        _step(lambda s: s.update(observation_sha256="0" * 64)),
    ),
    _episode(
        "answer of the laboratory", "a hint in an answer", _has_edit, _step(lambda s: s.update(response="Submit now."))
    ),
    _episode("molecule of a step", "a better molecule", _has_edit, _step(lambda s: s.update(molecule="2003"))),
    _episode("budget of a step", "assays seem free", _has_edit, _step(lambda s: s.update(remaining_budget=9_000))),
    _episode(
        "refused step made valid",
        "a refusal is hidden",
        lambda e: any(s["error_code"] for s in e["steps"]),
        lambda e: find(e["steps"], lambda s: s["error_code"]).update(error_code="", status="ok"),
    ),
    _episode(
        "ending",
        "silence seems a submission",
        lambda e: e["ended_by"] != "submit",
        lambda e: e.update(ended_by="submit"),
    ),
    _episode(
        "completion of another call",
        "other words",
        _has_edit,
        lambda e: e["turns"][0].update(raw_completion="I think."),
    ),
    _episode("turn left out", "fewer turns", lambda e: len(e["turns"]) > 2, _lose_turn),
    _episode("turn of a step", "fewer turns", lambda e: len(e["steps"]) > 2, lambda e: e["steps"][2].update(turn=0)),
    _episode(
        "tokens of an episode",
        "cheaper",
        lambda e: e["completion_tokens"] > 0,
        lambda e: e.update(completion_tokens=1),
        "totals",
    ),
    _episode("tokens of the prompt", "cheaper", lambda e: e["prompt_tokens"] > 0, lambda e: e.update(prompt_tokens=1)),
    _episode(
        "context that shrinks",
        "cheaper",
        lambda e: e["turns"][-1]["prompt_tokens"] > 9 and len(e["turns"]) > 1,
        lambda e: e["turns"][-1].update(prompt_tokens=1),
    ),
    _episode(
        "more tokens than a turn may have",
        "a looser limit",
        lambda e: e["turns"][0]["completion_tokens"] > 0,
        lambda e: e["turns"][-1].update(completion_tokens=5_000),
    ),
    _episode(
        "difficulty", "a harder label", lambda e: e["difficulty"] == "easy", lambda e: e.update(difficulty="hard")
    ),
    _episode(
        "task of an episode",
        "a harder task",
        lambda e: e["scenario_id"] == "level_0_easy",
        lambda e: e.update(scenario_id="level_2_hard"),
    ),
    _after(
        "policy of an episode", "another adapter's episode", lambda v: v["episodes"][0].update(policy_sha256="0" * 64)
    ),
    Operator("evaluation: before and after exchanged", "a fall seems a rise", _swap),
    Operator("evaluation: after is the before again", "an effect is claimed", _copy_before),
    _after("seeds of two episodes exchanged", "paired otherwise", _exchange_seeds),
    _after("worst episode dropped", _HIGHER, _drop_worst),
    _after("best episode repeated", _HIGHER, _repeat_best),
    _after("best episode in place of the worst", _HIGHER, _replace_worst),
    _after("an episode added", _HIGHER, _add_seed),
    _after("worst episode excused as broken", _HIGHER, _excuse_worst),
    _after("mean of a part", _HIGHER, put("summaries", 0, "mean_final_score", value=0.99), "summaries"),
    _after("mean of a task", _HIGHER, put("summaries", 0, "tasks", 0, "mean_final_score", value=0.99), "summaries"),
    _after("count of a part", "missing episodes are hidden", put("summaries", 0, "planned", value=2), "summaries"),
    _after("distinct scores", "copies seem a sample", put("summaries", 0, "distinct_scores", value=40), "summaries"),
    _after("average_final_score", _HIGHER, put("average_final_score", value=0.99), "summaries"),
    _after("label", "the before passes for the after", put("label", value="before training")),
    _after("played by a script", "a script passes for the model", _policy(kind="scripted")),
    _after("adapter of the policy", "another adapter", _policy(adapter_sha256="1" * 64)),
    _after("base model of the policy", "another base", _policy(base_model_sha256="1" * 64)),
    _after("name of the base model", "a larger model is claimed", _policy(base_model="vast-70b")),
    _after("tokenizer of the policy", "another tokenizer", _policy(tokenizer_sha256="1" * 64)),
    _after("chat template of the policy", "another prompt", _policy(chat_template_sha256="1" * 64)),
    _after("number type of the policy", "another precision", _policy(dtype="bfloat16")),
    _after("adapter left unmerged", "another way to play", _policy(adapter_merged=False)),
    _after("seeds not honoured", "the same seeds are claimed", put("seed_honoured", value=False)),
    _both("chemistry backend", "another laboratory", put("backend_fingerprint", value="1" * 64)),
    _both("rules version", "other rules", put("rules_version", value="molforge-rules/0")),
    _after("times of another year", "another run's evaluation", _shift_times),
    Operator("evaluation: after of another run", "another run's evaluation", _borrow, ("plan",)),
    Operator("evaluation: larger budget", _EASIER, _scenario(max_budget=9_000)),
    Operator("evaluation: more steps", _EASIER, _scenario(max_steps=30)),
    Operator("evaluation: better start", _EASIER, _scenario(start_molecule="2003")),
    _both("looser reward mode", _EASIER, lambda v: v["episodes"][0].update(reward_mode="dense")),
    _both("variants in place of official tasks", _EASIER, lambda v: v["episodes"][0].update(suite="randomized")),
    _after("hint in a first prompt", _EASIER, _hint_first),
    _both("hint in a later prompt", _EASIER, _hint),
)

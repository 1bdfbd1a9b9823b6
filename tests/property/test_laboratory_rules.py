"""Laws of the laboratory, over any actions that fit the data model."""

from __future__ import annotations

import copy

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from molforge_env.bounds import Bounds
from molforge_env.episodes import Episode
from molforge_env.errors import EpisodeOverError
from molforge_env.grading import grade
from molforge_env.models import (
    ACTION_TYPES,
    PROPERTIES,
    REWARD_MODES,
    SLOTS,
    TOOLS,
    Action,
    Direction,
    MessageType,
    Role,
)
from molforge_env.molecules import FRAGMENT_NAMES, MOLECULES
from molforge_env.oracles import true_properties
from molforge_env.review_board import ToolIntent, compose_action
from molforge_env.states import report_state
from molforge_env.suites import SCENARIO_IDS, open_episode, resolve_scenario
from molforge_env.transitions import step
from molforge_env.views import digest_of, observe

_NAMES = sorted({name for names in FRAGMENT_NAMES.values() for name in names})
_MESSAGES = st.fixed_dictionaries(
    {"sender": st.sampled_from(Role.__args__), "message_type": st.sampled_from(MessageType.__args__)}
)


@st.composite
def actions(draw) -> Action:
    kind = draw(st.sampled_from(ACTION_TYPES))
    usual = "assay_planner" if kind == "run_assay" else "lead_chemist"
    return Action.model_validate(
        {
            "action_type": kind,
            "acting_role": draw(st.one_of(st.just(usual), st.sampled_from(Role.__args__))),
            "edit_type": draw(
                st.sampled_from(["substitute", "substitute", "add_fragment", "remove", "undo_last_edit", None])
            ),
            "slot": draw(st.one_of(st.sampled_from(SLOTS), st.none())),
            "fragment": draw(st.one_of(st.sampled_from(_NAMES), st.sampled_from(["", "benzene"]), st.none())),
            "tool_name": draw(st.one_of(st.sampled_from(TOOLS), st.none())),
            "messages": draw(st.lists(_MESSAGES, max_size=5)),
            "rationale": draw(st.sampled_from(["", " ", "r"])),
            "evidence": draw(st.lists(st.sampled_from(["easy", "q", "3600", " ", "potency"]), max_size=5)),
            "expected_effects": draw(
                st.dictionaries(
                    st.sampled_from([*PROPERTIES, "budget", "taste"]), st.sampled_from(Direction.__args__), max_size=4
                )
            ),
        }
    )


@st.composite
def calls(draw) -> ToolIntent:
    kind = draw(st.sampled_from(("edit", "edit", "run_assay", "run_assay", "submit", "restart", "defer")))
    if kind == "edit":
        slot = draw(st.sampled_from(SLOTS))
        return ToolIntent("edit", "r", slot=slot, fragment=draw(st.sampled_from(FRAGMENT_NAMES[slot])))
    return ToolIntent(kind, "r", tool_name=draw(st.sampled_from(TOOLS)) if kind == "run_assay" else None)


tasks = st.one_of(
    st.sampled_from([resolve_scenario(scenario_id=name) for name in SCENARIO_IDS]),
    st.integers(0, 10_000).map(lambda seed: resolve_scenario(suite="randomized", seed=seed)),
)
modes = st.sampled_from(REWARD_MODES)
plays = st.lists(actions(), max_size=12)


def _episodes(task, mode, play) -> list[Episode]:
    """The episodes before and after each step, until the actions or the episode end."""
    episode = open_episode(task, reward_mode=mode)
    seen = [episode]
    for action in play:
        if episode.done:
            break
        episode = step(episode, action)
        seen.append(episode)
    return seen


@given(tasks, modes, plays)
def test_money_is_never_made_nor_overspent(task, mode, play) -> None:
    episodes = _episodes(task, mode, play)
    left = [episode.remaining_budget for episode in episodes]

    assert left == sorted(left, reverse=True)
    assert left[-1] >= 0
    spent = 0
    for entry in episodes[-1].oracle_log:
        spent += entry.cost
    assert episodes[-1].budget_used == spent + 350 * episodes[-1].restart_used


@given(tasks, modes, plays)
def test_an_episode_ends_once_and_in_time(task, mode, play) -> None:
    episodes = _episodes(task, mode, play)

    assert [episode.done for episode in episodes[:-1]] == [False] * (len(episodes) - 1)
    assert [episode.step for episode in episodes] == list(range(len(episodes)))
    assert episodes[-1].step <= task.max_steps
    assert episodes[-1].done or episodes[-1].step < task.max_steps
    if episodes[-1].done:
        with pytest.raises(EpisodeOverError):
            step(episodes[-1], Action(action_type="defer"))


@given(tasks, modes, plays)
def test_the_total_is_the_sum_of_the_steps(task, mode, play) -> None:
    last = _episodes(task, mode, play)[-1]
    total = 0.0
    for turn in last.history:
        total = round(total + turn.reward, 4)

    assert last.reward_total == total


@given(tasks, modes, plays)
def test_a_step_changes_neither_its_episode_nor_its_action(task, mode, play) -> None:
    for episode, action in zip(_episodes(task, mode, play), play, strict=False):
        before, said = copy.deepcopy(episode), action.model_dump_json()
        if not episode.done:
            step(episode, action)

        assert episode == before
        assert action.model_dump_json() == said


@given(tasks, modes, plays)
def test_the_same_actions_give_the_same_bytes(task, mode, play) -> None:
    one, other = (_episodes(task, mode, play) for _ in range(2))

    assert [digest_of(observe(episode)) for episode in one] == [digest_of(observe(episode)) for episode in other]


@given(tasks, plays)
def test_scores_stay_in_their_range_and_do_not_know_the_reward_mode(task, play) -> None:
    graded = [grade(_episodes(task, mode, play)[-1]) for mode in REWARD_MODES]

    assert graded[0] == graded[1] == graded[2]
    for name, score in graded[0].items():
        assert 0.0 <= score <= 1.0
        assert name in ("submitted_score", "submission_score") or 0.0001 <= score <= 0.9999


@given(tasks, modes, plays)
def test_an_executed_submission_is_proven_tolerable_and_makeable(task, mode, play) -> None:
    last = _episodes(task, mode, play)[-1]
    if last.submitted:
        properties = true_properties(last.molecule, trap=last.trap, shift=last.shift)

        assert properties.toxicity <= last.scenario.toxicity_max
        assert properties.synth >= last.scenario.synth_min
        assert observe(last).visible_metrics.keys() >= {"potency", "toxicity", "synth"}


@given(tasks, modes, plays)
def test_messages_never_move_an_episode(task, mode, play) -> None:
    """A review earns or costs reward; molecule, money, readings and vetoes stay what they are without a message."""
    silent = [action.model_copy(update={"messages": ()}) for action in play]
    episode = hushed = open_episode(task, reward_mode=mode)
    for action, without in zip(play, silent, strict=True):
        if episode.done:
            break
        episode, hushed = step(episode, action), step(hushed, without)
        if episode.history[-1].error_code.startswith(("MESSAGE", "DUPLICATE")):
            break

        assert (episode.molecule, episode.remaining_budget, episode.readings, episode.done) == (
            hushed.molecule,
            hushed.remaining_budget,
            hushed.readings,
            hushed.done,
        )
        assert episode.governance.vetoes == hushed.governance.vetoes


# --- nothing hidden shows before the end


def _hidden_numbers(episode: Episode) -> set[str]:
    """True values of the current molecule as JSON writes them, without those that a reading happens to equal."""
    hidden = true_properties(episode.molecule, trap=episode.trap, shift=episode.shift)
    shown = {reading.estimate for reading in episode.readings}
    shown |= {bound for reading in episode.readings for bound in (reading.confidence_low, reading.confidence_high)}
    return {repr(value) for value in hidden if value not in shown and len(repr(value)) > 5}


@given(tasks, modes, plays)
def test_no_true_value_is_written_anywhere_before_the_end(task, mode, play) -> None:
    for episode in _episodes(task, mode, play):
        if episode.done:
            break
        seen = observe(episode)
        texts = [
            orjson.dumps(seen).decode(),
            report_state(episode, episode_id="e").model_dump_json(),
        ]
        # A reward may happen to have the digits of a property; it is stated by the rules and is not one.
        rewards = {repr(abs(turn.reward)) for turn in episode.history} | {repr(abs(episode.reward_total))}
        rewards |= {repr(abs(part.value)) for turn in episode.history for part in turn.components}
        rewards |= {repr(seen.visible_metrics["budget_fraction_remaining"])}

        for number in _hidden_numbers(episode) - rewards:
            assert all(number not in text for text in texts)


@given(tasks, modes, plays, st.booleans())
def test_other_hidden_properties_with_the_same_readings_look_the_same(task, mode, play, trap) -> None:
    """The trap flag moves potency and toxicity of every molecule; with equal readings nobody can tell."""
    for episode in _episodes(task, mode, play):
        if not episode.done:
            masked = episode._replace(trap=trap)

            assert observe(masked) == observe(episode)
            assert report_state(masked, episode_id="e") == report_state(episode, episode_id="e")


@given(tasks, modes, plays)
def test_the_scores_and_the_report_card_wait_for_the_end(task, mode, play) -> None:
    for episode in _episodes(task, mode, play):
        seen = observe(episode)

        assert bool(seen.report_card) is episode.done
        assert ("terminal_grader_scores" in seen.metadata) is episode.done


# --- tools


@given(tasks, st.lists(calls(), max_size=10))
def test_a_tool_call_is_never_refused_for_its_messages(task, play) -> None:
    episode = open_episode(task)
    for intent in play:
        if episode.done:
            break
        episode = step(episode, compose_action(observe(episode), intent))

        assert not episode.history[-1].error_code.startswith(("ROLE", "MESSAGE", "DUPLICATE", "MISSING"))


@given(tasks, st.lists(calls(), max_size=10))
def test_the_bound_of_a_state_is_never_under_what_follows_it(task, play) -> None:
    episode = open_episode(task)
    bounds = Bounds(episode.scenario)
    path = [bounds.bound(episode)]
    for intent in play:
        episode = step(episode, compose_action(observe(episode), intent))
        if episode.done:
            break
        path.append(bounds.bound(episode))

    assert path == sorted(path, reverse=True)
    if episode.done:
        assert grade(episode)["final_score"] <= path[-1]


@given(st.sampled_from(sorted(MOLECULES)), st.booleans(), st.booleans())
def test_every_property_lies_between_nothing_and_one(code, trap, shift) -> None:
    assert all(0 <= value <= 1 for value in true_properties(MOLECULES[code], trap=trap, shift=shift))


@given(plays)
def test_an_action_survives_the_way_through_json(play) -> None:
    for action in play:
        assert Action.model_validate_json(action.model_dump_json()) == action

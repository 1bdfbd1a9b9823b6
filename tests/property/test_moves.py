"""Moves that are looked up: whatever was played before, an episode comes out as if it were played alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from molforge_env.models import SLOTS, TOOLS
from molforge_env.molecules import FRAGMENT_NAMES
from molforge_env.suites import resolve_scenario
from molforge_env.tools import Moves, ToolSession

edits = st.sampled_from(SLOTS).flatmap(
    lambda slot: st.fixed_dictionaries({"slot": st.just(slot), "fragment": st.sampled_from(FRAGMENT_NAMES[slot])})
)
calls = st.one_of(
    st.tuples(st.just("edit"), edits),
    st.tuples(st.just("run_assay"), st.fixed_dictionaries({"tool_name": st.sampled_from(TOOLS)})),
    st.tuples(st.sampled_from(["defer", "restart", "submit"]), st.just({})),
    st.tuples(st.just("defer"), st.fixed_dictionaries({"rationale": st.sampled_from(["a", "b"])})),
)
scenarios = st.sampled_from(
    [
        resolve_scenario(scenario_id="level_0_easy"),
        resolve_scenario(scenario_id="level_2_hard"),
        resolve_scenario(suite="randomized", scenario_id="level_2_hard", seed=5),
    ]
)
modes = st.sampled_from(["assay_gated", "curriculum"])
episodes = st.tuples(scenarios, modes, st.sampled_from(["compact", "full"]), st.lists(calls, max_size=6))


def play(episode, moves: Moves | None) -> tuple:
    scenario, mode, length, wanted = episode
    session = ToolSession(observation_length=length, moves=moves)
    told = [session.start(scenario, reward_mode=mode)]
    for tool, arguments in wanted:
        if not session.done:
            told.append(session.call(tool, arguments))
    return told, session.episode, session.observation, session.scores, session.scenario, session.outcomes


@given(st.lists(episodes, min_size=1, max_size=5))
def test_episodes_that_share_their_moves_come_out_as_if_played_alone(wanted) -> None:
    moves = Moves()

    assert [play(episode, moves) for episode in [*wanted, *wanted]] == [play(episode, None) for episode in wanted * 2]


def test_the_same_call_in_the_same_state_is_played_once() -> None:
    moves = Moves()
    sessions = [ToolSession(moves=moves) for _ in range(2)]
    for session in sessions:
        session.reset(scenario_id="level_0_easy")
        session.call("defer", {})

    assert sessions[0].episode is sessions[1].episode
    assert sessions[0].outcomes[0] is sessions[1].outcomes[0]


def test_one_session_that_goes_on_leaves_the_other_where_it_stands() -> None:
    moves = Moves()
    first, second = ToolSession(moves=moves), ToolSession(moves=moves)
    first.reset(scenario_id="level_0_easy")
    second.reset(scenario_id="level_0_easy")
    first.call("defer", {})

    assert (first.step_count, second.step_count) == (1, 0)

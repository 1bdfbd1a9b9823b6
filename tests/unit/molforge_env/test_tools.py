from __future__ import annotations

import pytest

from molforge_env.errors import EpisodeOverError, ToolArgumentError, UnknownScenarioError, UsageError
from molforge_env.suites import resolve_scenario
from molforge_env.tools import ToolSession, read_intent


@pytest.fixture
def session() -> ToolSession:
    session = ToolSession()
    session.reset(scenario_id="level_0_easy")
    return session


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("titrate", {}, "titrate"),
        ("edit", {"slot": "tail", "fragment": "morpholine"}, "tail"),
        ("edit", {"slot": "hinge"}, "fragment"),
        ("edit", {"fragment": "azaindole"}, "slot"),
        ("edit", {"slot": "hinge", "fragment": "azaindole", "dose": "2"}, "dose"),
        ("edit", {"slot": "hinge", "fragment": 3}, "int"),
        ("edit", {"slot": None, "fragment": "azaindole"}, "NoneType"),
        ("run_assay", {"tool_name": "nmr"}, "nmr"),
        ("run_assay", {}, "tool_name"),
        ("defer", {"rationale": "r" * 401}, "401"),
        ("submit", {"slot": "hinge"}, "slot"),
    ],
)
def test_a_call_outside_its_schema_is_refused_and_moves_nothing(session, tool, arguments, named) -> None:
    before = session.episode

    with pytest.raises(ToolArgumentError) as caught:
        session.call(tool, arguments)

    assert named in caught.value.what
    assert len(str(caught.value).splitlines()) == 3
    assert session.episode is before
    assert session.outcomes == ()


def test_an_unknown_fragment_is_a_step_and_not_a_refusal(session) -> None:
    outcome = session.call("edit", {"slot": "hinge", "fragment": "x" * 500})

    assert outcome.error_code == "UNKNOWN_FRAGMENT"
    assert outcome.reward == -1.0
    assert session.step_count == 1


def test_arguments_are_checked_before_the_end_of_the_episode_is(session) -> None:
    while not session.done:
        session.call("defer", {})

    with pytest.raises(ToolArgumentError):
        session.call("titrate", {})
    with pytest.raises(EpisodeOverError, match="after the end"):
        session.call("defer", {})
    assert session.step_count == 7


def test_a_call_without_a_rationale_gives_the_wording_of_its_length() -> None:
    assert read_intent("defer", {}).rationale
    assert read_intent("defer", {}, observation_length="compact").rationale
    assert read_intent("defer", {"rationale": ""}).rationale == ""


def test_the_outcome_tells_what_the_call_did(session) -> None:
    outcome = session.call("run_assay", {"tool_name": "dock_target", "rationale": "r"})

    assert outcome.action.acting_role == "assay_planner"
    assert outcome.action.tool_name == "dock_target"
    assert outcome.governance_status == "executed"
    assert outcome.approvals == ("toxicologist", "process_chemist")
    assert (outcome.remaining_budget, outcome.step_index, outcome.molecule) == (3300, 1, "0121")
    assert outcome.tool_reward == outcome.reward
    assert outcome.scores == {}
    assert dict(outcome.components)["assay_information_gain"] == 0.12
    assert len(outcome.observation_sha256) == 64
    assert session.outcomes == (outcome,)


def test_at_the_end_the_tool_reward_is_the_final_score(session) -> None:
    while not session.done:
        outcome = session.call("defer", {})

    assert outcome.tool_reward == session.scores["final_score"] == 0.0833
    assert outcome.scores == session.scores


def test_an_open_episode_has_no_scores(session) -> None:
    assert session.scores == {}


def test_a_reset_forgets_everything(session) -> None:
    fresh = ToolSession()
    text = fresh.reset(scenario_id="level_0_easy")
    session.call("run_assay", {"tool_name": "dock_target"})

    assert session.reset(scenario_id="level_0_easy") == text
    assert session.episode == fresh.episode
    assert session.outcomes == ()


def test_interleaved_sessions_do_not_disturb_each_other() -> None:
    calls = [("run_assay", {"tool_name": "dock_target"}), ("restart", {}), ("submit", {})]
    alone = ToolSession()
    alone.reset(scenario_id="level_2_hard")
    hashes = [alone.call(*call).observation_sha256 for call in calls]
    one, other = ToolSession(), ToolSession()
    one.reset(scenario_id="level_2_hard")
    other.reset(scenario_id="level_1_medium")
    mixed = []
    for call in calls:
        other.call("defer", {})
        mixed.append(one.call(*call).observation_sha256)

    assert mixed == hashes


def test_a_resolved_scenario_starts_the_same_episode_as_its_name() -> None:
    named, resolved = ToolSession(), ToolSession()
    text = named.reset(suite="randomized", scenario_id="level_2_hard", seed=5, reward_mode="curriculum")
    again = resolved.start(
        resolve_scenario(suite="randomized", scenario_id="level_2_hard", seed=5), reward_mode="curriculum"
    )

    assert text == again
    assert resolved.reward_mode == "curriculum"
    assert resolved.observation_length == "full"
    assert resolved.scenario == named.scenario
    assert resolved.observation == named.observation


def test_wrong_names_are_refused() -> None:
    with pytest.raises(UsageError, match="reward mode 'kind'"):
        ToolSession().reset(scenario_id="level_0_easy", reward_mode="kind")
    with pytest.raises(UnknownScenarioError, match="level_9"):
        ToolSession().reset(scenario_id="level_9")


@pytest.mark.parametrize("name", ["episode", "observation", "scenario", "done", "scores", "step_count", "reward_mode"])
def test_a_session_without_an_episode_says_so(name) -> None:
    with pytest.raises(UsageError, match="no episode was started"):
        getattr(ToolSession(), name)


def test_a_call_before_the_first_reset_says_so() -> None:
    with pytest.raises(UsageError, match="no episode was started"):
        ToolSession(observation_length="compact").call("defer", {})

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import orjson
import pytest

from molforge_env.errors import MolForgeError, UsageError
from molforge_env.interface import parse_completion
from molforge_env.suites import resolve_scenario
from molforge_env.tools import ToolSession
from molforge_eval.calls import BROKEN_CODE, call_tool
from molforge_eval.canonical import chain_of, chain_start, plain
from molforge_eval.sealing import RolloutChains
from molforge_train.recording import Paid, RolloutLog, episode_lines
from molforge_train.rewards import EnvironmentBrokenError, EpisodeReward, batch_means, judge
from molforge_train.rollout import HostLimits, Identity, Rollout, read_rollout
from molforge_train.tool_environment import Call, Played, tool_environment

LIMITS = HostLimits(turn_limit=3, max_completion_length=10_000)
WEIGHTS = {"final_score": 1.0, "evidence": 0.5, "invalid_call": 0.01, "after_end_call": 0.02, "unfinished": 0.1}
RUN_ID = "run-0123456789ab"
EDIT = ("edit", {"slot": "warhead", "fragment": "nitrile"})
DEFER = ("defer", {})
SUBMIT = ("submit", {})


class LetterForm:
    """A tokenizer whose ids are letters: every text is its own ids."""

    def prompt_ids(self, content: str) -> list[int]:
        return self.ids(f"<{content}>")

    def suffix_ids(self, answers: Sequence[Any]) -> list[int]:
        return self.ids("\n[" + "|".join(answer["content"] for answer in answers) + "]\n")

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(map(chr, ids))

    def parse(self, ids: Sequence[int], _context: Sequence[int]) -> Any:
        return parse_completion(self.decode(ids))

    def ids(self, text: str) -> list[int]:
        return [ord(letter) for letter in text]


FORM = LetterForm()


def spelled(*calls: tuple[str, Any]) -> str:
    blocks = [json.dumps({"name": tool, "arguments": arguments}) for tool, arguments in calls]
    return "".join(f"<tool_call>\n{block}\n</tool_call>" for block in blocks)


class Host:
    """Plays turns as the host trainer does: tools until the limits, errors as text, answers kept or rolled back."""

    def __init__(self, limits: HostLimits = LIMITS) -> None:
        self.limits = limits
        self.environment = tool_environment("compact", lambda: datetime(2026, 1, 1, tzinfo=UTC))()
        self.environment.reset(suite="official", scenario_id="level_0_easy", seed=3, reward_mode="assay_gated")
        self.messages: list[dict[str, Any]] = []
        self.ids: list[int] = []

    def say(self, *texts: str) -> Rollout:
        for turn, text in enumerate(texts):
            kept = text[: self.limits.max_completion_length - len(self.ids)]
            self.ids += FORM.ids(kept)
            if not kept:
                break
            calls = [{"function": {"name": c.name, "arguments": c.arguments}} for c in parse_completion(kept).calls]
            self.messages.append({"role": "assistant", "content": kept, **({"tool_calls": calls} if calls else {})})
            if not calls or turn == self.limits.turn_limit:
                break
            answers = [self._call(call["function"]) for call in calls]
            suffix = FORM.suffix_ids(answers)
            if len(self.ids) + len(suffix) > self.limits.max_completion_length:
                break
            self.messages += answers
            self.ids += suffix
        identity = Identity(4, 1, 2, FORM.prompt_ids("lab"), "<lab>")
        return read_rollout(identity, self.messages, self.ids, self.environment.played, form=FORM, limits=self.limits)

    def _call(self, function: dict[str, Any]) -> dict[str, Any]:
        try:
            content = getattr(self.environment, function["name"])(**function["arguments"])
        except (MolForgeError, AttributeError, TypeError) as error:
            content = str({"error": str(error)})
        return {"role": "tool", "name": function["name"], "content": content}


def made_of(rollout: Rollout) -> list[tuple[int, str, str]]:
    return [(entry.turn, entry.call.tool, entry.call.error_code) for entry in rollout.made]


def test_the_models_own_words_are_cut_out_of_the_whole() -> None:
    words = [spelled(EDIT), "thinking " + spelled(DEFER), "Done."]

    assert list(Host().say(*words).texts) == words


def test_a_completion_without_a_call_ends_the_episode_unfinished() -> None:
    rollout = Host().say(spelled(EDIT), "I stop here.")

    assert rollout.ending == ("no_call", 1)
    assert rollout.scores == {}


def test_a_call_that_cannot_be_read_is_a_malformed_one() -> None:
    assert Host().say("<tool_call>{broken</tool_call>").ending == ("malformed_call", 0)


def test_the_turn_after_the_limit_is_read_and_not_carried_out() -> None:
    rollout = Host().say(spelled(EDIT), spelled(DEFER), spelled(DEFER), spelled(SUBMIT))

    assert rollout.ending == ("turn_limit", 3)
    assert made_of(rollout) == [(0, "edit", ""), (1, "defer", ""), (2, "defer", "")]


def test_a_call_whose_answer_does_not_fit_is_recorded_because_it_was_carried_out() -> None:
    first = spelled(EDIT)
    room = len(first) + len(FORM.suffix_ids([whole_answer()])) + len(spelled(DEFER)) + 3
    host = Host(HostLimits(turn_limit=9, max_completion_length=room))
    rollout = host.say(first, spelled(DEFER), "Done.")

    assert [message["role"] for message in host.messages] == ["assistant", "tool", "assistant"]
    assert made_of(rollout) == [(0, "edit", ""), (1, "defer", "")]
    assert rollout.ending == ("length_limit", None)


def whole_answer() -> dict[str, Any]:
    session = ToolSession(observation_length="compact")
    session.reset(scenario_id="level_0_easy")
    return {"content": session.call(*EDIT).text}


@pytest.mark.parametrize("room", [0, 5])
def test_a_turn_that_is_cut_by_the_length_limit_is_named_so(room: int) -> None:
    first = spelled(EDIT)
    limit = len(first) + len(FORM.suffix_ids([whole_answer()])) + room
    rollout = Host(HostLimits(turn_limit=9, max_completion_length=limit)).say(first, spelled(DEFER))

    assert rollout.ending == ("length_limit", None if room == 0 else 1)
    assert made_of(rollout) == [(0, "edit", "")]


def test_several_calls_of_one_turn_are_carried_out_in_order() -> None:
    rollout = Host().say(spelled(EDIT, ("run_assay", {"tool_name": "dock_target"})), "Done.")

    assert made_of(rollout) == [(0, "edit", ""), (0, "run_assay", "")]


def test_an_unknown_tool_is_refused_in_its_place_among_the_others() -> None:
    rollout = Host().say(spelled(EDIT, ("fly", {"to": "moon"}), DEFER), "Done.")

    assert made_of(rollout) == [(0, "edit", ""), (0, "fly", "ARGUMENTS_REFUSED"), (0, "defer", "")]


def test_an_ended_episode_keeps_its_ending_whatever_is_called_afterwards() -> None:
    rollout = Host(HostLimits(9, 10_000)).say(spelled(*[DEFER] * 7), spelled(DEFER), spelled(("fly", {})), "Done.")

    assert rollout.ending == ("step_limit", None)
    assert [code for *_, code in made_of(rollout)] == [""] * 7 + ["EPISODE_OVER", "ARGUMENTS_REFUSED"]
    assert rollout.scores["submitted_score"] == 0.0


def test_an_answer_that_does_not_stand_in_the_ids_is_an_error() -> None:
    host = Host()
    host.say(spelled(EDIT), "Done.")
    host.messages[1]["content"] = "something else"

    with pytest.raises(UsageError, match="does not stand in the completion"):
        read_rollout(
            Identity(0, 0, 0, [], ""), host.messages, host.ids, host.environment.played, form=FORM, limits=LIMITS
        )


def lines_of(rollout: Rollout) -> list[Any]:
    return episode_lines(rollout, judge(rollout, WEIGHTS).paid, RUN_ID)


def test_the_first_line_carries_prompt_and_scenario_and_the_last_one_the_ending() -> None:
    lines = lines_of(Host().say(spelled(EDIT, DEFER), "Done."))

    assert [line.prompt for line in lines] == ["<lab>", None, None]
    assert [line.scenario is not None for line in lines] == [True, False, False]
    assert [line.ended_by for line in lines] == [None, None, "no_call"]
    assert [line.raw_completion for line in lines] == [spelled(EDIT, DEFER), None, "Done."]
    assert (lines[-1].tool, lines[-1].action_type, lines[-1].episode_score) == (None, "none", 0.0)


def test_an_episode_of_one_silent_turn_is_one_line() -> None:
    (line,) = lines_of(Host().say("No."))

    assert (line.prompt, line.ended_by, line.training_reward) == ("<lab>", "no_call", -0.1)
    assert (line.molecule, line.remaining_budget, line.step_index) == ("0121", 3600, 0)


def test_lines_play_again_to_the_same_rewards_and_scores() -> None:
    turns = [spelled(EDIT, ("run_assay", {"tool_name": "dock_target"})), spelled(("fly", {})), spelled(*[DEFER] * 9)]
    lines = lines_of(Host().say(*turns))
    session = ToolSession(observation_length="compact")
    session.start(lines[0].scenario, reward_mode=lines[0].reward_mode)

    for line in lines:
        result = call_tool(session, line.tool, line.arguments)
        assert (line.status, line.error_code) == (result.status, result.error_code)
        if result.outcome is not None:
            assert (line.transition_reward, line.reward) == (result.outcome.reward, result.outcome.tool_reward)
            assert line.observation_sha256 == result.outcome.observation_sha256
        assert (line.molecule, line.done) == (session.episode.molecule.code, session.done)
    assert lines[-1].episode_score == lines[-1].final_score == session.scores["final_score"]


@pytest.mark.parametrize("value", [float("nan"), 10**30, "\ud800", {"a": [1, {"b": None}]}, True])
def test_strange_arguments_are_written_in_strict_json_and_refused_again(value: Any) -> None:
    lines = lines_of(Host().say(spelled(("edit", {"slot": "warhead", "fragment": value})), "Done."))
    written = orjson.loads(orjson.dumps(plain(lines[0])))
    session = ToolSession(observation_length="compact")
    session.reset(scenario_id="level_0_easy")
    again = call_tool(session, written["tool"], written["arguments"])

    assert (again.status, again.error_code) == (written["status"], written["error_code"])


def test_both_files_are_chained_and_a_formula_is_written_as_text(tmp_path) -> None:
    (tmp_path / "logs").mkdir()
    log = RolloutLog(tmp_path, RUN_ID)
    rollout = Host().say(spelled(("edit", {"slot": "warhead", "fragment": '=HYPERLINK("http://x")'})), "Done.")
    log.write([(rollout, judge(rollout, WEIGHTS).paid)])
    rows = [orjson.loads(line) for line in (tmp_path / "logs/openenv_tool_rollouts.jsonl").read_bytes().splitlines()]
    table = (tmp_path / "openenv_tool_metrics.csv").read_text().splitlines()

    assert rows[0]["chain"] == chain_of(chain_start(RUN_ID, rows[0]["episode_id"]), rows[0])
    assert all(later["chain"] == chain_of(earlier["chain"], later) for earlier, later in pairwise(rows))
    assert len(table) == len(rows) + 1
    assert "'=HYPERLINK" in table[1]


def test_the_parts_that_are_logged_add_up_to_what_is_paid() -> None:
    rollouts = [Host(HostLimits(9, 10_000)).say(*words) for words in (
        [spelled(EDIT, ("fly", {})), "Done."],
        [spelled(*[DEFER] * 8), "Done."],
        ["No."],
    )]  # fmt: skip
    judged = [judge(rollout, WEIGHTS) for rollout in rollouts]
    means = batch_means(judged, WEIGHTS)
    parts = [value for name, value in means.items() if name.startswith("reward_part/")]

    assert sum(parts) == pytest.approx(sum(entry.paid.reward for entry in judged) / 3)
    assert means["unfinished_rate"] == pytest.approx(2 / 3)
    assert means["strict_score"] == pytest.approx(rollouts[1].scores["final_score"] / 3)


def test_progress_on_an_unfinished_episode_earns_nothing() -> None:
    assay = ("run_assay", {"tool_name": "evaluate_properties"})
    idle = judge(Host().say("No."), WEIGHTS).paid.reward
    busy = judge(Host().say(spelled(assay, assay, EDIT), "Done."), WEIGHTS).paid.reward

    assert busy == idle == -0.1


def broken_rollout() -> tuple[Played, list[dict[str, Any]]]:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    played = Played(resolve_scenario(scenario_id="level_0_easy", seed=1), 1, "assay_gated", moment)
    played.calls.append(Call("defer", {}, None, BROKEN_CODE, moment))
    call = {"function": {"name": "defer", "arguments": {}}}
    answer = {"role": "tool", "name": "defer", "content": "{'error': 'gone'}"}
    return played, [{"role": "assistant", "tool_calls": [call]}, answer, {"role": "assistant", "content": "Done."}]


def test_an_episode_that_the_environment_broke_is_neither_scored_nor_paid() -> None:
    played, messages = broken_rollout()
    ids = FORM.ids("x") + FORM.suffix_ids([messages[1]]) + FORM.ids("Done.")
    rollout = read_rollout(Identity(0, 0, 0, [], ""), messages, ids, played, form=FORM, limits=LIMITS)
    lines = lines_of(rollout)

    assert judge(rollout, WEIGHTS).paid == Paid(None, None)
    assert (lines[-1].ended_by, lines[-1].status, lines[-1].episode_score) == ("env_error", "env_error", None)


def test_training_stops_when_too_much_of_a_batch_broke(tmp_path) -> None:
    from molforge_train.config import resolve

    (tmp_path / "logs").mkdir()
    flags = {"num_generations": "2", "batch_size": "2"}
    settings = resolve("tiny-cpu", flags, {}, now=datetime(2026, 1, 1, tzinfo=UTC)).configuration
    pay = EpisodeReward(settings, FORM, RolloutLog(tmp_path, RUN_ID))
    played, messages = broken_rollout()
    ids = FORM.ids("x") + FORM.suffix_ids([messages[1]]) + FORM.ids("Done.")

    class Broken:
        def __init__(self) -> None:
            self.played = played

    class State:
        global_step = 5

    with pytest.raises(EnvironmentBrokenError, match="2 of 2 episodes") as stopped:
        pay(
            prompts=[[{"role": "user", "content": "lab"}]] * 2,
            completions=[messages] * 2,
            completion_ids=[ids] * 2,
            environments=[Broken(), Broken()],
            trainer_state=State(),
            log_metric=lambda *_: None,
        )

    assert stopped.value.where == "training step 5"
    assert len((tmp_path / "logs/openenv_tool_rollouts.jsonl").read_bytes().splitlines()) == 2


def test_the_order_of_a_batch_is_groups_of_one_prompt() -> None:
    rollout = Host().say("No.")

    assert rollout.episode_id == "step00004-prompt01-02"
    assert RolloutChains().seal(lines_of(rollout)[0]).generation == 2

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from molforge_env.completions import ParsedCompletion, parse_completion
from molforge_env.interface import prompt_text
from molforge_env.suites import resolve_scenario
from molforge_eval.dialogue import Dialogue, Message
from molforge_eval.plan import Limits, standard_plan


class Letters:
    """A chat form whose tokens are the letters of the text."""

    def __init__(self, context_limit: int = 100_000) -> None:
        self.context_limit = context_limit

    def prompt_ids(self, content: str) -> list[int]:
        return [ord(letter) for letter in f"{content}\n>"]

    def suffix_ids(self, answers: Sequence[Message]) -> list[int]:
        return [ord(letter) for answer in answers for letter in f"\n[{answer['name']}: {answer['content']}]\n>"]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(map(chr, ids))

    def parse(self, ids: Sequence[int], _context: Sequence[int]) -> ParsedCompletion:
        return parse_completion(self.decode(ids))


def _ids(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def _call(name: str, arguments: str = "{}") -> str:
    return f'<tool_call>{{"name": "{name}", "arguments": {arguments}}}</tool_call>'


def _open(form: Letters | None = None, **limits: int) -> Dialogue:
    numbers = {"max_new_tokens": 2_000, "max_completion_length": 50_000, "turn_limit": 11} | limits
    plan = standard_plan(observation_length="compact", limits=Limits(**numbers))
    scenario = resolve_scenario(scenario_id="level_0_easy", seed=1)
    return Dialogue(scenario, plan, plan.parts[0].decoding, form or Letters())


def test_the_first_context_is_the_prompt_with_the_first_observation_behind_it() -> None:
    dialogue = _open()

    assert Letters().decode(dialogue.context).startswith(prompt_text("compact") + "level_0_easy")
    assert dialogue.new_ids == dialogue.context
    assert dialogue.ended_by is None


def test_the_models_ids_stay_as_they_are_and_the_answer_follows() -> None:
    dialogue = _open()
    prompt, said = list(dialogue.context), _ids("hm " + _call("defer"))
    dialogue.take(said)

    assert dialogue.context[: len(prompt) + len(said)] == prompt + said
    assert dialogue.context[len(prompt) + len(said) :] == dialogue.new_ids
    assert Letters().decode(dialogue.new_ids).startswith("\n[defer: executed")


def test_a_turn_is_recorded_with_what_was_new_and_how_long_the_context_was() -> None:
    dialogue = _open()
    length = len(dialogue.context)
    dialogue.take(_ids(_call("defer")))
    dialogue.take(_ids("done"))
    first, second = dialogue.turns

    assert (first.turn, first.prompt_tokens, first.raw_completion) == (0, length, _call("defer"))
    assert second.prompt.startswith("\n[defer: ")
    assert second.prompt_tokens == length + first.completion_tokens + len(second.prompt)
    assert first.prompt_ids_sha256 != second.prompt_ids_sha256


def test_several_calls_in_a_message_are_played_in_order() -> None:
    dialogue = _open()
    dialogue.take(_ids(_call("edit", '{"slot": "hinge", "fragment": "azaindole"}') + _call("defer") + _call("mix")))

    assert [(step.tool, step.step, step.status) for step in dialogue.steps] == [
        ("edit", 1, "ok"),
        ("defer", 2, "ok"),
        ("mix", 2, "invalid"),
    ]
    assert {step.turn for step in dialogue.steps} == {0}


def test_calls_behind_the_end_in_the_same_message_are_refused_and_the_episode_is_over() -> None:
    dialogue = _open()
    dialogue.take(_ids(_call("defer") * 9))

    assert dialogue.ended_by == "step_limit"
    assert [step.error_code for step in dialogue.steps] == [""] * 7 + ["EPISODE_OVER"] * 2
    assert [step.status for step in dialogue.steps[7:]] == ["invalid", "invalid"]
    assert dialogue.scores is not None


@pytest.mark.parametrize(
    ("said", "ending"), [("done", "no_call"), ("<tool_call>{</tool_call>", "malformed_call"), ("", "no_call")]
)
def test_a_turn_without_a_call_leaves_the_episode_unfinished(said: str, ending: str) -> None:
    dialogue = _open()
    dialogue.take(_ids(said))

    assert dialogue.ended_by == ending
    assert dialogue.scores is None


def test_the_call_of_the_turn_after_the_last_is_not_played() -> None:
    dialogue = _open(turn_limit=2)
    for _ in range(3):
        dialogue.take(_ids(_call("mix")))

    assert dialogue.ended_by == "turn_limit"
    assert len(dialogue.steps) == 2
    assert len(dialogue.turns) == 3


def test_an_answer_that_does_not_fit_ends_the_episode_one_step_ahead_of_the_transcript() -> None:
    dialogue = _open(max_completion_length=80, max_new_tokens=80)
    dialogue.take(_ids(_call("defer")))

    assert dialogue.ended_by == "length_limit"
    assert dialogue.steps[-1].step == 1
    assert len(dialogue.turns) == 1


def test_an_episode_that_ends_by_its_last_call_is_not_cut_by_length() -> None:
    dialogue = _open(max_completion_length=500, max_new_tokens=500)
    dialogue.take(_ids(_call("defer") * 7))

    assert dialogue.ended_by == "step_limit"


def test_a_context_that_the_model_cannot_hold_ends_the_episode() -> None:
    short = Letters(context_limit=len(_open().context) + 60)
    dialogue = _open(short)
    dialogue.take(_ids(_call("defer")))

    assert dialogue.ended_by == "length_limit"


def test_the_room_of_a_turn_shrinks_to_what_the_episode_has_left() -> None:
    dialogue = _open(max_new_tokens=300, max_completion_length=400)

    assert dialogue.room == 300
    dialogue.take(_ids(_call("defer")))
    assert dialogue.room == 400 - len(_call("defer")) - len(dialogue.new_ids)


def test_words_that_use_the_room_up_end_by_length() -> None:
    dialogue = _open(max_new_tokens=20, max_completion_length=20)
    dialogue.take(_ids("x" * 20))

    assert dialogue.ended_by == "length_limit"


def test_a_laboratory_that_breaks_costs_the_episode_and_says_what_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise ConnectionError("the laboratory is gone")

    dialogue = _open()
    # Nothing of the embedded laboratory can be made to fail from outside, so its step is replaced.
    monkeypatch.setattr("molforge_env.laboratory.Laboratory.step", broken)
    dialogue.take(_ids(_call("defer") * 2))

    assert dialogue.ended_by == "env_error"
    assert dialogue.error == "ConnectionError: the laboratory is gone"
    assert dialogue.steps == []

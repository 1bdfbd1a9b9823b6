"""Files of conversations: what is sound is taken, what was never said in a laboratory is named with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from molforge_env.errors import UnreadableError
from molforge_env.seeding import stream
from molforge_env.suites import SCENARIO_IDS, resolve_scenario
from molforge_eval.canonical import line_bytes
from molforge_eval.cli.evaluate import cli
from molforge_eval.conversations import held_out, read_conversations
from molforge_eval.limits import Limits
from molforge_eval.validate import validate
from molforge_train.transcripts import TranscriptRecipe, draw_variants, generate_transcripts, play_messages

RECIPE = TranscriptRecipe(
    conversations=6, mixture={"expert": 0.3, "habit": 0.3, "random": 0.4}, observation_length="full"
)


def lines() -> list[dict[str, Any]]:
    return [item.line() for item in generate_transcripts(RECIPE, seed=11)]


def write(folder: Path, rows: list[Any]) -> Path:
    path = folder / "sft.jsonl"
    path.write_bytes(b"".join(row if isinstance(row, bytes) else line_bytes(row) for row in rows))
    return path


def codes(path: Path) -> list[tuple[str, int | None, str | None]]:
    return [(item.code, item.where.line, item.where.pointer) for item in validate(path).findings]


def test_what_teachers_have_played_is_sound(tmp_path: Path) -> None:
    result = validate(write(tmp_path, lines()))

    assert result.findings == ()
    assert (result.level, result.counts["conversations"]) == ("E2", 6)
    assert result.counts["calls"] > 18


def test_a_line_reads_back_as_what_was_written(tmp_path: Path) -> None:
    file = read_conversations(write(tmp_path, lines()))

    assert file.conversations == tuple(generate_transcripts(RECIPE, seed=11))


@pytest.mark.parametrize("name", SCENARIO_IDS)
def test_an_official_task_is_named_although_every_text_in_it_is_true(tmp_path: Path, name: str) -> None:
    row = lines()[0]
    scenario = resolve_scenario(scenario_id=name)
    messages = play_messages("expert", scenario, "full", stream(1, "test"))
    row["scenario"] = scenario.model_dump(mode="json")
    row["messages"] = [message.model_dump(mode="json", exclude_none=True) for message in messages]

    assert codes(write(tmp_path, [row])) == [("CONVERSATION_HELD_OUT", 1, "/scenario")]


@pytest.mark.parametrize("name", SCENARIO_IDS)
def test_a_holdout_variant_is_named_and_nothing_is_learned_from_it(tmp_path: Path, name: str) -> None:
    row = lines()[0]
    scenario = resolve_scenario(suite="holdout", scenario_id=name, seed=4)
    messages = play_messages("expert", scenario, "full", stream(1, "test"))
    row["scenario"] = scenario.model_dump(mode="json")
    row["messages"] = [message.model_dump(mode="json", exclude_none=True) for message in messages]

    assert codes(write(tmp_path, [row])) == [("CONVERSATION_HELD_OUT", 1, "/scenario")]


def test_every_training_variant_may_be_played() -> None:
    variants = draw_variants(5)

    assert [held_out(next(variants)) for _ in range(50)] == [None] * 50


def test_a_variant_of_a_named_scenario_may_be_played() -> None:
    assert held_out(resolve_scenario(suite="randomized", scenario_id="level_2_hard", seed=8)) is None


@pytest.mark.parametrize(
    ("place", "change", "pointer"),
    [
        (2, {"content": "executed"}, "/messages/2/content"),
        (2, {"name": "defer_it"}, "/messages/2/name"),
        (2, {"role": "user"}, "/messages/2/role"),
        (1, {"role": "user"}, "/messages/1/role"),
        (0, {"role": "assistant"}, "/messages/0/role"),
        (1, {"tool_calls": None}, "/messages/1"),
        (1, {"tool_calls": []}, "/messages/1"),
        (1, {"tool_calls": [{"type": "function", "function": {"name": "hack", "arguments": "{"}}]}, "/messages/2/name"),
    ],
)
def test_a_message_that_no_laboratory_gives_is_named(
    tmp_path: Path, place: int, change: dict[str, Any], pointer: str
) -> None:
    rows = lines()
    rows[1]["messages"][place] |= change

    assert codes(write(tmp_path, rows)) == [("CONVERSATION_DIFFERS", 2, pointer)]


def test_a_conversation_that_ends_before_its_answer_is_named(tmp_path: Path) -> None:
    rows = lines()
    del rows[0]["messages"][2:]

    assert codes(write(tmp_path, rows)) == [("CONVERSATION_DIFFERS", 1, "/messages/1")]


def test_words_beside_the_calls_are_free_as_long_as_they_reveal_nothing(tmp_path: Path) -> None:
    rows = lines()
    rows[0]["messages"][1]["content"] = "The budget is 0.123 of what I had; I measure first."
    rows[0]["messages"][-1]["content"] = "I have submitted it."

    assert codes(write(tmp_path, rows)) == []


def test_bad_lines_cost_only_themselves(tmp_path: Path) -> None:
    rows = lines()
    path = write(tmp_path, [rows[0], b"{\n", b'{"a":NaN}\n', {**rows[1], "score": 1.0}, rows[2], b'{"messages":'])

    found = {line for code, line, _ in codes(path)}
    assert found == {2, 3, 4, 6}
    assert validate(path).counts["conversations"] == 2


def test_another_log_is_no_file_of_conversations(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="holds no conversation"):
        validate(write(tmp_path, [{"step": 1}]))


def test_a_file_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="the limit is 100"):
        validate(write(tmp_path, lines()), Limits(file_bytes=100))


def test_the_command_answers_in_every_format(tmp_path: Path) -> None:
    path = write(tmp_path, lines())
    answer = CliRunner().invoke(cli, ["validate", str(path), "--format", "json", "--require", "E2"])

    assert answer.exit_code == 0
    assert orjson.loads(answer.stdout)["counts"]["conversations"] == 6

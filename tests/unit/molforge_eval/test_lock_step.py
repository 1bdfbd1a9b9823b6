"""Rows of a batch do not see each other: not in their logits, not in their draws."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from molforge_eval.lock_step import LockStep, Turn, can_keep_cache, choose_tokens
from molforge_eval.records.evaluation import Decoding

GREEDY = Decoding(method="greedy", temperature=0.0, max_new_tokens=50, max_completion_length=500)
SAMPLED = Decoding(method="sampled", temperature=1.0, max_new_tokens=50, max_completion_length=500)
STOP = 2


@pytest.fixture(scope="module")
def model() -> Any:
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(5)
    config = Qwen3Config(
        vocab_size=60,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=512,
        initializer_range=0.3,
        tie_word_embeddings=True,
    )
    return Qwen3ForCausalLM(config).double().eval()


def _turns(prompts: list[list[int]], *, decoding: Decoding = SAMPLED, room: int = 12, turn: int = 0) -> list[Turn]:
    return [Turn(ids, room, decoding, Random(f"{row}:{turn}")) for row, ids in enumerate(prompts)]


def _prompts(rows: int) -> list[list[int]]:
    rng = Random(3)
    return [[rng.randrange(3, 60) for _ in range(rng.randrange(4, 40))] for _ in range(rows)]


def _alone(model: Any, prompts: list[list[int]], answers: list[list[int]]) -> list[list[list[int]]]:
    written = []
    for row, ids in enumerate(prompts):
        single = LockStep(model, stop_ids=frozenset({STOP}), pad_id=0, rows=1)
        first = single.advance([Turn(ids, 12, SAMPLED, Random(f"{row}:0"))])
        second = single.advance([Turn(answers[row], 12, SAMPLED, Random(f"{row}:1"))])
        written.append([first[0], second[0]])
    return written


def test_a_row_writes_the_same_alone_and_among_others_over_two_turns(model: Any) -> None:
    prompts, answers = _prompts(7), _prompts(14)[7:]
    together = LockStep(model, stop_ids=frozenset({STOP}), pad_id=0, rows=7)
    first = together.advance(_turns(prompts))
    second = together.advance(_turns(answers, turn=1))

    assert [list(pair) for pair in zip(first, second, strict=True)] == _alone(model, prompts, answers)
    assert len({len(ids) for ids in first}) > 1


def test_rows_that_are_dropped_leave_the_others_as_they_were(model: Any) -> None:
    prompts, answers = _prompts(5), _prompts(10)[5:]
    together = LockStep(model, stop_ids=frozenset({STOP}), pad_id=0, rows=5)
    together.advance(_turns(prompts))
    together.keep([1, 3, 4])
    second = together.advance([_turns(answers, turn=1)[row] for row in (1, 3, 4)])
    alone = _alone(model, prompts, answers)

    assert second == [alone[row][1] for row in (1, 3, 4)]
    together.keep([])


def test_rows_of_a_recurrent_model_are_dropped_too() -> None:
    import torch
    from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

    torch.manual_seed(5)
    config = Qwen3_5TextConfig(
        vocab_size=60,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        layer_types=["linear_attention", "full_attention"],
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        linear_num_key_heads=2,
        linear_num_value_heads=2,
        linear_key_head_dim=8,
        linear_value_head_dim=8,
        max_position_embeddings=512,
        initializer_range=0.3,
        tie_word_embeddings=True,
    )
    recurrent = Qwen3_5ForCausalLM(config).double().eval()
    prompts, answers = _prompts(5), _prompts(10)[5:]
    together = LockStep(recurrent, stop_ids=frozenset({STOP}), pad_id=0, rows=5)
    first = together.advance(_turns(prompts))
    together.keep([1, 3, 4])
    second = together.advance([_turns(answers, turn=1)[row] for row in (1, 3, 4)])
    alone = _alone(recurrent, prompts, answers)

    assert first == [alone[row][0] for row in range(5)]
    assert second == [alone[row][1] for row in (1, 3, 4)]


def test_the_cache_over_turns_gives_the_logits_of_a_fresh_reading(model: Any) -> None:
    import torch

    prompts, answers = _prompts(4), _prompts(8)[4:]
    together = LockStep(model, stop_ids=frozenset({STOP}), pad_id=0, rows=4)
    first = together.advance(_turns(prompts))
    for row in range(4):
        together._unread[row] += answers[row]
    with torch.inference_mode():
        kept = together._feed(range(4))
        for row in range(4):
            whole = torch.tensor([prompts[row] + first[row] + answers[row]])
            assert torch.allclose(kept[row], model(input_ids=whole).logits[0, -1], atol=1e-6)


def test_a_model_that_cannot_keep_its_cache_reads_everything_again_and_writes_the_same(model: Any) -> None:
    prompts, answers = _prompts(3), _prompts(6)[3:]
    again = LockStep(model, stop_ids=frozenset({STOP}), pad_id=0, rows=3)
    again._keeps_cache = False
    first = again.advance(_turns(prompts))
    again.keep([0, 2])
    second = again.advance([_turns(answers, turn=1)[row] for row in (0, 2)])
    alone = _alone(model, prompts, answers)

    assert first == [pair[0] for pair in alone]
    assert second == [alone[row][1] for row in (0, 2)]


def test_greedy_rows_are_those_of_the_librarys_own_generation(model: Any) -> None:
    import torch

    prompts = _prompts(4)
    together = LockStep(model, stop_ids=frozenset({STOP}), pad_id=0, rows=4)
    written = together.advance(_turns(prompts, decoding=GREEDY))
    for ids, own in zip(prompts, written, strict=True):
        theirs = model.generate(
            torch.tensor([ids]), max_new_tokens=12, do_sample=False, eos_token_id=STOP, pad_token_id=0
        )
        assert theirs[0, len(ids) :].tolist() == own


def test_a_row_stops_at_its_stop_token_or_when_its_room_is_used(model: Any) -> None:
    prompts = _prompts(8)
    rooms = [1, 2, 3, 4, 5, 6, 7, 8]
    together = LockStep(model, stop_ids=frozenset({STOP}), pad_id=0, rows=8)
    turns = [turn._replace(room=room) for turn, room in zip(_turns(prompts), rooms, strict=True)]
    written = together.advance(turns)

    for ids, room in zip(written, rooms, strict=True):
        assert len(ids) == room or ids[-1] == STOP
        assert STOP not in ids[:-1]


def _choose(logits: list[list[float]], decoding: Decoding, draws: int = 1) -> list[int]:
    import torch

    table = torch.tensor(logits * draws, dtype=torch.float64)
    return choose_tokens(table, [Turn([], 1, decoding, Random(f"row {row}")) for row in range(len(table))])


def test_sampled_tokens_come_as_often_as_the_model_says() -> None:
    import math

    chosen = _choose([[math.log(0.6), math.log(0.3), math.log(0.1)]], SAMPLED, draws=4_000)
    shares = [chosen.count(token) / 4_000 for token in range(3)]

    assert shares == pytest.approx([0.6, 0.3, 0.1], abs=0.03)


def test_a_low_temperature_sharpens() -> None:
    cold = SAMPLED.model_copy(update={"temperature": 0.05})

    assert set(_choose([[1.0, 0.0, 0.5]], cold, draws=200)) == {0}


def test_top_k_keeps_the_best_and_top_p_the_least_mass_that_reaches_it() -> None:
    best_two = SAMPLED.model_copy(update={"top_k": 2})
    most = SAMPLED.model_copy(update={"top_p": 0.7})

    assert set(_choose([[1.0, 0.9, 0.8, 0.7]], best_two, draws=300)) == {0, 1}
    # Probabilities are about .64, .24, .09, .03: the first two reach .7.
    assert set(_choose([[3.0, 2.0, 1.0, 0.0]], most, draws=300)) == {0, 1}
    assert set(_choose([[9.0, 2.0, 1.0, 0.0]], most, draws=300)) == {0}


@pytest.mark.parametrize(
    "change", [{"temperature": 0.7}, {"top_k": 3}, {"top_p": 0.6}, {"temperature": 1.3, "top_k": 9, "top_p": 0.8}]
)
def test_probabilities_are_those_of_the_librarys_own_filters(change: dict[str, Any]) -> None:
    import torch
    from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    from molforge_eval.lock_step import _probabilities

    decoding = SAMPLED.model_copy(update=change)
    logits = torch.randn((6, 40), generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 2
    scores = TemperatureLogitsWarper(decoding.temperature)(torch.tensor([[0]]), logits)
    if decoding.top_k:
        scores = TopKLogitsWarper(decoding.top_k)(torch.tensor([[0]]), scores)
    if decoding.top_p < 1.0:
        scores = TopPLogitsWarper(decoding.top_p)(torch.tensor([[0]]), scores)
    ours = _probabilities(logits, temperature=decoding.temperature, top_k=decoding.top_k, top_p=decoding.top_p)

    assert torch.allclose(ours, scores.softmax(dim=-1), atol=1e-12)


def test_a_token_of_no_weight_is_never_drawn() -> None:
    assert set(_choose([[float("-inf"), 0.0, float("-inf"), 0.0]], SAMPLED, draws=300)) == {1, 3}


def test_greedy_and_sampled_rows_live_in_one_batch_and_greedy_takes_no_draw() -> None:
    import torch

    draws = [Random("a"), Random("b")]
    turns = [Turn([], 1, GREEDY, draws[0]), Turn([], 1, SAMPLED, draws[1])]
    chosen = choose_tokens(torch.tensor([[0.0, 5.0], [0.0, 0.0]]), turns)

    assert chosen[0] == 1
    assert draws[0].random() == Random("a").random()
    assert draws[1].random() != Random("b").random()


class _Config:
    def __init__(self, **facts: Any) -> None:
        self.__dict__.update(facts)

    def get_text_config(self) -> _Config:
        return self


@pytest.mark.parametrize(
    ("facts", "can"),
    [
        ({"layer_types": ["full_attention"] * 2}, True),
        ({"layer_types": ["full_attention", "sliding_attention"]}, False),
        ({"layer_types": ["linear_attention"]}, False),
        ({"model_type": "llama"}, True),
        ({"model_type": "mamba"}, False),
        ({"model_type": "llama", "sliding_window": 512}, False),
    ],
)
def test_only_full_attention_may_keep_its_cache_over_padding(facts: dict[str, Any], can: bool) -> None:
    assert can_keep_cache(_Config(**facts)) is can

"""Which prompts a run trains on, and which of them fall into a batch."""

from __future__ import annotations

from evidence_builder import read_json

from molforge_eval import layout
from molforge_eval.records.manifest import Configuration
from molforge_eval.training_prompts import planned_prompts, prompts_of_batch


def test_batches_follow_each_other_and_a_rest_is_left_out(built_run) -> None:
    settings = Configuration.model_validate(read_json(built_run, layout.MANIFEST)["configuration"])
    prompts = planned_prompts(settings.model_copy(update={"dataset_size": 7}))

    assert len(prompts) == 7
    assert [prompts_of_batch(prompts, batch, 3) for batch in range(3)] == [prompts[:3], prompts[3:6], prompts[:3]]


def test_prompts_that_fill_no_batch_give_none(built_run) -> None:
    settings = Configuration.model_validate(read_json(built_run, layout.MANIFEST)["configuration"])
    prompts = planned_prompts(settings.model_copy(update={"dataset_size": 2}))

    assert prompts_of_batch(prompts, 0, 3) == prompts_of_batch(prompts, 0, 0) == ()


def test_another_seed_gives_other_prompts_and_the_same_tasks(built_run) -> None:
    settings = Configuration.model_validate(read_json(built_run, layout.MANIFEST)["configuration"])
    first, second = (planned_prompts(settings.model_copy(update={"seed": seed})) for seed in (1, 2))

    assert [prompt.scenario_id for prompt in first] == [prompt.scenario_id for prompt in second]
    assert not {prompt.seed for prompt in first} & {prompt.seed for prompt in second}

"""The model of a run writes its greedy episodes again; what another model or a script wrote does not come out."""

from __future__ import annotations

import dataclasses
import json
import shutil
import socket
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from evidence_builder import edit_json, reseal
from evidence_cases.registry import make_edit
from model_forgeries import (
    change_policy,
    planned_greedy,
    play_forced,
    play_script,
    put_episodes,
    read_evaluation,
    speaker_for,
    swap_sides,
)

from molforge_env.errors import UsageError
from molforge_eval import layout
from molforge_eval.played import seal_episode
from molforge_eval.regenerated_episode import EpisodeTask, Speaker, regenerate_episode
from molforge_eval.regeneration import (
    Regeneration,
    explains_near,
    greedy_tasks,
    open_wish,
    regenerate,
)
from molforge_eval.replay import verify
from molforge_eval.run_directory import load

ROOT = Path(__file__).resolve().parents[3]
TINY = ROOT / "molforge_train" / "models" / "tiny"
NEAR = (1, 4)
"""Turn and token of the last greedy episode at which the sample's model weighs two assays nearly alike."""


def played_again(root: Path, **wish: Any) -> Regeneration:
    return regenerate(load(root), open_wish(**wish), on_episode=lambda: None)


def after_again(root: Path) -> Regeneration:
    """Have the model play the episodes after training alone: those before are not what was changed."""
    return regenerate(dataclasses.replace(load(root), before=None), open_wish(), on_episode=lambda: None)


def found(regeneration: Regeneration) -> set[str]:
    return {item.code for item in regeneration.findings}


@pytest.fixture(scope="module")
def honest_run(sample_run_archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample run; not to be changed."""
    folder = tmp_path_factory.mktemp("honest")
    with tarfile.open(sample_run_archive) as archive:
        archive.extractall(folder, filter="data")
    (run,) = folder.iterdir()
    return run


@pytest.fixture(scope="module")
def speaker(honest_run: Path) -> Speaker:
    """The model of the sample run after training."""
    return speaker_for(honest_run)


@pytest.fixture(scope="module")
def scripted_run(honest_run: Path, speaker: Speaker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample run with greedy episodes of the heuristic after training, in the model's own way to speak."""
    run = Path(shutil.copytree(honest_run, tmp_path_factory.mktemp("scripted") / honest_run.name))
    evaluation = read_evaluation(run)
    put_episodes(
        run, [play_script("heuristic", planned, evaluation.plan, speaker) for planned in planned_greedy(evaluation)]
    )
    return run


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Refuse every connection."""

    def refuse(*_: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return None


def test_an_honest_run_reaches_the_highest_level_without_the_network(sample_run: Path, no_network: None) -> None:
    told: list[tuple[int, int]] = []
    result = verify(sample_run, workers=1, wish=open_wish(), on_progress=lambda *step: told.append(step))

    assert (result.level, result.findings) == ("E4", ())
    assert [result.counts[f"{name}_regenerated"] for name in ("evaluations", "episodes", "turns")] == [2, 6, 37]
    assert told[-1] == (246 + 6, 246 + 6)


def test_before_and_after_exchanged_pass_replay_and_not_the_model(sample_run: Path) -> None:
    swap_sides(sample_run)
    result = verify(sample_run, workers=1, wish=open_wish())

    assert result.level == "E3"
    # The model is asked after the replay, which has found nothing.
    assert [item.code for item in result.findings] == ["REGENERATION_DIFFERS"] * 6
    assert result.counts["turns_regenerated"] == 0
    assert "turn 0: after" in result.findings[0].what
    assert "above the recorded token in the logits" in result.findings[0].what


def test_a_script_sold_as_the_model_passes_replay_and_not_the_model(scripted_run: Path) -> None:
    replayed = verify(scripted_run, workers=1)
    shown = played_again(scripted_run)

    assert (replayed.level, {item.severity for item in replayed.findings}) in (("E3", set()), ("E3", {"warning"}))
    assert [item.code for item in shown.findings] == ["REGENERATION_DIFFERS"] * 3
    assert {item.where.file for item in shown.findings} == {layout.AFTER}
    assert shown.reached == "E3"
    assert shown.counts["evaluations_regenerated"] == 1


def test_one_turn_of_a_script_is_named_with_both_texts_and_the_gap(sample_run: Path, speaker: Speaker) -> None:
    evaluation = read_evaluation(sample_run)
    planned = list(planned_greedy(evaluation))[1]
    tokenizer: Any = speaker.loaded.tokenizer
    (other,) = tokenizer.encode("restart", add_special_tokens=False)
    put_episodes(sample_run, [play_forced(planned, evaluation.plan, speaker, {(2, 4): other})])
    (item,) = after_again(sample_run).findings

    assert (item.code, item.where.pointer) == ("REGENERATION_DIFFERS", "/episodes/1/turns/2/raw_completion")
    assert item.where.episode == "greedy:level_1_medium:0"
    assert 'the record writes "restart' in item.what
    assert item.what.count("the model writes") == 1


def test_in_double_precision_the_same_choice_is_no_rounding(sample_run: Path, speaker: Speaker) -> None:
    evaluation = read_evaluation(sample_run)
    planned = list(planned_greedy(evaluation))[2]
    tokenizer: Any = speaker.loaded.tokenizer
    (other,) = tokenizer.encode("assay_toxicity", add_special_tokens=False)
    put_episodes(sample_run, [play_forced(planned, evaluation.plan, speaker, {NEAR: other})])
    (item,) = after_again(sample_run).findings

    assert item.code == "REGENERATION_DIFFERS"
    assert "its choice lies 0.0117 above" in item.what


def test_after_a_near_choice_every_later_turn_is_held_to_the_model(sample_run: Path, speaker: Speaker) -> None:
    evaluation = read_evaluation(sample_run)
    planned = next(planned_greedy(evaluation))
    played = play_script("random_valid", planned, evaluation.plan, speaker)
    record = seal_episode(played, reward_mode="assay_gated", policy_sha256="0" * 64)
    task = EpisodeTask(layout.AFTER, 0, record, evaluation.plan, planned.decoding, is_own_wording=True)
    strict = regenerate_episode(task, speaker)
    patient = regenerate_episode(task, speaker._replace(tolerance=1000.0))

    assert [item.code for item in strict.findings] == ["REGENERATION_DIFFERS"]
    assert strict.turns < patient.turns == len(record.turns)
    assert patient.near == len(patient.findings) > 3
    assert patient.is_whole


def test_more_near_choices_than_rounding_makes_are_no_rounding() -> None:
    assert explains_near(1, tokens=10)
    assert explains_near(3, tokens=100)
    assert not explains_near(2, tokens=10)
    assert not explains_near(4, tokens=100)


def test_two_threads_write_what_one_has_written(sample_run: Path, speaker: Speaker) -> None:
    import torch

    run = load(sample_run)
    assert run.after is not None
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        played = regenerate_episode(greedy_tasks(run, layout.AFTER, run.after)[2], speaker)
    finally:
        torch.set_num_threads(before)

    assert (played.findings, played.is_whole, played.turns) == ((), True, 3)


def _ungreedy(root: Path) -> None:
    def draw(plan: Any) -> None:
        plan["parts"][0]["decoding"].update(method="sampled", temperature=1.0)

    edit_json(root, layout.PLAN, draw)
    make_edit(root, {"op": "plan_everywhere"})
    reseal(root)


def _scripted(root: Path) -> None:
    nothing = dict.fromkeys(
        ("base_model", "base_model_sha256", "adapter", "adapter_sha256", "tokenizer_sha256", "dtype", "adapter_merged")
    )
    change_policy(root, layout.AFTER, kind="scripted", name="heuristic", chat_template_sha256=None, **nothing)


def _reworded(root: Path) -> None:
    edit_json(root, layout.MANIFEST, lambda value: value.update(product_version="9.9.9"))

    def reword(value: Any) -> None:
        for episode in value["episodes"]:
            episode["turns"][0]["prompt_ids_sha256"] = "0" * 64

    edit_json(root, layout.AFTER, reword)
    reseal(root)


FLAWS = {
    "no greedy part": (_ungreedy, {"REGENERATION_IMPOSSIBLE"}, "no greedy episode"),
    "a script": (_scripted, {"REGENERATION_IMPOSSIBLE"}, '"heuristic", which is a script'),
    "another product version": (_reworded, {"REGENERATION_IMPOSSIBLE"}, "are not the recorded ones"),
    "another base": (
        lambda root: change_policy(root, layout.AFTER, base_model_sha256="1" * 64),
        {"REGENERATION_BASE_DIFFERS"},
        "the record has 111111111111…",
    ),
    "another template": (
        lambda root: change_policy(root, layout.AFTER, chat_template_sha256="1" * 64),
        {"REGENERATION_BASE_DIFFERS"},
        "the chat template of the base model",
    ),
}


@pytest.mark.parametrize("name", FLAWS)
def test_what_cannot_play_is_named_and_the_level_stays(name: str, sample_run: Path, no_network: None) -> None:
    flaw, wanted, words = FLAWS[name]
    flaw(sample_run)
    shown = after_again(sample_run)

    assert found(shown) == wanted
    assert words in shown.findings[0].what
    assert shown.reached == "E3"
    assert shown.reason.startswith("E4 was not reached after training: ")


@pytest.mark.parametrize(
    "name",
    ["/etc", "../base", "molforge_train/models/../../tests", "molforge_train/models/tiny/../tiny/base", "a/../b"],
)
def test_a_recorded_name_opens_no_folder_of_the_machine(
    name: str, sample_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(TINY / "base", sample_run.parent / "base")
    monkeypatch.chdir(sample_run)
    change_policy(sample_run, base_model=name)

    assert found(played_again(sample_run)) == {"REGENERATION_BASE_MISSING"}


def test_the_reader_names_a_base_model_that_the_run_cannot(sample_run: Path, tmp_path: Path) -> None:
    change_policy(sample_run, base_model="base")
    assert found(played_again(sample_run)) == {"REGENERATION_BASE_MISSING"}
    named = played_again(sample_run, base_model=str(TINY / "base"))

    assert (named.reached, named.findings) == ("E4", ())


def test_a_base_model_that_is_nowhere_ends_before_anything_is_read() -> None:
    with pytest.raises(UsageError, match=r"there is no model at \./nowhere"):
        open_wish(base_model="./nowhere")


def test_without_the_first_adapter_the_level_speaks_of_after_only(sample_run: Path) -> None:
    change_policy(sample_run, layout.BEFORE, adapter="someone/adapter")
    shown = played_again(sample_run)
    named = played_again(sample_run, input_adapter=str(TINY / "sft_adapter"))

    assert [item.code for item in shown.findings] == ["REGENERATION_PARTIAL"]
    assert shown.reached == "E4"
    assert 'after training only: the adapter "someone/adapter" that the run began with is not here' in shown.reason
    assert (named.findings, named.counts["evaluations_regenerated"]) == ((), 2)


def test_another_first_adapter_is_not_taken_for_the_recorded_one(sample_run: Path) -> None:
    (item,) = played_again(sample_run, input_adapter=str(sample_run / "adapters")).findings

    assert item.code == "REGENERATION_PARTIAL"
    assert "the adapter adapters has hash" in item.what


def test_a_run_that_replay_denies_loads_no_model(sample_run: Path) -> None:
    edit_json(sample_run, layout.AFTER, lambda value: value["episodes"][0]["scores"].update(potency_score=0.123))
    reseal(sample_run)
    result = verify(sample_run, workers=1, wish=open_wish(base_model=str(TINY / "base")))

    assert result.level != "E4"
    assert "turns_regenerated" not in result.counts
    assert "E4" not in {item.code[:2] for item in result.findings}


def test_the_settings_that_a_library_sees_hold_nothing_of_the_stranger(sample_run: Path) -> None:
    """The settings of a stranger name a module, a base model and a pattern; none of them reaches the library."""
    path = sample_run / layout.ADAPTER_CONFIG
    settings = json.loads(path.read_text())
    settings |= {
        "megatron_core": "antigravity",
        "auto_mapping": {"parent_library": "antigravity", "base_model_class": "X"},
        "base_model_name_or_path": "someone/model",
        "revision": "evil",
    }
    path.write_text(json.dumps(settings))
    reseal(sample_run)
    shown = after_again(sample_run)

    assert (shown.reached, shown.findings) == ("E4", ())

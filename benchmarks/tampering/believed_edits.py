"""Forgeries that no check can see, each made for real, and the level that would show it.

Level E4 has the model of the run play its greedy evaluation again; nothing plays the training again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from evidence_builder import edit_json, read_json, read_lines, spell_call, tensors_of, write, write_lines
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from benchmarks.tampering.operator import (
    Belief,
    Line,
    Operator,
    episodes_of,
    find,
    line_edit,
    lines_edit,
    need,
    put,
    record_edit,
    rename_policy,
)
from molforge_eval import layout
from molforge_eval.canonical import file_bytes, plain
from molforge_eval.plan import planned_episodes
from molforge_eval.played import seal_episode
from molforge_eval.records import EvaluationPlan
from molforge_eval.scripted_player import ScriptedPlayer


def _rows(change: Callable[[Line], Any]) -> Callable[[Path], None]:
    def edit(rows: list[Line]) -> None:
        for row in rows:
            change(row)

    return lines_edit(edit, layout.TRAINER_LOG)


def _lower_losses(rows: list[Line]) -> None:
    train = [row for row in rows if row["type"] == "train"]
    for place, row in enumerate(train):
        row.update(loss=0.2 - 0.001 * place, grad_norm=0.3)
    for row in rows:
        if row["type"] == "summary":
            row["train_loss"] = sum(entry["loss"] for entry in train) / len(train)


def _reword(line: Line) -> None:
    line["raw_completion"] = f"The potency is too low, so I act. {line['raw_completion']}"


def _cut(line: Line) -> None:
    line["ended_by"] = "length_limit"


def _exchange_evaluations(root: Path) -> None:
    """Change before and after whole: what was played changes sides, names and times stay."""
    need(root, *layout.EVALUATIONS)
    before, after = (read_json(root, path) for path in layout.EVALUATIONS)
    before["episodes"], after["episodes"] = after["episodes"], before["episodes"]
    for path, value in zip(layout.EVALUATIONS, (before, after), strict=True):
        rename_policy(value)
        for episode in value["episodes"]:
            episode["wall_time_seconds"] = 0.0
        write(root, path, file_bytes(value))


def _script(path: str, policy: str) -> Callable[[Path], None]:
    """Sell the play of a script as the model's, with its completions spelled out."""

    def edit(root: Path) -> None:
        need(root, path)
        value = read_json(root, path)
        plan = EvaluationPlan.model_validate(value["plan"])
        recorded = {episode["episode_id"]: episode for episode in value["episodes"]}
        openings = {episode["scenario_id"]: episode["turns"][0] for episode in value["episodes"]}
        frame = _frame_of(value["episodes"])
        episodes = []
        planned = tuple(planned_episodes(plan))
        # Sampled episodes that are copies of one another would be seen.
        even, odd = ([entry for entry in planned if entry.seed % 2 == rest] for rest in (0, 1))
        played_by = (*ScriptedPlayer(policy).play(even, plan), *ScriptedPlayer("random_valid").play(odd, plan))
        for played in sorted(played_by, key=lambda entry: planned.index(entry.planned)):
            record = plain(seal_episode(played, reward_mode=plan.reward_mode, policy_sha256="0" * 64))
            _speak(record, openings[record["scenario_id"]], frame)
            record["policy_sha256"] = recorded[record["episode_id"]]["policy_sha256"]
            episodes.append(record)
        value["episodes"] = episodes
        write(root, path, file_bytes(value))

    return edit


def _frame_of(episodes: list[Line]) -> tuple[str, str]:
    """Take what the chat template puts before and after an answer of the laboratory."""
    episode = find(episodes, lambda entry: len(entry["turns"]) > 1)
    prompt = episode["turns"][1]["prompt"]
    answer = next(step["response"] for step in episode["steps"] if step["turn"] == 0)
    before, _, behind = prompt.partition(answer)
    return before, behind


def _speak(record: Line, opening: Line, frame: tuple[str, str]) -> None:
    spoken = {step["turn"]: step for step in record["steps"]}
    room = opening["prompt_tokens"]
    for turn in record["turns"]:
        step = spoken.get(turn["turn"])
        words = "I stop here." if step is None else _call(step)
        is_first = turn["turn"] == 0
        prompt = opening["prompt"] if is_first else frame[0] + turn["prompt"] + frame[1]
        turn.update(
            prompt=prompt,
            raw_completion=words,
            prompt_tokens=room,
            completion_tokens=8,
            prompt_ids_sha256=opening["prompt_ids_sha256"],
        )
        room += 30
    written = [turn["completion_tokens"] for turn in record["turns"]]
    record["completion_tokens"] = sum(written)
    record["prompt_tokens"] = record["turns"][-1]["prompt_tokens"] - sum(written[:-1])


def _call(step: Line) -> str:
    return spell_call(step["tool"], step["arguments"])


def _copy_sibling(lines: list[Line]) -> list[Line]:
    """Put a copy of the best episode of a group in the place of its worst."""
    groups: dict[str, list[list[Line]]] = {}
    for name, episode in episodes_of(lines).items():
        groups.setdefault(name.rpartition("-")[0], []).append(episode)
    for group in groups.values():
        ranked = sorted(group, key=lambda episode: episode[-1]["episode_score"] or 0.0)
        worst, best = ranked[0], ranked[-1]
        if worst[-1]["episode_score"] != best[-1]["episode_score"]:
            break
    facts = ("episode_id", "generation")
    copied = [{**line, **{key: worst[0][key] for key in facts}} for line in best]
    place = lines.index(worst[0])
    kept = [line for line in lines if line["episode_id"] != worst[0]["episode_id"]]
    return [*kept[:place], *copied, *kept[place:]]


def _tensors(change: Callable[[NDArray[Any]], NDArray[Any]]) -> Callable[[Path], None]:
    def edit(root: Path) -> None:
        path = root / layout.ADAPTER_WEIGHTS
        values = {name: change(value) for name, value in load_file(path).items()}
        save_file(values, path, metadata={"format": "pt"})

    return edit


def _round_input(root: Path) -> None:
    """Deliver the adapter that went in as the one that came out, rounded to half precision."""
    edit_json(root, layout.MANIFEST, lambda value: value["input_adapter"].update(tensors_sha256=tensors_of(root)))
    _tensors(lambda value: value.astype(np.float16))(root)


def _repaint(root: Path) -> None:
    """Put the pixels of one picture under the words and the digest of another."""
    first, second = "plots/reward_curve.png", "plots/loss_curve.png"
    need(root, first, second)
    pixels, words = (root / second).read_bytes(), (root / first).read_bytes()
    write(root, first, _without_text(pixels, _text_of(words)))


def _chunks(picture: bytes) -> list[bytes]:
    chunks, place = [], 8
    while place < len(picture):
        length = int.from_bytes(picture[place : place + 4], "big") + 12
        chunks.append(picture[place : place + length])
        place += length
    return chunks


def _text_of(picture: bytes) -> list[bytes]:
    return [chunk for chunk in _chunks(picture) if chunk[4:8] in (b"tEXt", b"iTXt", b"zTXt")]


def _without_text(picture: bytes, texts: list[bytes]) -> bytes:
    first, *rest = [chunk for chunk in _chunks(picture) if chunk[4:8] not in (b"tEXt", b"iTXt", b"zTXt")]
    return picture[:8] + first + b"".join([*texts, *rest])


def _hint_everywhere(root: Path) -> None:
    lines = read_lines(root)
    for line in lines:
        if line["prompt"] is not None:
            line["prompt"] += "Submit 2003."
    write_lines(root, lines)
    for path in layout.EVALUATIONS:
        if (root / path).exists():
            edit_json(root, path, _hint)


def _hint(value: Any) -> None:
    for episode in value["episodes"]:
        episode["turns"][0]["prompt"] += "Submit 2003."


def _finer(root: Path) -> None:
    """State another learning rate, and scale the logged ones with it."""
    edit_json(
        root,
        layout.MANIFEST,
        lambda value: put("learning_rate", value=0.5 * value["configuration"]["learning_rate"])(value["configuration"]),
    )
    _rows(lambda row: "learning_rate" in row and row.update(learning_rate=row["learning_rate"] * 0.5))(root)


_E4 = "E4"
_NOTHING = "nothing"
_GREEDY = "E4 for its greedy part"
_BEFORE = "E4 for its greedy part, where the adapter that went in is at hand"
BELIEFS: tuple[Belief, ...] = (
    Belief(
        Operator(
            "believed: losses and gradient norms invented",
            "the loss falls",
            lines_edit(_lower_losses, layout.TRAINER_LOG),
        ),
        _NOTHING,
    ),
    Belief(
        Operator(
            "believed: divergence and entropy invented",
            "no drift",
            _rows(lambda row: "kl" in row and row.update(kl=0.0001)),
        ),
        _NOTHING,
    ),
    Belief(Operator("believed: another learning rate in settings and log", "another recipe", _finer), _NOTHING),
    Belief(
        Operator(
            "believed: a script's actions as the model's, after",
            "the headline rises",
            _script(layout.AFTER, "heuristic"),
        ),
        _GREEDY,
    ),
    Belief(
        Operator(
            "believed: a script's actions as the model's, before",
            "the difference grows",
            _script(layout.BEFORE, "do_nothing"),
        ),
        _BEFORE,
    ),
    Belief(
        Operator("believed: before and after exchanged whole", "a fall seems a rise", _exchange_evaluations), _GREEDY
    ),
    Belief(
        Operator(
            "believed: reasons written into a completion",
            "the model seems to reason",
            line_edit(lambda line: line["raw_completion"] is not None and line["tool"] is not None, _reword),
        ),
        _NOTHING,
    ),
    Belief(
        Operator(
            "believed: silence told as a full completion",
            "the model seems cut off",
            line_edit(lambda line: line["ended_by"] == "no_call", _cut),
        ),
        _NOTHING,
    ),
    Belief(
        Operator(
            "believed: worst of a group replaced by a copy of its best", "the mean rises", lines_edit(_copy_sibling)
        ),
        _NOTHING,
    ),
    Belief(
        Operator(
            "believed: other weights under their own hash",
            "another adapter is delivered",
            _tensors(lambda value: (value * np.float32(1.5)).astype(value.dtype)),
        ),
        _E4,
    ),
    Belief(
        Operator("believed: the adapter that went in, rounded", "nothing was learned", _round_input),
        _GREEDY,
    ),
    Belief(
        Operator(
            "believed: another scale of the adapter",
            "another adapter is delivered",
            record_edit(put("lora_alpha", value=3), layout.ADAPTER_CONFIG),
        ),
        _E4,
    ),
    Belief(Operator("believed: a hint in every prompt", "the model is told the answer", _hint_everywhere), _GREEDY),
    Belief(
        Operator(
            "believed: other pixels under the same words", "the curve looks better", _repaint, ("pictures", "means")
        ),
        _NOTHING,
    ),
    Belief(
        Operator(
            "believed: hardware and packages",
            "another machine",
            record_edit(put("hardware", "cpu_count", value=96), layout.MANIFEST),
        ),
        _NOTHING,
    ),
)

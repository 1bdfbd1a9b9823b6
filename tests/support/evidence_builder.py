"""Small sound run directories for tests, played for real by scripted policies; and the edits of a forger.

`build_run` takes seconds because it draws the plots; tests copy what a session built once. `reseal` does what a careful
forger does after an edit: everything that can be computed again is computed again.
"""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from safetensors.numpy import save_file

from molforge_env import RULES_VERSION
from molforge_env.fingerprint import backend_fingerprint
from molforge_env.interface import TOOL_NAMES, prompt_text
from molforge_env.policies import find_policy
from molforge_env.seeding import stream
from molforge_env.suites import SCENARIO_IDS, SuiteName, resolve_scenario
from molforge_env.tools import ToolSession
from molforge_eval import layout
from molforge_eval.calls import call_tool
from molforge_eval.canonical import chain_of, chain_start, digest, file_bytes, line_bytes, plain, seal_of, sha256_hex
from molforge_eval.checks.plots import expected_rows
from molforge_eval.checks.tensors import digest_weights
from molforge_eval.endings import laboratory_ending
from molforge_eval.limits import DEFAULT_LIMITS
from molforge_eval.metrics_table import COLUMNS, row_of
from molforge_eval.plan import Limits, PlannedEpisode, plan_digest, standard_plan
from molforge_eval.play import run_evaluation
from molforge_eval.played import PlayedEpisode
from molforge_eval.records import (
    Checksums,
    Evaluation,
    EvaluationPlan,
    PolicyIdentity,
    RolloutLine,
    RunManifest,
    TrainerRow,
)
from molforge_eval.records.manifest import AdapterIdentity, Configuration, Hardware
from molforge_eval.report.plots import draw_plots, plots_of
from molforge_eval.run_directory import load
from molforge_eval.run_summary import compute_summary
from molforge_eval.scripted_player import ScriptedPlayer
from molforge_eval.sealing import RolloutChains, seal_run
from molforge_eval.summaries import average_final_score, summarise
from molforge_eval.training_prompts import PlannedPrompt, planned_prompts, prompts_of_batch
from molforge_eval.training_reward import conduct_of, training_reward

RUN_ID = "run-0123456789ab"
BASE_SHA256 = sha256_hex(b"base")
INPUT_ADAPTER_SHA256 = sha256_hex(b"input adapter")
TURN_LIMIT = 11
WEIGHTS = {
    "final_score": 1.0,
    "constraint": 0.3,
    "evidence": 0.3,
    "candidate": 0.2,
    "invalid_call": 0.01,
    "vetoed_call": 0.01,
    "after_end_call": 0.01,
    "unfinished": 0.1,
}
_RANK = 4
_ADAPTER_SEED = 7
_ANY_PROMPT = PlannedPrompt("official", SCENARIO_IDS[0], 1_000)


class Clock:
    """A clock that goes on by one second each time it is read."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


class SpeakingPlayer:
    """A scripted policy under the name of a model: its calls stand as raw completions, its adapter has a hash.

    Of two names with a plus sign between them the seeds take turns, as of a model whose samples differ.
    """

    def __init__(self, name: str, adapter_sha256: str | None) -> None:
        self._players = [ScriptedPlayer(word) for word in name.split("+")]
        self._adapter = adapter_sha256

    @property
    def identity(self) -> PolicyIdentity:
        return PolicyIdentity(
            kind="hf",
            name="tiny",
            base_model="tiny",
            base_model_sha256=BASE_SHA256,
            adapter=None if self._adapter is None else "adapter",
            adapter_sha256=self._adapter,
            tokenizer_sha256=sha256_hex(b"tokenizer"),
            chat_template_sha256=sha256_hex(b"template"),
            dtype="float32",
            adapter_merged=None if self._adapter is None else True,
        )

    def play(self, planned: Sequence[PlannedEpisode], plan: EvaluationPlan) -> Iterator[PlayedEpisode]:
        for played in self._play_in_turns(planned, plan):
            spoken = {step.turn: spell_call(step.tool, step.arguments) for step in played.steps}
            opening = played.turns[0].prompt
            turns = tuple(
                turn.model_copy(
                    update={
                        "prompt": spell_opening(opening) if turn.turn == 0 else turn.prompt,
                        "raw_completion": spoken.get(turn.turn, "I stop here."),
                        "prompt_tokens": 100 + 40 * turn.turn,
                        "completion_tokens": 12,
                        "prompt_ids_sha256": digest([turn.turn]),
                    }
                )
                for turn in played.turns
            )
            yield played._replace(
                turns=turns,
                prompt_tokens=turns[-1].prompt_tokens - 12 * (len(turns) - 1),
                completion_tokens=12 * len(turns),
                wall_time_seconds=0.05,
            )

    def _play_in_turns(self, planned: Sequence[PlannedEpisode], plan: EvaluationPlan) -> Iterator[PlayedEpisode]:
        for episode in planned:
            yield from self._players[episode.seed % len(self._players)].play([episode], plan)


def spell_call(tool: str, arguments: Mapping[str, Any]) -> str:
    """Write a call as the model would."""
    body = orjson.dumps({"name": tool, "arguments": dict(arguments)}).decode()
    return f"<tool_call>\n{body}\n</tool_call><|im_end|>"


def spell_opening(text: str) -> str:
    """Write the first message as the model reads it."""
    return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


def build_run(
    root: Path,
    *,
    before: str = "random_valid",
    after: str = "heuristic",
    seeds: int = 2,
    steps: int = 4,
    prompts: int = 2,
    generations: int = 3,
    plots: bool = True,
    settings: Mapping[str, Any] | None = None,
    suite: SuiteName = "official",
) -> Path:
    """Make a sound run directory.

    Args:
        root: The folder to make.
        before: Scripted policy of the before evaluation.
        after: Scripted policy of the after evaluation; two with a plus sign between them take turns.
        seeds: Sampled episodes a task.
        steps: Optimizer steps, each with a batch of training episodes.
        prompts: Groups of a batch.
        generations: Episodes of a group.
        plots: Draw the pictures, which takes most of the time.
        settings: Settings of the manifest in place of the usual ones.
        suite: Family of the evaluated tasks.
    """
    clock = Clock()
    root.mkdir(parents=True)
    (root / "logs").mkdir()
    started_at = clock()
    plan = standard_plan(run_id=RUN_ID, suite=suite, seeds=seeds, limits=Limits(256, 4096, TURN_LIMIT))
    write(root, layout.PLAN, file_bytes(plan))
    first = run_evaluation(plan, SpeakingPlayer(before, INPUT_ADAPTER_SHA256), "before training", RUN_ID, clock=clock)
    write(root, layout.BEFORE, file_bytes(first))
    configuration = _configuration(steps, prompts, generations, seeds).model_copy(update=settings or {})
    _train(root, configuration, prompts, clock)
    output = _write_adapter(root)
    second = run_evaluation(plan, SpeakingPlayer(after, output.sha256), "after training", RUN_ID, clock=clock)
    write(root, layout.AFTER, file_bytes(second))
    manifest = _manifest(configuration, plan, output, started_at=started_at, ended_at=clock())
    write(root, layout.MANIFEST, file_bytes(manifest))
    write(root, layout.SUMMARY, file_bytes(compute_summary(load(root))))
    if plots:
        draw_plots(root)
    seal_run(root)
    return root


def write(root: Path, path: str, data: bytes) -> None:
    """Write a file of the run, folders included."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)


def read_json(root: Path, path: str) -> Any:
    """Read a JSON file of the run."""
    return orjson.loads((root / path).read_bytes())


def edit_json(root: Path, path: str, change: Callable[[Any], None]) -> None:
    """Change the value of a JSON file in place."""
    value = read_json(root, path)
    change(value)
    write(root, path, file_bytes(value))


def read_lines(root: Path, path: str = layout.ROLLOUTS) -> list[dict[str, Any]]:
    """Read a log."""
    return [orjson.loads(line) for line in (root / path).read_bytes().splitlines()]


def write_lines(root: Path, lines: Sequence[Mapping[str, Any]], path: str = layout.ROLLOUTS) -> None:
    """Write a log, chains as they are."""
    write(root, path, b"".join(line_bytes(dict(line)) for line in lines))


def edit_line(root: Path, number: int, path: str = layout.ROLLOUTS, **changes: Any) -> None:
    """Change keys of one line, counted from 1."""
    lines = read_lines(root, path)
    lines[number - 1] |= changes
    write_lines(root, lines, path)


def drop_line(root: Path, number: int, path: str = layout.ROLLOUTS) -> None:
    """Delete one line, counted from 1; -1 is the last."""
    lines = read_lines(root, path)
    del lines[number if number < 0 else number - 1]
    write_lines(root, lines, path)


def reseal(root: Path) -> Checksums:
    """Compute again whatever a forger can: chains, seals, table, summaries, headline, plots, checksums."""
    _chain_again(root)
    _summarise_again(root)
    run = load(root)
    if run.manifest is not None:
        write(root, layout.SUMMARY, file_bytes(compute_summary(run)))
    if (root / layout.PLOT_DATA).exists():
        _sign_plots_again(root)
    return seal_run(root)


def _sign_plots_again(root: Path) -> None:
    """Put the new points under the old pictures, as a forger in a hurry does: pixels are checked by nobody."""
    run = load(root)
    rows = expected_rows(run)
    words = {plot.record.path: plot.record.caption for plot in plots_of(run)}
    table = read_json(root, layout.PLOT_DATA)
    for record in table["plots"]:
        record["caption"] = words.get(record["path"], record["caption"])
        record["rows"] = [list(row) for row in rows.get(record["path"], [])]
        own = digest([record["columns"], record["rows"]])
        picture = root / record["path"]
        if picture.exists():
            picture.write_bytes(with_text(picture.read_bytes(), "molforge:data_sha256", own))
        record["data_sha256"] = own
    write(root, layout.PLOT_DATA, file_bytes(table))


def with_text(picture: bytes, key: str, value: str) -> bytes:
    """Replace the value of a text chunk of a PNG by one of the same length."""
    start = picture.index(b"tEXt" + key.encode() + b"\0")
    length = int.from_bytes(picture[start - 4 : start], "big")
    body = b"tEXt" + key.encode() + b"\0" + value.encode()
    assert len(body) == length + 4
    return picture[:start] + body + zlib.crc32(body).to_bytes(4, "big") + picture[start + 8 + length :]


def _chain_again(root: Path) -> None:
    last: dict[str, str] = {}
    lines = read_lines(root)
    for line in lines:
        previous = last.get(line["episode_id"]) or chain_start(line["run_id"], line["episode_id"])
        line["chain"] = last[line["episode_id"]] = chain_of(previous, line)
    write_lines(root, lines)
    _write_table(root, lines)


def _write_table(root: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(row_of(line) for line in lines)
    write(root, layout.METRICS_TABLE, written.getvalue().encode())


def _summarise_again(root: Path) -> None:
    for path in layout.EVALUATIONS:
        if not (root / path).exists():
            continue
        value = read_json(root, path)
        for episode in value["episodes"]:
            episode["seal"] = seal_of(episode)
        evaluation = Evaluation.model_validate(value)
        summaries = summarise(evaluation.plan, evaluation.episodes)
        honest = evaluation.model_copy(
            update={
                "summaries": summaries,
                "average_final_score": average_final_score(summaries),
                "plan_sha256": plan_digest(evaluation.plan),
            }
        )
        write(root, path, file_bytes(honest))


def _configuration(steps: int, prompts: int, generations: int, seeds: int) -> Configuration:
    return Configuration(
        preset="test",
        base_model="tiny",
        sft_adapter_path="adapter",
        run_name="built",
        output_root="runs",
        drive_output_dir=None,
        max_steps=steps,
        dataset_size=steps * prompts,
        num_generations=generations,
        batch_size=prompts * generations,
        gradient_accumulation=1,
        num_iterations=1,
        learning_rate=1e-3,
        lr_scheduler="constant",
        adam_beta2=0.99,
        max_grad_norm=1.0,
        beta=0.02,
        loss_type="dapo",
        temperature=1.0,
        top_p=1.0,
        top_k=0,
        max_completion_length=4096,
        max_new_tokens=256,
        turn_limit=TURN_LIMIT,
        seed=1,
        logging_steps=1,
        save_steps=0,
        run_before_eval=True,
        run_after_eval=True,
        eval_seeds=seeds,
        reward_mode="assay_gated",
        reward_weights=WEIGHTS,
        canonical_share=0.5,
        observation_length="full",
        dtype="float32",
        device="cpu",
    )


def _manifest(
    configuration: Configuration,
    plan: EvaluationPlan,
    output: AdapterIdentity,
    *,
    started_at: datetime,
    ended_at: datetime,
) -> RunManifest:
    return RunManifest(
        format_version=1,
        run_id=RUN_ID,
        run_name=configuration.run_name,
        product_version="0.1.0",
        rules_version=RULES_VERSION,
        script="molforge-train grpo",
        status="complete",
        status_reason=None,
        started_at=started_at,
        ended_at=ended_at,
        configuration=configuration,
        configuration_sources={"seed": "flag"},
        seeds={"training": 1},
        git_commit=None,
        git_commit_reason="no repository",
        packages={"trl": "1.16.0", "rdkit": backend_fingerprint().rdkit_version},
        hardware=Hardware(platform="Linux", machine="x86_64", cpu_count=2, memory_bytes=None, accelerator=None),
        backend=backend_fingerprint(),
        plan_sha256=plan_digest(plan),
        base_model_sha256=BASE_SHA256,
        input_adapter=AdapterIdentity(
            path="adapter",
            sha256=INPUT_ADAPTER_SHA256,
            parameters=output.parameters,
            tensors_sha256=sha256_hex(b"input tensors"),
        ),
        output_adapter=output,
        trainable_parameters=output.parameters,
        total_parameters=514_432,
        steps_completed=configuration.max_steps,
        training_seconds=_seconds_of(configuration.max_steps) + 1.0,
        non_finite_steps=0,
    )


def _train(root: Path, configuration: Configuration, prompts: int, clock: Clock) -> None:
    chains = RolloutChains()
    lines: list[RolloutLine] = []
    rows = []
    for step in range(configuration.max_steps):
        paid = []
        for prompt in range(prompts):
            for generation in range(configuration.num_generations):
                planned = prompts_of_batch(planned_prompts(configuration), step, prompts)[prompt]
                episode = train_episode(step, prompt, generation, clock, planned=planned)
                lines += [chains.seal(line) for line in episode]
                paid.append(episode[-1].training_reward or 0.0)
        rows.append(_trainer_row(step + 1, paid, clock))
    rows.append(
        TrainerRow(
            format_version=1,
            run_id=RUN_ID,
            type="summary",
            step=configuration.max_steps,
            time=clock(),
            elapsed_seconds=_seconds_of(configuration.max_steps),
            non_finite={},
            train_runtime=_seconds_of(configuration.max_steps),
            train_loss=sum(row.loss for row in rows) / len(rows),
        )
    )
    write_lines(root, [plain(line) for line in lines])
    write_lines(root, [plain(row) for row in rows], layout.TRAINER_LOG)
    _write_table(root, [plain(line) for line in lines])


def _seconds_of(steps: int) -> float:
    """A row a second, and never a training of less than a minute and a half."""
    return max(99.0, steps + 1.0)


def _trainer_row(step: int, paid: Sequence[float], clock: Clock) -> TrainerRow:
    return TrainerRow(
        format_version=1,
        run_id=RUN_ID,
        type="train",
        step=step,
        time=clock(),
        elapsed_seconds=float(step),
        non_finite={},
        loss=0.1 / step,
        grad_norm=0.5 + 0.1 * step,
        learning_rate=1e-3,
        reward=float(np.float32(sum(paid) / len(paid))),
        reward_std=float(np.std(paid, ddof=1)),
        frac_reward_zero_std=0.0,
        kl=0.001 * step,
    )


def train_episode(
    step: int,
    prompt: int,
    generation: int,
    clock: Clock,
    *,
    planned: PlannedPrompt = _ANY_PROMPT,
) -> list[RolloutLine]:
    """Play one training episode, not yet chained; the three of a group begin alike and go on differently."""
    suite, scenario_id, seed = planned
    scenario = resolve_scenario(suite=suite, scenario_id=scenario_id, seed=seed)
    session = ToolSession()
    opening = prompt_text() + session.start(scenario)
    policy = find_policy(("heuristic", "random_valid", "random_valid")[generation % 3])
    rng = stream(seed, "builder", generation)
    facts: dict[str, Any] = {
        "format_version": 1,
        "run_id": RUN_ID,
        "episode_id": f"step{step:05d}-prompt{prompt:02d}-{generation:02d}",
        "trainer_step": step,
        "generation": generation,
        "seed": seed,
        "scenario_id": scenario_id,
        "difficulty": scenario.difficulty,
        "scenario": None,
        "prompt": None,
        "reward_mode": "assay_gated",
        "source": "model",
        "chain": "0" * 64,
        "ended_by": None,
        "episode_score": None,
        "training_reward": None,
    }
    rows: list[dict[str, Any]] = []
    # Every fifth random player falls silent, so that a log has episodes without an end.
    silent_after = 3 if policy.is_random and (step + prompt + generation) % 5 == 0 else 99
    ended_by = "no_call"
    while not session.done and len(rows) < silent_after:
        tool, arguments = policy.act(session, rng)
        result = call_tool(session, tool, arguments)
        rows.append({**facts, **_call_row(len(rows), tool, result, session, clock)})
        if result.outcome is not None and result.outcome.done:
            ended_by = laboratory_ending(result.outcome)
    if not session.done:
        rows.append({**facts, **_silent_row(rows[-1], len(rows), session)})
    calls = [(row["status"], row["error_code"], row["governance_status"]) for row in rows]
    conduct = conduct_of(calls, done=session.done)
    rows[0] |= {"prompt": spell_opening(opening), "scenario": scenario}
    rows[-1] |= {
        "ended_by": ended_by,
        "episode_score": session.scores["final_score"] if session.done else 0.0,
        "training_reward": training_reward(conduct, session.scores or None, WEIGHTS),
    }
    return [RolloutLine.model_validate(row) for row in rows]


def _call_row(turn: int, tool: str, result: Any, session: ToolSession, clock: Clock) -> dict[str, Any]:
    outcome = result.outcome
    action = outcome.action
    return {
        "timestamp": clock(),
        "turn": turn,
        "step_index": session.step_count,
        "tool": tool,
        "action_type": tool if tool in TOOL_NAMES else "none",
        "acting_role": action.acting_role,
        "slot": action.slot,
        "fragment": action.fragment,
        "tool_name": action.tool_name,
        "arguments": result.arguments,
        "rationale": action.rationale,
        "reward": outcome.tool_reward,
        "transition_reward": outcome.reward,
        "done": outcome.done,
        "governance_status": outcome.governance_status,
        "vetoes": outcome.vetoes,
        "error_code": outcome.error_code,
        "remaining_budget": outcome.remaining_budget,
        "molecule": outcome.molecule,
        "observation_sha256": outcome.observation_sha256,
        "final_score": outcome.scores.get("final_score"),
        "submission_score": outcome.scores.get("submission_score"),
        "progress_score": outcome.scores.get("progress_score"),
        "summary": outcome.summary,
        "raw_completion": spell_call(tool, result.arguments),
        "status": result.status,
    }


def _silent_row(last: Mapping[str, Any], turn: int, session: ToolSession) -> dict[str, Any]:
    silent = ("tool", "acting_role", "slot", "fragment", "tool_name", "rationale", "reward", "transition_reward")
    unknown = ("governance_status", "observation_sha256", "final_score", "submission_score", "progress_score")
    return {
        **dict.fromkeys((*silent, *unknown)),
        "timestamp": last["timestamp"],
        "turn": turn,
        "step_index": session.step_count,
        "action_type": "none",
        "arguments": {},
        "done": False,
        "vetoes": (),
        "error_code": "",
        "remaining_budget": last["remaining_budget"],
        "molecule": last["molecule"],
        "summary": "",
        "raw_completion": "I stop here.<|im_end|>",
        "status": "ok",
    }


def tensors_of(root: Path) -> str | None:
    """Return the digest of the tensors in a run as they are now; `None` when they cannot be read."""
    return digest_weights(root / layout.ADAPTER_WEIGHTS, DEFAULT_LIMITS).sha256


def _write_adapter(root: Path) -> AdapterIdentity:
    rng = np.random.default_rng(_ADAPTER_SEED)
    tensors: dict[str, np.ndarray] = {}
    for layer in range(2):
        name = f"base_model.model.model.layers.{layer}.self_attn.q_proj"
        tensors[f"{name}.lora_A.weight"] = rng.normal(size=(_RANK, 16)).astype(np.float32)
        tensors[f"{name}.lora_B.weight"] = rng.normal(size=(16, _RANK)).astype(np.float32)
    folder = root / layout.ADAPTER_FOLDER
    folder.mkdir()
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    settings = {
        "peft_type": "LORA",
        "r": _RANK,
        "lora_alpha": 8,
        "target_modules": ["q_proj"],
        "base_model_name_or_path": "tiny",
        "a_key_of_another_version": True,
    }
    write(root, layout.ADAPTER_CONFIG, file_bytes(settings))
    data = (folder / "adapter_model.safetensors").read_bytes()
    count = sum(tensor.size for tensor in tensors.values())
    return AdapterIdentity(
        path=layout.ADAPTER_FOLDER,
        sha256=sha256_hex(data),
        parameters=count,
        tensors_sha256=tensors_of(root),
    )

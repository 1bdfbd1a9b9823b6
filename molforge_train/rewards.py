"""What the trainer pays for: one reward function that reads the environment instances of a batch.

The formula is `molforge_eval.training_reward`, so replay can compute it again. Each part is logged by its name, and the
strict score of the same episodes beside it: a reward that rises while the score does not can be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum
from statistics import fmean
from typing import Any, NamedTuple

from molforge_env.errors import MolForgeError
from molforge_eval.records.manifest import Configuration
from molforge_eval.training_reward import (
    GRADERS,
    PENALTIES,
    STEPS,
    EpisodeConduct,
    conduct_of,
    phase_at,
    training_reward,
)
from molforge_train.progress import BatchFigures
from molforge_train.ranks import ALONE, Ranks
from molforge_train.recording import Paid, RolloutLog
from molforge_train.rollout import ChatForm, HostLimits, Identity, Message, Rollout, read_rollout
from molforge_train.tool_environment import PlayedEnvironment
from molforge_train.watch import BatchSigns, SignalWatch

MOST_BROKEN = 0.25
"""Share of a batch that may break in the environment before the run is stopped."""

LogMetric = Callable[[str, float], None]


class EnvironmentBrokenError(MolForgeError):
    """Too many episodes of a batch failed in the environment, not in the model."""


class Judged(NamedTuple):
    """An episode, what it was paid, and what for."""

    rollout: Rollout
    paid: Paid
    conduct: EpisodeConduct


class EpisodeReward:
    """Pays and records the episodes of each batch; `figures` tells of the last one."""

    # The host names the columns of its log after the function.
    __name__ = "episode_reward"

    def __init__(
        self,
        configuration: Configuration,
        form: ChatForm,
        log: RolloutLog | None,
        watch: SignalWatch | None = None,
        *,
        ranks: Ranks = ALONE,
    ) -> None:
        """Pay by the configuration's weights.

        Args:
            configuration: Weights and limits.
            form: The model's way to spell a conversation.
            log: Gets the lines of each batch before it is paid; `None` in a process that does not write.
            watch: Told what each batch says about learning.
            ranks: The processes that share a batch, each whole groups of it.
        """
        self._configuration = configuration
        self._is_paid_by_step = any(
            STEPS in weights
            for weights in [configuration.reward_weights, *(p.reward_weights for p in configuration.reward_phases)]
        )
        self._group = configuration.num_generations
        self._limits = HostLimits(configuration.turn_limit, configuration.max_completion_length)
        self._form = form
        self._log = log
        self._watch = watch
        self._ranks = ranks
        self.figures: BatchFigures | None = None

    def __call__(
        self,
        *,
        prompts: Sequence[Sequence[Message]],
        completions: Sequence[Sequence[Message]],
        completion_ids: Sequence[Sequence[int]],
        environments: Sequence[PlayedEnvironment],
        trainer_state: Any,
        log_metric: LogMetric,
        **_columns: Any,
    ) -> list[float | None]:
        """Pay this process's share of a batch: group after group, as the host lays it out.

        Returns:
            One reward an episode; `None` where the environment broke.

        Raises:
            EnvironmentBrokenError: More episodes broke than may.
            UsageError: The chat template's answers cannot be found in a completion.
        """
        firsts = [self._form.prompt_ids(messages[-1]["content"]) for messages in prompts[:: self._group]]
        weights = phase_at(self._configuration, trainer_state.global_step).reward_weights
        anti_farming = self._configuration.anti_farming
        own = []
        for place, environment in enumerate(environments):
            index, generation = divmod(place, self._group)
            ids = firsts[index]
            prompt = self._form.decode(ids)
            number = self._ranks.rank * len(firsts) + index
            identity = Identity(trainer_state.global_step, number, generation, ids, prompt)
            rollout = read_rollout(
                identity,
                completions[place],
                completion_ids[place],
                environment.played,
                form=self._form,
                limits=self._limits,
            )
            own.append(judge(rollout, weights, anti_farming=anti_farming))
        judged = [entry for part in self._ranks.gather(own) for entry in part]
        if self._log is not None:
            self._log.write((entry.rollout, entry.paid) for entry in judged)
        # Every process reports the whole batch: the host's mean over them is then the mean of the episodes.
        self._report(judged, weights, log_metric)
        return [entry.paid.reward for entry in own]

    def _report(self, judged: Sequence[Judged], weights: Mapping[str, float], log_metric: LogMetric) -> None:
        counted = [entry for entry in judged if entry.paid.score is not None]
        broken = len(judged) - len(counted)
        if broken > MOST_BROKEN * len(judged):
            raise EnvironmentBrokenError(
                f"{broken} of {len(judged)} episodes of a batch broke in the environment",
                where=f"training step {judged[0].rollout.identity.trainer_step}",
                mend="Read the env_error lines of logs/openenv_tool_rollouts.jsonl and mend the environment.",
            )
        means = batch_means(counted, weights, steps=self._is_paid_by_step)
        for name, value in means.items():
            log_metric(name, value)
        calls = len([made for entry in judged for made in entry.rollout.made])
        endings = [entry.rollout.ending.ended_by for entry in judged]
        self.figures = BatchFigures(
            reward=fmean(entry.paid.reward or 0.0 for entry in counted),
            strict_score=means["strict_score"],
            submit_rate=means["submit_rate"],
            veto_rate=fsum(entry.conduct.vetoed_calls for entry in judged) / max(1, calls),
            no_call_rate=endings.count("no_call") / len(endings),
        )
        if self._watch is not None:
            pay = [entry.paid.reward for entry in judged]
            groups = [pay[start : start + self._group] for start in range(0, len(pay), self._group)]
            signs = BatchSigns(groups, calls, endings.count("length_limit"), len(judged))
            self._watch.see(signs, judged[0].rollout.identity.trainer_step)


def judge(rollout: Rollout, weights: Mapping[str, float], *, anti_farming: bool = False) -> Judged:
    """Score and pay one episode; an episode that the model left unfinished scores 0.0."""
    calls = (entry.call.judged for entry in rollout.made)
    conduct = conduct_of(calls, done=bool(rollout.scores), anti_farming=anti_farming)
    if rollout.ending.ended_by == "env_error":
        return Judged(rollout, Paid(None, None), conduct)
    score = rollout.scores["final_score"] if conduct.done else 0.0
    return Judged(rollout, Paid(score, training_reward(conduct, rollout.scores, weights)), conduct)


def batch_means(counted: Sequence[Judged], weights: Mapping[str, float], *, steps: bool = False) -> dict[str, float]:
    """Average score, endings and each part of the reward over the episodes that count.

    Args:
        counted: At least one episode, none broken.
        weights: Of the reward's parts.
        steps: Tell the part of the steps too; a run that never pays it has no such column.
    """
    means = {
        "strict_score": fmean(entry.paid.score or 0.0 for entry in counted),
        "submit_rate": fmean(entry.rollout.ending.ended_by == "submit" for entry in counted),
        "unfinished_rate": fmean(not entry.conduct.done for entry in counted),
    }
    for part, grader in GRADERS.items():
        weight = weights.get(part, 0.0)
        means[f"reward_part/{part}"] = fmean(weight * entry.rollout.scores.get(grader, 0.0) for entry in counted)
    for part in PENALTIES:
        weight = weights.get(part, 0.0)
        means[f"reward_part/{part}"] = fmean(0.0 - weight * _penalised(part, entry.conduct) for entry in counted)
    if steps:
        weight = weights.get(STEPS, 0.0)
        means[f"reward_part/{STEPS}"] = fmean(weight * entry.conduct.step_rewards for entry in counted)
    return means


def _penalised(part: str, conduct: EpisodeConduct) -> int:
    counts = {
        "invalid_call": conduct.invalid_calls,
        "vetoed_call": conduct.vetoed_calls,
        "after_end_call": conduct.after_end_calls,
        "unfinished": int(not conduct.done),
    }
    return counts[part]

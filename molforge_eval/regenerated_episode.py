"""One greedy episode of a record, played again by the model and compared token for token.

Up to the first difference the model goes on from its own tokens, so equal turns are its own play. At a difference the
record's tokens are put before the model, and its logits say how far its own choice lies above the recorded token. A gap
that rounding can make is told, and the episode goes on from the recorded token; at a wider one it ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from molforge_env.seeding import stream
from molforge_env.suites import resolve_scenario
from molforge_eval.canonical import digest
from molforge_eval.catalogue import finding, seen
from molforge_eval.chat_form import TokenizerForm
from molforge_eval.dialogue import Dialogue
from molforge_eval.findings import Finding
from molforge_eval.lock_step import LockStep, Turn, weigh_next
from molforge_eval.model_loading import Loaded
from molforge_eval.model_policy import chat_form, pad_id, stop_ids
from molforge_eval.records.evaluation import Decoding, EpisodeRecord, EvaluationPlan, TurnRecord

TOLERANCES = {"float64": 1e-6, "float32": 1e-3, "float16": 0.1, "bfloat16": 0.5}
"""Gaps between two logits that another machine's rounding can make, by precision; docs/decisions/009 measures them."""
_CONTEXT_CHARACTERS = 24
_CUT_CHARACTER = "\ufffd"


class Speaker(NamedTuple):
    """A loaded model that speaks in one form."""

    loaded: Loaded
    form: TokenizerForm
    stop_ids: frozenset[int]
    tolerance: float

    def begin(self) -> LockStep:
        """Start from an empty context."""
        return LockStep(self.loaded.model, stop_ids=self.stop_ids, pad_id=pad_id(self.loaded.tokenizer), rows=1)


class EpisodeTask(NamedTuple):
    """A recorded episode and where it stands."""

    path: str
    number: int
    """Place in the file's list of episodes."""
    episode: EpisodeRecord
    plan: EvaluationPlan
    decoding: Decoding
    is_own_wording: bool
    """The run was made with this product version, whose texts must be the same to the letter."""

    def wrong(self, code: str, what: str, key: str) -> Finding:
        """Make a finding at a key of the record."""
        place = f"/episodes/{self.number}{key}"
        return finding(code, what, file=self.path, pointer=place, episode=self.episode.episode_id)


class Split(NamedTuple):
    """Where the model leaves the recorded completion of a turn."""

    agreed: int
    """Tokens of the model that the record has too."""
    before: str
    """What they spell."""
    own: str
    """How the model goes on."""
    recorded: str
    """How the record goes on."""
    token: int | None
    """The record's token there; `None` where it ends."""
    gap: float | None
    """Logit of the model's choice minus that of the record's token; `None` where one of the two ends."""


class Regenerated(NamedTuple):
    """What playing one episode again gave."""

    findings: tuple[Finding, ...]
    turns: int
    """Turns that were compared whole."""
    tokens: int
    """Tokens that were compared."""
    near: int
    """Tokens at which rounding decided."""

    @property
    def is_whole(self) -> bool:
        """Every turn was played again, and none differed by more than rounding."""
        return all(item.code == "REGENERATION_NEAR" for item in self.findings)


def speaker_of(loaded: Loaded, plan: EvaluationPlan) -> Speaker:
    """Let a model speak with the tools of a plan.

    Raises:
        UsageError: The trainer does not know the calls of the model's chat template.
    """
    form = chat_form(loaded.model, loaded.tokenizer, plan.observation_length)
    return Speaker(loaded, form, stop_ids(loaded.model, loaded.tokenizer), TOLERANCES[loaded.dtype])


def regenerate_episode(task: EpisodeTask, speaker: Speaker) -> Regenerated:
    """Let the model play a recorded episode again, up to the first turn that rounding cannot explain."""
    episode = task.episode
    scenario = resolve_scenario(suite=episode.suite, scenario_id=episode.scenario_id, seed=episode.seed)
    dialogue = Dialogue(scenario, task.plan, task.decoding, speaker.form)
    play = _Play(task, speaker, dialogue)
    findings: list[Finding] = []
    for turn in episode.turns:
        found = list(play.take(turn))
        findings += found
        if any(item.code != "REGENERATION_NEAR" for item in found):
            return Regenerated(tuple(findings), play.turns, play.tokens, play.near)
    if episode.ended_by not in (dialogue.ended_by, "env_error"):
        ended = "goes on" if dialogue.ended_by is None else f"ends by {seen(dialogue.ended_by)}"
        what = f"the record ends by {seen(episode.ended_by)} after {len(episode.turns)} turns, played again it {ended}"
        findings.append(task.wrong("REGENERATION_DIFFERS", what, "/ended_by"))
    return Regenerated(tuple(findings), play.turns, play.tokens, play.near)


class _Play:
    """An episode in play beside its record."""

    __slots__ = ("_dialogue", "_model", "_speaker", "_task", "near", "tokens", "turns")

    def __init__(self, task: EpisodeTask, speaker: Speaker, dialogue: Dialogue) -> None:
        self._task = task
        self._speaker = speaker
        self._dialogue = dialogue
        # `None` where the model has to read the whole context, because the record's tokens are not its own.
        self._model: LockStep | None = None
        self.turns = self.tokens = self.near = 0

    def take(self, turn: TurnRecord) -> Iterator[Finding]:
        """Play one turn; after a finding that is not of a near choice the episode cannot go on."""
        dialogue, task, place = self._dialogue, self._task, f"/turns/{turn.turn}"
        if dialogue.ended_by is not None:
            what = f"turn {turn.turn}: played again, the episode has ended before it by {seen(dialogue.ended_by)}"
            yield task.wrong("REGENERATION_DIFFERS", what, place)
            return
        if digest(dialogue.context) != turn.prompt_ids_sha256:
            code = "REGENERATION_DIFFERS" if task.is_own_wording else "REGENERATION_IMPOSSIBLE"
            tokens = len(dialogue.context)
            what = f"turn {turn.turn}: the {tokens} tokens that the model is given are not the recorded ones"
            yield task.wrong(code, what, f"{place}/prompt_ids_sha256")
            return
        ids: list[int] = []
        while True:
            own = self._write(turn, ids)
            split = self._split(turn, ids, own)
            if split is None:
                ids += own
                break
            is_near = split.gap is not None and split.gap < self._speaker.tolerance
            code = "REGENERATION_NEAR" if is_near else "REGENERATION_DIFFERS"
            yield task.wrong(code, _told(turn, split), f"{place}/raw_completion")
            if not is_near or split.token is None:
                return
            self.near += 1
            ids += [*own[: split.agreed], split.token]
            self._model = None
            if split.token in self._speaker.stop_ids or len(ids) >= dialogue.room:
                break
        unlike = self._finish(turn, ids)
        if unlike is None:
            self.turns += 1
        else:
            key, what = unlike
            yield task.wrong("REGENERATION_DIFFERS", f"turn {turn.turn}: {what}", f"{place}/{key}")

    def _write(self, turn: TurnRecord, ids: Sequence[int]) -> list[int]:
        """Let the model go on after the tokens of this turn; more than the record could spell is not asked for."""
        dialogue, episode = self._dialogue, self._task.episode
        new = dialogue.new_ids
        if self._model is None:
            self._model = self._speaker.begin()
            new = [*dialogue.context, *ids]
        room = min(dialogue.room - len(ids), len(turn.raw_completion.encode()) + 1)
        draws = stream(episode.seed, "sampling", episode.suite, episode.scenario_id, turn.turn)
        return self._model.advance([Turn(new, room, self._task.decoding, draws)])[0]

    def _split(self, turn: TurnRecord, ids: Sequence[int], own: Sequence[int]) -> Split | None:
        """Find the first token of the model's own that the record has not; `None` when the texts are equal."""
        form, raw = self._speaker.form, turn.raw_completion
        if form.decode([*ids, *own]) == raw:
            return None
        agreed, before = 0, form.decode(ids)
        for count in range(1, len(own) + 1):
            text = form.decode([*ids, *own[:count]])
            # A character may be cut in the midst: its bytes come with the next token.
            if not raw.startswith(text.rstrip(_CUT_CHARACTER)):
                break
            agreed, before = count, text.rstrip(_CUT_CHARACTER)
        token = self._recorded_token([*ids, *own[:agreed]], raw, raw[len(before) :])
        gap = None
        if token is not None and agreed < len(own) and token != own[agreed]:
            weights = weigh_next(self._speaker.loaded.model, [*self._dialogue.context, *ids, *own[:agreed]])
            gap = weights[own[agreed]] - weights[token]
        return Split(agreed, before, form.decode(own[agreed:]), raw[len(before) :], token, gap)

    def _recorded_token(self, agreed: Sequence[int], raw: str, rest: str) -> int | None:
        """Tell the record's token where the model leaves it, from the text, which is all that a record has."""
        tokenizer = self._speaker.loaded.tokenizer
        ids: list[int] = tokenizer.encode(raw, add_special_tokens=False)
        if ids[: len(agreed)] != list(agreed):
            ids = [*agreed, *tokenizer.encode(rest, add_special_tokens=False)]
        return ids[len(agreed)] if len(ids) > len(agreed) else None

    def _finish(self, turn: TurnRecord, ids: Sequence[int]) -> tuple[str, str] | None:
        """Let the laboratory answer the turn, and name the first key of the record that is not as it was played."""
        dialogue, episode = self._dialogue, self._task.episode
        if self._speaker.form.decode(ids) != turn.raw_completion:
            return "raw_completion", "the record goes on where the completion ends"
        if len(ids) != turn.completion_tokens:
            return "completion_tokens", f"completion_tokens is {turn.completion_tokens}, played again it is {len(ids)}"
        done = len(dialogue.steps)
        dialogue.take(ids)
        self.tokens += len(ids)
        if episode.ended_by == "env_error":
            return None
        recorded = [(step.tool, step.arguments) for step in episode.steps if step.turn == turn.turn]
        played = [(step.tool, step.arguments) for step in dialogue.steps[done:]]
        if recorded == played:
            return None
        return "raw_completion", f"the record plays {seen(recorded)}, the model's own words are {seen(played)}"


def _told(turn: TurnRecord, split: Split) -> str:
    """Say where the model leaves the record, and how far."""
    tail = split.before[-_CONTEXT_CHARACTERS:]
    after = f"after {seen(tail)} " if tail else ""
    record = f"writes {seen(split.recorded)}" if split.recorded else "ends"
    model = f"writes {seen(split.own)}" if split.own else "ends"
    gap = "no gap can be told"
    if split.gap is not None and math.isfinite(split.gap):
        gap = f"its choice lies {split.gap:.3g} above the recorded token in the logits"
    return f"turn {turn.turn}: {after}the record {record}, the model {model}; {gap}"

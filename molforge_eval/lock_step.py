"""Many episodes that take their turns together on one model, each with its own draws.

A row's tokens depend on its own ids and its own stream, never on its neighbours: padding is masked, positions are the
row's own, and a draw is a uniform number of the row laid on its own cumulative probabilities. What is left of the
neighbours is rounding, which double precision pushes below anything that a draw could meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from molforge_eval.records.evaluation import Decoding

if TYPE_CHECKING:
    from torch import Tensor


class Turn(NamedTuple):
    """What one row is asked to do."""

    new_ids: Sequence[int]
    """Ids that the row has not read yet."""
    room: int
    """Tokens that it may write, at least one."""
    decoding: Decoding
    draws: Random
    """Untouched by greedy decoding."""


class LockStep:
    """A batch of rows on one model.

    Args:
        model: A causal language model of transformers, in evaluation mode.
        stop_ids: Tokens that end a turn.
        pad_id: Any token; it is masked wherever it stands.
        rows: Number of rows.
    """

    def __init__(self, model: Any, *, stop_ids: frozenset[int], pad_id: int, rows: int) -> None:
        self._model = model
        self._stop_ids = stop_ids
        self._pad_id = pad_id
        self._keeps_cache = can_keep_cache(model.config)
        # Ids that are in the cache, and ids that a row has and the cache has not.
        self._read: list[list[int]] = [[] for _ in range(rows)]
        self._unread: list[list[int]] = [[] for _ in range(rows)]
        self._cache: Any = None
        self._mask: Tensor | None = None

    def advance(self, turns: Sequence[Turn]) -> list[list[int]]:
        """Let every row read its new ids and write until it stops or its room is used.

        Returns:
            What each row wrote, the stop token included.
        """
        import torch

        for row, turn in enumerate(turns):
            self._unread[row] += turn.new_ids
        if not self._keeps_cache:
            self._forget()
        written: list[list[int]] = [[] for _ in turns]
        live = list(range(len(turns)))
        with torch.inference_mode():
            while live:
                logits = self._feed(live)
                for row, token in zip(live, choose_tokens(logits, [turns[row] for row in live]), strict=True):
                    written[row].append(token)
                    # The row's own last token is read with whatever comes next.
                    self._unread[row].append(token)
                live = [
                    row
                    for row in live
                    if written[row][-1] not in self._stop_ids and len(written[row]) < turns[row].room
                ]
        return written

    def keep(self, rows: Sequence[int]) -> None:
        """Drop every other row."""
        import torch

        if len(rows) == len(self._read):
            return
        self._read = [self._read[row] for row in rows]
        self._unread = [self._unread[row] for row in rows]
        if not self._keeps_cache:
            # The cache of a recurrent layer cannot be cut to some rows; it is not read again anyway.
            self._forget()
        elif self._mask is not None and rows:
            index = torch.tensor(list(rows), device=self._mask.device)
            self._mask = self._mask[index]
            self._cache.batch_select_indices(index)

    def _feed(self, live: Sequence[int]) -> Tensor:
        """Put the unread ids of some rows into the cache; the others get padding.

        Returns:
            Logits of the next token, shape (live rows, vocabulary).
        """
        import torch
        from transformers import DynamicCache

        if self._cache is None:
            self._cache = DynamicCache(config=self._model.config)
        rows = len(self._read)
        width = max(len(self._unread[row]) for row in live)
        ids = torch.full((rows, width), self._pad_id, dtype=torch.long)
        seen = torch.zeros((rows, width), dtype=torch.long)
        places = torch.zeros((rows, width), dtype=torch.long)
        for row in live:
            unread = self._unread[row]
            begin = width - len(unread)
            ids[row, begin:] = torch.tensor(unread)
            seen[row, begin:] = 1
            # A row counts its own ids only, so padding anywhere moves no position.
            places[row, begin:] = torch.arange(len(self._read[row]), len(self._read[row]) + len(unread))
            self._read[row] += unread
            self._unread[row] = []
        device = self._model.device
        block = seen.to(device)
        self._mask = block if self._mask is None else torch.cat([self._mask, block], dim=1)
        answer = self._model(
            input_ids=ids.to(device),
            attention_mask=self._mask,
            position_ids=places.to(device),
            cache=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        last: Tensor = answer.logits[list(live), -1]
        return last

    def _forget(self) -> None:
        self._unread = [read + unread for read, unread in zip(self._read, self._unread, strict=True)]
        self._read = [[] for _ in self._read]
        self._cache, self._mask = None, None


def weigh_next(model: Any, ids: Sequence[int]) -> list[float]:
    """Read a context afresh and return the logits of the next token, shape (vocabulary,)."""
    import torch

    with torch.inference_mode():
        answer = model(input_ids=torch.tensor([list(ids)], device=model.device), use_cache=False, logits_to_keep=1)
    weights: list[float] = answer.logits[0, -1].tolist()
    return weights


def can_keep_cache(config: Any) -> bool:
    """Tell whether a cache with padding between turns means the same as a fresh one.

    Full attention does not care where padding stands. A sliding window counts cache places, and a recurrent layer
    reads padding: such a model reads its whole context again in every turn.
    """
    kinds = getattr(config.get_text_config(), "layer_types", None)
    if kinds is not None:
        return set(kinds) == {"full_attention"}
    return getattr(config, "sliding_window", None) is None and getattr(config, "model_type", "") in _PLAIN_ATTENTION


_PLAIN_ATTENTION = frozenset({"llama", "qwen2", "qwen3"})
"""Families whose configuration may leave the kinds of their layers out."""


def choose_tokens(logits: Tensor, turns: Sequence[Turn]) -> list[int]:
    """Choose one token a row.

    A sampled row takes one uniform number from its own stream and lays it on its cumulative probabilities, in order of
    token id. Temperature comes first, then `top_k`, then `top_p`, as in the host trainer.

    Args:
        logits: Shape (rows, vocabulary).
        turns: One a row.
    """
    chosen: list[int] = logits.argmax(dim=-1).tolist()
    groups: dict[tuple[float, int, float], list[int]] = {}
    for row, turn in enumerate(turns):
        decoding = turn.decoding
        if decoding.method == "sampled":
            groups.setdefault((decoding.temperature, decoding.top_k, decoding.top_p), []).append(row)
    for (temperature, top_k, top_p), rows in groups.items():
        uniform = [turns[row].draws.random() for row in rows]
        weights = _probabilities(logits[rows], temperature=temperature, top_k=top_k, top_p=top_p)
        for row, token in zip(rows, _invert(weights, uniform), strict=True):
            chosen[row] = token
    return chosen


def _probabilities(logits: Tensor, *, temperature: float, top_k: int, top_p: float) -> Tensor:
    import torch

    # Apple's accelerator has no doubles.
    scores = (logits.cpu() if logits.device.type == "mps" else logits).to(torch.float64) / temperature
    if 0 < top_k < scores.shape[-1]:
        least = scores.topk(top_k, dim=-1).values[..., -1:]
        scores = scores.masked_fill(scores < least, float("-inf"))
    if top_p < 1.0:
        ordered, order = scores.sort(dim=-1, descending=False, stable=True)
        tail = ordered.softmax(dim=-1).cumsum(dim=-1) <= 1.0 - top_p
        tail[..., -1] = False
        scores = scores.masked_fill(tail.scatter(-1, order, tail), float("-inf"))
    return scores.softmax(dim=-1)


def _invert(weights: Tensor, uniform: Sequence[float]) -> list[int]:
    import torch

    sums = weights.cumsum(dim=-1)
    # Scaled by the last sum, which rounding leaves a little off 1; `right` skips tokens of no weight.
    targets = torch.tensor(uniform, dtype=sums.dtype, device=sums.device)[:, None] * sums[:, -1:]
    found = torch.searchsorted(sums, targets, right=True)[:, 0]
    picked: list[int] = found.clamp(max=sums.shape[-1] - 1).tolist()
    return picked

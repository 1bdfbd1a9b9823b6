"""The edit of a forger who has the model: greedy episodes that it never played, in its own way to speak."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from model_forgeries import planned_greedy, play_forced, play_script, put_episodes, read_evaluation, speaker_for

from evidence_cases.registry import edit
from molforge_eval import layout


@edit
def model_play(
    root: Path,
    *,
    episode: int,
    file: str = layout.AFTER,
    script: str | None = None,
    forced: Sequence[tuple[int, int, str]] = (),
) -> None:
    """Play a greedy episode anew: by a script, or by the model with tokens chosen for it (turn, place, text)."""
    evaluation = read_evaluation(root, file)
    planned = list(planned_greedy(evaluation))[episode]
    speaker = speaker_for(root, file, evaluation.policy.dtype or "auto")
    if script is not None:
        played = play_script(script, planned, evaluation.plan, speaker)
    else:
        encode = speaker.loaded.tokenizer.encode
        chosen = {(turn, place): encode(text, add_special_tokens=False)[0] for turn, place, text in forced}
        played = play_forced(planned, evaluation.plan, speaker, chosen)
    put_episodes(root, [played], file)

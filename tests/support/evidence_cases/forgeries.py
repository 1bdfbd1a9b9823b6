"""Edits in several files at once, which a careful forger makes so that they agree, and what builders do to a run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from evidence_builder import edit_json, read_json, read_lines, tensors_of, with_text, write_lines
from packet_builder import attachments_of

from evidence_cases.registry import edit
from evidence_cases.seals import SEALS
from molforge_eval import layout
from molforge_eval.canonical import digest, sha256_hex
from molforge_eval.report.build import PacketOptions, build_packet
from molforge_eval.report.plots import draw_plots


@edit
def plan_everywhere(root: Path) -> None:
    """Take the plan file as it is now into the manifest's digest and into both evaluations."""
    plan = read_json(root, layout.PLAN)
    edit_json(root, layout.MANIFEST, lambda value: value.update(plan_sha256=digest(plan)))
    for path in layout.EVALUATIONS:
        if (root / path).exists():
            edit_json(root, path, lambda value: value.update(plan=plan, plan_sha256=digest(plan)))


@edit
def policy_everywhere(root: Path, *, files: Sequence[str] = layout.EVALUATIONS) -> None:
    """Let every episode carry the digest of its file's policy as that is now."""
    for path in files:
        edit_json(root, path, _name_policy)


def _name_policy(value: dict[str, Any]) -> None:
    for entry in value["episodes"]:
        entry["policy_sha256"] = digest(value["policy"])


@edit
def adapter_everywhere(root: Path, *, sha256: str | None = None) -> None:
    """Let manifest and after evaluation name the weights as they are now, or by another hash."""
    named = sha256 or sha256_hex((root / layout.ADAPTER_WEIGHTS).read_bytes())
    identity = {"sha256": named, "tensors_sha256": tensors_of(root)}
    edit_json(root, layout.MANIFEST, lambda value: value["output_adapter"].update(identity))
    edit_json(root, layout.AFTER, lambda value: value["policy"].update(adapter_sha256=named))
    policy_everywhere(root, files=[layout.AFTER])


@edit
def sample_copies(root: Path, *, seeds: int) -> None:
    """Plan more sampled seeds, and write the last episodes of each task once more for the new ones."""
    edit_json(root, layout.PLAN, lambda plan: plan["parts"][1].update(seeds=list(range(seeds))))
    plan_everywhere(root)
    edit_json(root, layout.MANIFEST, lambda value: value["configuration"].update(eval_seeds=seeds))
    for path in layout.EVALUATIONS:
        edit_json(root, path, lambda value: _copy_samples(value, seeds))


def _copy_samples(value: dict[str, Any], seeds: int) -> None:
    last = max(entry["seed"] for entry in value["episodes"])
    copied = []
    for entry in value["episodes"]:
        copied.append(entry)
        if entry["part"] == "sampled" and entry["seed"] == last:
            copied += [_as_of_seed(entry, seed) for seed in range(last + 1, seeds)]
    value["episodes"] = copied


def _as_of_seed(entry: dict[str, Any], seed: int) -> dict[str, Any]:
    scenario = {**entry["scenario"], "seed": None if entry["scenario"]["seed"] is None else seed}
    return {**entry, "episode_id": f"sampled:{entry['scenario_id']}:{seed}", "seed": seed, "scenario": scenario}


@edit
def shorten(root: Path, *, steps: int) -> None:
    """Make it a run of so many steps from the start."""
    _drop_after(root, steps, types=("train",))
    (last,) = (row for row in read_lines(root, layout.TRAINER_LOG) if row["type"] == "summary")
    losses = [row["loss"] for row in read_lines(root, layout.TRAINER_LOG) if row["type"] == "train"]
    ended = {"step": steps, "train_loss": reduce(add, losses) / len(losses)}
    write_lines(root, [*read_lines(root, layout.TRAINER_LOG)[:-1], last | ended], layout.TRAINER_LOG)
    edit_json(root, layout.MANIFEST, lambda value: value.update(steps_completed=steps))
    edit_json(root, layout.MANIFEST, lambda value: value["configuration"].update(max_steps=steps))


@edit
def interrupt(root: Path, *, steps: int) -> None:
    """Stop the run after a step as a signal does: no row and no episode after it, no after evaluation."""
    _drop_after(root, steps, types=("train", "summary"))
    (root / layout.AFTER).unlink()
    changes = {"status": "interrupted", "status_reason": "SIGTERM", "steps_completed": steps}
    edit_json(root, layout.MANIFEST, lambda value: value.update(changes))


def _drop_after(root: Path, steps: int, *, types: Sequence[str]) -> None:
    rows = read_lines(root, layout.TRAINER_LOG)
    kept = [row for row in rows if row["type"] not in types or (row["step"] <= steps and row["type"] == "train")]
    write_lines(root, kept, layout.TRAINER_LOG)
    write_lines(root, [line for line in read_lines(root) if line["trainer_step"] < steps])


@edit
def sign_plots(root: Path) -> None:
    """Let table and pictures carry the digests of the points as they are now."""

    def sign(table: dict[str, Any]) -> None:
        for record in table["plots"]:
            record["data_sha256"] = digest([record["columns"], record["rows"]])
            picture = root / record["path"]
            picture.write_bytes(with_text(picture.read_bytes(), "molforge:data_sha256", record["data_sha256"]))

    edit_json(root, layout.PLOT_DATA, sign)


@edit
def seal(root: Path, *, how: str = "all") -> None:
    """Seal in the middle of the edits: what comes after stays unsealed."""
    SEALS[how](root)


@edit
def draw(root: Path) -> None:
    """Draw the pictures again from the records as they are now."""
    draw_plots(root)


@edit
def packet(root: Path, *, html: bool = False, pdf: bool = False) -> None:
    """Build the packet of the run as it is now; its evidence alone unless a page is wanted."""
    if not (html or pdf):
        # Computed once for a seal: many cases take the evidence of one run.
        attachments_of(root)
        return
    build_packet(root, options=PacketOptions(html=html, pdf=pdf, replay=False, pack=False))

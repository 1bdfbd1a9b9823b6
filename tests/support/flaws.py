"""One flaw for each finding code: an edit of a sound run, how it is sealed again, and what must be found.

`seal` says what the forger does after the edit: nothing, hash the files again, or compute everything again.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import evidence_builder as builder
import numpy as np
import pikepdf
from evidence_builder import edit_json, edit_line, read_json, read_lines, reseal, write, write_lines
from packet_builder import attachments_of, packet_of
from safetensors.numpy import load_file, save_file

from molforge_eval import layout
from molforge_eval.canonical import digest, file_bytes, line_bytes, sha256_hex
from molforge_eval.limits import DEFAULT_LIMITS, Limits
from molforge_eval.report.build import PacketOptions, build_packet
from molforge_eval.sealing import seal_run

Seal = Literal["nothing", "hashes", "all"]
CARRIED = ("PACKET_CARRIES_LESS",)
"""What every packet PDF gives: it carries no adapter, no picture and no spreadsheet."""


class Flaw(NamedTuple):
    """An edit, and the codes that it must give and no others."""

    code: str
    edit: Callable[[Path], Path | None]
    """Changes the run in place, or returns another path to look at."""
    seal: Seal = "all"
    also: tuple[str, ...] = ()
    """Codes that cannot but come with it."""
    name: str = ""
    """Tells apart several flaws of one code."""
    limits: Limits = DEFAULT_LIMITS

    @property
    def title(self) -> str:
        """Name of the flaw in a test."""
        return f"{self.code}-{self.name}" if self.name else self.code


def apply(flaw: Flaw, root: Path) -> Path:
    """Make the flaw in a copy of a sound run; returns what is to be validated."""
    other = flaw.edit(root)
    if flaw.seal == "hashes":
        seal_run(root)
    elif flaw.seal == "all":
        reseal(root)
    return other or root


def episode(number: int, change: Callable[[dict[str, Any]], Any], path: str = layout.AFTER) -> Callable[[Path], None]:
    """Change one episode record of an evaluation."""
    return lambda root: edit_json(root, path, lambda value: change(value["episodes"][number]) and None)


def top(path: str, **changes: Any) -> Callable[[Path], None]:
    """Set keys at the top of a JSON file."""
    return lambda root: edit_json(root, path, lambda value: value.update(changes))


def deep(path: str, *steps: str | int, value: Any) -> Callable[[Path], None]:
    """Set one value somewhere in a JSON file."""

    def change(node: Any) -> None:
        for step in steps[:-1]:
            node = node[step]
        node[steps[-1]] = value

    return lambda root: edit_json(root, path, change)


def setting(key: str, value: Any) -> Callable[[Path], None]:
    """Set one setting of the manifest."""
    return deep(layout.MANIFEST, "configuration", key, value=value)


def line(number: int, path: str = layout.ROLLOUTS, **changes: Any) -> Callable[[Path], None]:
    """Set keys of one line of a log."""
    return lambda root: edit_line(root, number, path, **changes)


def every_line(path: str, change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Change every line of a log."""

    def edit(root: Path) -> None:
        lines = read_lines(root, path)
        for entry in lines:
            change(entry)
        write_lines(root, lines, path)

    return edit


def raw_line(number: int, spell: Callable[[bytes], bytes], path: str = layout.TRAINER_LOG) -> Callable[[Path], None]:
    """Change the bytes of one line of a log."""

    def edit(root: Path) -> None:
        lines = (root / path).read_bytes().splitlines(keepends=True)
        lines[number - 1] = spell(lines[number - 1])
        write(root, path, b"".join(lines))

    return edit


def replanned(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Change the plan wherever it stands, and take its digest into the manifest."""

    def edit(root: Path) -> None:
        edit_json(root, layout.PLAN, lambda plan: change(plan) and None)
        plan = read_json(root, layout.PLAN)
        top(layout.MANIFEST, plan_sha256=digest(plan))(root)
        for path in layout.EVALUATIONS:
            top(path, plan=plan)(root)

    return edit


def picked_seed(root: Path) -> None:
    """Keep the sampled episodes of one seed, the second, as if no other had been planned."""
    replanned(lambda plan: plan["parts"][1].update(seeds=[1]))(root)
    setting("eval_seeds", 1)(root)
    for path in layout.EVALUATIONS:
        edit_json(
            root,
            path,
            lambda value: value.update(
                episodes=[entry for entry in value["episodes"] if entry["part"] == "greedy" or entry["seed"] == 1]
            ),
        )


def in_bytes(path: str, old: bytes, new: bytes) -> Callable[[Path], None]:
    """Replace bytes of a file, which must be there."""

    def edit(root: Path) -> None:
        data = (root / path).read_bytes()
        assert old in data
        write(root, path, data.replace(old, new, 1))

    return edit


def file(path: str, data: bytes) -> Callable[[Path], None]:
    """Write a file."""
    return lambda root: write(root, path, data)


def gone(*paths: str) -> Callable[[Path], None]:
    """Delete files."""
    return lambda root: [(root / path).unlink() for path in paths] and None


def archived(*members: tuple[str | zipfile.ZipInfo, bytes]) -> Callable[[Path], Path]:
    """Pack the run by hand and put members beside it."""

    def edit(root: Path) -> Path:
        target = root.parent / "run.zip"
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(entry for entry in root.rglob("*") if entry.is_file()):
                archive.write(path, f"run/{path.relative_to(root)}")
            for name, data in members:
                archive.writestr(name, data)
        return target

    return edit


def drop_lines(*, where: Callable[[dict[str, Any]], bool], path: str = layout.ROLLOUTS) -> Callable[[Path], None]:
    """Delete the lines for which something holds."""
    return lambda root: write_lines(root, [entry for entry in read_lines(root, path) if not where(entry)], path)


def tensors(change: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray] | None]) -> Callable[[Path], None]:
    """Change the tensors of the adapter, and let manifest and evaluation name the new file."""

    def edit(root: Path) -> None:
        path = root / layout.ADAPTER_WEIGHTS
        values = load_file(path)
        changed = change(values)
        save_file(values if changed is None else changed, path)
        rename_adapter(root, sha256_hex(path.read_bytes()))

    return edit


def rename_adapter(root: Path, sha256: str) -> None:
    """Let manifest and after evaluation name other weights."""
    deep(layout.MANIFEST, "output_adapter", "sha256", value=sha256)(root)

    def rename(value: dict[str, Any]) -> None:
        value["policy"]["adapter_sha256"] = sha256
        for entry in value["episodes"]:
            entry["policy_sha256"] = digest(value["policy"])

    edit_json(root, layout.AFTER, rename)


def _header(data: bytes) -> Callable[[Path], None]:
    return file(layout.ADAPTER_WEIGHTS, data)


def _swap(root: Path) -> None:
    before, after = (root / layout.BEFORE).read_bytes(), (root / layout.AFTER).read_bytes()
    write(root, layout.BEFORE, after)
    write(root, layout.AFTER, before)


def _copy_before(root: Path) -> None:
    copied, after = read_json(root, layout.BEFORE), read_json(root, layout.AFTER)
    for key in ("label", "policy", "started_at", "ended_at"):
        copied[key] = after[key]
    for entry in copied["episodes"]:
        entry["policy_sha256"] = digest(copied["policy"])
    write(root, layout.AFTER, file_bytes(copied))


def _constant(root: Path) -> None:
    for path in layout.EVALUATIONS:
        for number in range(len(read_json(root, path)["episodes"])):
            episode(number, _score_half, path)(root)


def _score_half(entry: dict[str, Any]) -> None:
    if entry["scores"] is not None:
        entry["scores"]["final_score"] = entry["final_score"] = 0.5


def _break_all(entry: dict[str, Any]) -> None:
    entry.update(ended_by="env_error", error="ConnectionError: gone", total_reward=None, scores=None)
    entry.update(dict.fromkeys(("final_score", "submission_score", "progress_score")))


def _break_evaluation(root: Path) -> None:
    for number in range(len(read_json(root, layout.AFTER)["episodes"])):
        episode(number, _break_all)(root)


def _repeat_episode(value: dict[str, Any]) -> None:
    value["episodes"][4] = value["episodes"][3]


def _resume(step: int, *, marked: bool) -> Callable[[Path], None]:
    def edit(root: Path) -> None:
        rows = read_lines(root, layout.TRAINER_LOG)
        marker = [{**rows[-1], "type": "resume", "step": step}] if marked else []
        again = [{**row, "time": rows[-1]["time"]} for row in rows[step:-1]]
        write_lines(root, [*rows[:-1], *marker, *again, rows[-1]], layout.TRAINER_LOG)

    return edit


def _break_rollouts(count: int) -> Callable[[Path], None]:
    def edit(root: Path) -> None:
        lines = read_lines(root)
        ends = [entry for entry in lines if entry["ended_by"] is not None][:count]
        for entry in ends:
            entry.update(status="env_error", ended_by="env_error", episode_score=None, training_reward=None)
        write_lines(root, lines)

    return edit


def _silence(entry: dict[str, Any]) -> None:
    entry["done"] = False
    entry.update(dict.fromkeys(("final_score", "submission_score", "progress_score")))
    if entry["ended_by"] is not None:
        entry.update(ended_by="length_limit", episode_score=0.0)


def _exchange_names(root: Path) -> None:
    lines = read_lines(root)
    first, second = lines[0]["episode_id"], next(entry["episode_id"] for entry in lines if entry["generation"] == 1)
    names = {first: second, second: first}
    for entry in lines:
        entry["episode_id"] = names.get(entry["episode_id"], entry["episode_id"])
    write_lines(root, lines)


def _hint(root: Path) -> None:
    line(1, prompt=read_lines(root)[0]["prompt"] + "Submit at once.")(root)


def _hint_later(entry: dict[str, Any]) -> None:
    entry["turns"][1]["prompt"] += "Submit at once."


def _fall_back(share: int) -> Callable[[Path], None]:
    def edit(root: Path) -> None:
        lines = read_lines(root)
        for entry in lines[::share]:
            entry["source"] = "fallback"
        write_lines(root, lines)

    return edit


def _pay_wider(root: Path) -> None:
    lines = read_lines(root)
    paid = sorted((entry for entry in lines if entry["trainer_step"] == 0 and entry["ended_by"]), key=_pay_of)
    # The mean of the batch stays as it is.
    paid[0]["training_reward"] -= 0.5
    paid[-1]["training_reward"] += 0.5
    write_lines(root, lines)


def _pay_of(entry: dict[str, Any]) -> float:
    return float(entry["training_reward"])


def _open_block(root: Path) -> None:
    lines = read_lines(root)
    silent = next(entry for entry in lines if entry["ended_by"] == "no_call")
    silent["raw_completion"] = builder.spell_call("defer", {})
    write_lines(root, lines)


def _cut_table(root: Path) -> None:
    write(root, layout.METRICS_TABLE, (root / layout.METRICS_TABLE).read_bytes() + b'"open')


def _drop_row(root: Path) -> None:
    rows = (root / layout.METRICS_TABLE).read_bytes().splitlines(keepends=True)
    write(root, layout.METRICS_TABLE, b"".join([*rows[:8], *rows[9:]]))


def _repeat_row(root: Path) -> None:
    rows = (root / layout.METRICS_TABLE).read_bytes().splitlines(keepends=True)
    write(root, layout.METRICS_TABLE, b"".join([*rows[:8], rows[20], *rows[8:]]))


def _edit_cell(root: Path) -> None:
    data = (root / layout.METRICS_TABLE).read_bytes()
    write(root, layout.METRICS_TABLE, data.replace(b",heuristic,", b",").replace(b",edit,", b",defer,", 1))


def _fifo(root: Path) -> None:
    os.mkfifo(root / "pipe")


def _link(root: Path) -> None:
    (root / "plots" / "linked.png").symlink_to("/etc/hostname")


def _odd_name(root: Path) -> None:
    (Path(os.fsdecode(os.fsencode(root) + b"/\xff.json"))).write_bytes(b"{}")


def _mixed_key(root: Path) -> None:
    line(1, layout.TRAINER_LOG, entropy="n/a")(root)
    line(2, layout.TRAINER_LOG, entropy=0.5)(root)


def _not_finite(key: str) -> Callable[[Path], None]:
    def edit(root: Path) -> None:
        line(2, layout.TRAINER_LOG, **{key: None, "non_finite": {key: "NaN"}})(root)
        top(layout.MANIFEST, non_finite_steps=1)(root)

    return edit


def _contradict(root: Path) -> None:
    line(2, layout.TRAINER_LOG, non_finite={"epoch": "NaN"}, epoch=0.5)(root)
    top(layout.MANIFEST, non_finite_steps=1)(root)


def _fall_back_in_epochs(root: Path) -> None:
    for number, epoch in enumerate((0.25, 0.5, 0.2, 1.0), 1):
        line(number, layout.TRAINER_LOG, epoch=epoch)(root)


def _grow_rich(entry: dict[str, Any]) -> None:
    entry["steps"][1]["remaining_budget"] = 999_999


def _speak_at_length(entry: dict[str, Any]) -> None:
    entry["turns"][-1]["completion_tokens"] += 500
    entry["completion_tokens"] += 500


def _speak_in_no_tokens(entry: dict[str, Any]) -> None:
    entry["completion_tokens"] -= entry["turns"][-1]["completion_tokens"]
    entry["turns"][-1]["completion_tokens"] = 0


def _change_plan(root: Path) -> None:
    deep(layout.PLAN, "decision", "margin", value=0.5)(root)


def _pay_otherwise(root: Path) -> None:
    for path in layout.EVALUATIONS:
        episode(2, lambda entry: entry.update(reward_mode="dense"), path)(root)


def _play_by_script(root: Path) -> None:
    for path in layout.EVALUATIONS:
        value = read_json(root, path)
        value["policy"]["kind"] = "scripted"
        for entry in value["episodes"]:
            entry["policy_sha256"] = digest(value["policy"])
        write(root, path, file_bytes(value))


def _call_it_broken(entry: dict[str, Any]) -> None:
    unknown = ("final_score", "submission_score", "progress_score", "scores", "total_reward")
    entry.update(dict.fromkeys(unknown), ended_by="env_error", error="ConnectionError: gone")


def _crowd(root: Path) -> None:
    for number in range(200):
        write(root, f"a_crowd/{number}", b"")


def _make_old(root: Path) -> None:
    for entry in sorted(root.rglob("*"), reverse=True):
        entry.unlink() if entry.is_file() else entry.rmdir()
    write(root, layout.MANIFEST, file_bytes({"run_name": "old", "script": "train.py"}))


def _exchange_picture(root: Path) -> None:
    write(root, "plots/loss_curve.png", (root / "plots/reward_curve.png").read_bytes())


def _keep_adapter(root: Path) -> None:
    output = read_json(root, layout.MANIFEST)["output_adapter"]["sha256"]
    deep(layout.MANIFEST, "input_adapter", "sha256", value=output)(root)


def _pack_then_change(root: Path) -> None:
    build_packet(root, options=PacketOptions(html=False, pdf=False, replay=False, pack=False))
    deep(layout.MANIFEST, "training_seconds", value=99.0)(root)


def _pack_then_forge(root: Path) -> None:
    build_packet(root, options=PacketOptions(html=False, pdf=False, replay=False, pack=False))
    edit_json(root, layout.EVIDENCE, _raise_headline)


def _raise_headline(value: dict[str, Any]) -> None:
    number = next(entry for entry in value["numbers"] if entry["id"] == "score.mean.after")
    number.update(value=0.93, text="0.93")


def on_paper(**how: Any) -> Callable[[Path], Path]:
    """Read the run from its packet in place of its folder."""
    return lambda root: packet_of(root, **how)


def _attach_elsewhere(root: Path) -> Path:
    attachments_of(root)
    edit_json(root, layout.EVIDENCE, lambda value: value["identity"].update(root_sha256="0" * 64))
    return packet_of(root)


def _launch(pdf: pikepdf.Pdf) -> None:
    pdf.Root.OpenAction = pikepdf.Dictionary(S=pikepdf.Name.Launch, F="calc.exe")


def _lose_rollouts(root: Path) -> None:
    gone(layout.ROLLOUTS, layout.METRICS_TABLE)(root)
    # Whoever drops the log also drops what would be compared with it.
    table = read_json(root, layout.PLOT_DATA)
    kept = [record for record in table["plots"] if layout.ROLLOUTS not in record["sources"]]
    for record in table["plots"]:
        if record not in kept:
            (root / record["path"]).unlink()
    write(root, layout.PLOT_DATA, file_bytes({**table, "plots": kept}))


def _miscount_adapter(root: Path) -> None:
    deep(layout.MANIFEST, "output_adapter", "parameters", value=1)(root)
    top(layout.MANIFEST, trainable_parameters=1)(root)


def _unsign(root: Path) -> None:
    path = root / "plots/loss_curve.png"
    path.write_bytes(builder.with_text(path.read_bytes(), "molforge:run_id", "run 0123456789ab"))


def _linked_member() -> tuple[zipfile.ZipInfo, bytes]:
    member = zipfile.ZipInfo("run/plots/linked.png")
    member.create_system = 3
    member.external_attr = 0o120777 << 16
    return member, b"/etc/hostname"


def _spoil_member(root: Path) -> Path:
    target = archived(("run/README.bin", b"spoil me" * 100))(root)
    data = bytearray(target.read_bytes())
    place = data.index(b"run/README.bin") + len(b"run/README.bin")
    data[place : place + 8] = b"\xff" * 8
    target.write_bytes(bytes(data))
    return target


_SMALL_LINE = {"format_version": 1}
_NAN = raw_line(2, lambda text: text.replace(b'"grad_norm":0.7', b'"grad_norm":NaN'))
_STILL = {"reward_std": 0.0, "grad_norm": 0.0, "frac_reward_zero_std": 1.0}

FLAWS: tuple[Flaw, ...] = (
    # Reading.
    Flaw("FILE_LINKED", _link, "nothing"),
    Flaw("FILE_SPECIAL", _fifo, "nothing"),
    Flaw("FILE_NAME_UNREADABLE", _odd_name, "nothing"),
    Flaw(
        "FILE_TOO_LARGE",
        file("plots/large.png", b"\x89PNG" + b" " * 300_000),
        "hashes",
        also=("PLOT_UNLISTED",),
        limits=Limits(file_bytes=300_000),
    ),
    Flaw("DIRECTORY_TOO_LARGE", _crowd, "nothing", limits=Limits(directory_entries=100)),
    Flaw("ARCHIVE_MEMBER_ESCAPES", archived(("../x", b"")), "nothing", name="upwards"),
    Flaw("ARCHIVE_MEMBER_ESCAPES", archived(("/abs", b"")), "nothing", name="absolute"),
    Flaw("ARCHIVE_MEMBER_ESCAPES", archived(("a\\..\\b", b"")), "nothing", name="backslash"),
    Flaw("ARCHIVE_MEMBER_ESCAPES", archived(("C:/w", b"")), "nothing", name="drive"),
    Flaw("ARCHIVE_MEMBER_LINKED", archived(_linked_member()), "nothing"),
    Flaw("ARCHIVE_MEMBER_REPEATED", archived(("run/Eval_plan.json", b"{}")), "nothing"),
    Flaw("ARCHIVE_MEMBER_INFLATES", archived(("run/zeros.bin", b"\0" * (8 * 2**20))), "nothing"),
    Flaw("ARCHIVE_MEMBER_UNREADABLE", _spoil_member, "nothing"),
    Flaw(
        "ARCHIVE_TOO_LARGE",
        archived(("run/z.bin", os.urandom(9_000_000))),
        "nothing",
        limits=Limits(archive_bytes=8_000_000),
    ),
    Flaw("FORMAT_OLD", _make_old, "nothing"),
    Flaw("TEXT_MARKED", raw_line(1, lambda text: b"\xef\xbb\xbf" + text), "hashes"),
    Flaw("TEXT_UNDECODABLE", raw_line(5, lambda text: text[:40] + b"\xff" + text[41:]), "hashes"),
    Flaw("TEXT_NUL", raw_line(5, lambda _: b"\0\0\0\n"), "hashes"),
    Flaw("TEXT_SURROGATE", raw_line(5, lambda text: text[:-2] + b',"note":"\\ud800"}\n'), "hashes"),
    Flaw("JSON_UNREADABLE", raw_line(5, lambda text: text.replace(b":", b"=", 1)), "hashes"),
    Flaw("JSON_TOO_DEEP", raw_line(5, lambda _: b'{"a":' * 300 + b"1" + b"}" * 300 + b"\n"), "hashes"),
    Flaw("KEY_REPEATED", raw_line(5, lambda text: text[:-2] + b',"step":4}\n'), "hashes"),
    Flaw("NUMBER_NOT_FINITE", raw_line(5, lambda text: text[:-2] + b',"note":-Infinity}\n'), "hashes"),
    Flaw("NUMBER_NOT_FINITE", raw_line(5, lambda text: text[:-2] + b',"note":1e999}\n'), "hashes", name="overflow"),
    Flaw("NUMBER_TOO_WIDE", raw_line(5, lambda text: text[:-2] + b',"note":%d}\n' % 2**70), "hashes"),
    Flaw("NUMBER_TOO_LONG", raw_line(5, lambda text: text[:-2] + b',"note":' + b"1" * 5000 + b"}\n"), "hashes"),
    Flaw("LINE_BLANK", raw_line(5, lambda text: b"\n" + text), "hashes"),
    Flaw("LINE_RETURNED", raw_line(5, lambda text: text[:-1] + b"\r\n"), "hashes"),
    Flaw("LINE_CUT", raw_line(5, lambda text: text[:50]), "hashes"),
    Flaw("LINE_TOO_LONG", raw_line(5, lambda _: b'{"a":"' + b"x" * (5 * 2**20) + b'"}\n'), "hashes"),
    Flaw("LINE_NOT_OBJECT", raw_line(5, lambda _: b"[1,2]\n"), "hashes"),
    # Shape.
    Flaw("SCHEMA_UNMET", line(5, layout.TRAINER_LOG, time="yesterday"), "hashes", name="date"),
    Flaw("SCHEMA_UNMET", raw_line(5, lambda _: line_bytes(_SMALL_LINE)), "hashes", name="keys"),
    Flaw("TRAINER_KEY_MIXED", _mixed_key),
    # Presence.
    Flaw("MANIFEST_MISSING", gone(layout.MANIFEST), "nothing", also=("SEALED_FILE_MISSING",)),
    Flaw("PLAN_MISSING", gone(layout.PLAN), "hashes"),
    Flaw("CHECKSUMS_MISSING", gone(layout.CHECKSUMS), "nothing"),
    Flaw("ARTIFACT_MISSING", gone(layout.SUMMARY), "hashes"),
    Flaw("LOG_MISSING", _lose_rollouts, "hashes", also=("ARTIFACT_MISSING",)),
    Flaw("EVALUATION_MISSING", gone(layout.AFTER)),
    Flaw("FILE_STRAY", file(".env", b"TOKEN=x"), "hashes"),
    Flaw("PICKLE_PRESENT", file("adapters/training_args.bin", b"\x80"), "hashes"),
    # Identity.
    Flaw("RUN_ID_DIFFERS", every_line(layout.TRAINER_LOG, lambda row: row.update(run_id="run-00000000000a"))),
    Flaw("RUN_ID_DIFFERS", top(layout.PLOT_DATA, run_id="run-00000000000a"), "hashes", name="plots"),
    Flaw("PLAN_DIFFERS", _change_plan, also=("PLAN_UNUSUAL",)),
    Flaw("PLAN_UNPLAYABLE", replanned(lambda plan: plan["parts"].append(plan["parts"][1]))),
    Flaw("PLAN_UNUSUAL", replanned(lambda plan: plan["decision"].update(margin=0.5))),
    Flaw("PLAN_UNUSUAL", picked_seed, name="seeds"),
    Flaw("INTERFACE_DIFFERS", deep(layout.MANIFEST, "configuration", "observation_length", value="compact")),
    Flaw("RULES_DIFFER", top(layout.MANIFEST, rules_version="molforge-rules/0")),
    Flaw("RULES_DIFFER", deep(layout.MANIFEST, "backend", "rules_version", value="molforge-rules/0"), name="backend"),
    Flaw("BACKEND_DIFFERS", deep(layout.MANIFEST, "backend", "property_table_sha256", value="0" * 64)),
    Flaw("TIME_REVERSED", top(layout.MANIFEST, started_at="2026-01-01T13:00:00Z")),
    # Seals.
    Flaw("CHECKSUM_DIFFERS", in_bytes(layout.MANIFEST, b'"runs"', b'"RUNS"'), "nothing"),
    Flaw("SEALED_FILE_MISSING", gone("plots/grad_norm_curve.png"), "nothing", also=("PLOT_MISSING",)),
    Flaw("FILE_UNSEALED", file("adapters/tokenizer.json", b"{}"), "nothing"),
    Flaw("ROOT_DIFFERS", top(layout.CHECKSUMS, root_sha256="0" * 64), "nothing"),
    Flaw("LOG_COUNT_DIFFERS", deep(layout.CHECKSUMS, "logs", 1, "lines", value=99), "nothing"),
    Flaw("LOG_END_DIFFERS", deep(layout.CHECKSUMS, "logs", 0, "chain", value="0" * 64), "nothing"),
    Flaw("EPISODE_COUNT_DIFFERS", deep(layout.CHECKSUMS, "evaluations", 0, "episodes", value=99), "nothing"),
    Flaw("CHAIN_BROKEN", line(9, chain="0" * 64), "hashes", also=("CHAIN_BROKEN",)),
    Flaw("EPISODE_SEAL_DIFFERS", episode(2, lambda entry: entry.update(wall_time_seconds=0.1)), "hashes"),
    # Evaluations.
    Flaw("POLICY_DIFFERS", episode(2, lambda entry: entry.update(policy_sha256="0" * 64))),
    Flaw("SCENARIO_DIFFERS", episode(2, lambda entry: entry.update(difficulty="easy"))),
    Flaw("TOTAL_DIFFERS", episode(2, lambda entry: entry.update(total_reward=99.0))),
    Flaw("SCORE_DIFFERS", episode(2, lambda entry: entry.update(submission_score=0.99))),
    Flaw("ENDING_DIFFERS", episode(2, lambda entry: entry.update(ended_by="no_call"))),
    Flaw("TURN_MISCOUNTED", episode(2, lambda entry: entry["turns"][1].update(turn=3))),
    Flaw("TOKENS_DIFFER", episode(2, lambda entry: entry.update(completion_tokens=1)), name="written"),
    Flaw("TOKENS_DIFFER", episode(2, lambda entry: entry.update(prompt_tokens=1)), name="read"),
    Flaw("TOKENS_DIFFER", episode(2, lambda entry: entry["turns"][1].update(prompt_tokens=9)), name="context"),
    Flaw("EPISODE_REPEATED", lambda root: edit_json(root, layout.AFTER, _repeat_episode), also=("EPISODE_MISSING",)),
    Flaw("EPISODE_UNPLANNED", episode(2, lambda entry: entry.update(seed=7)), also=("SCENARIO_DIFFERS",)),
    Flaw("EPISODE_UNPLANNED", _pay_otherwise, name="reward mode"),
    Flaw(
        "EPISODE_MISSING",
        lambda root: edit_json(root, layout.AFTER, lambda value: value["episodes"].pop(4) and None),
        also=("EVALUATION_PARTIAL",),
    ),
    Flaw("EVALUATION_PARTIAL", episode(2, _break_all)),
    Flaw("EVALUATION_FAILED", _break_evaluation),
    Flaw("SUMMARY_DIFFERS", top(layout.SUMMARY, mean_tool_reward=2.5), "hashes"),
    Flaw("COUNT_DIFFERS", top(layout.MANIFEST, non_finite_steps=3)),
    Flaw("HEADLINE_DIFFERS", deep(layout.SUMMARY, "eval_after", "average_final_score", value=0.99), "hashes"),
    # Before and after.
    Flaw("BEFORE_AFTER_UNLIKE", top(layout.AFTER, seed_honoured=False)),
    Flaw("EVALUATIONS_SWAPPED", _swap, also=("POLICY_ADAPTER_DIFFERS", "TIME_REVERSED")),
    Flaw("POLICY_ADAPTER_DIFFERS", deep(layout.MANIFEST, "input_adapter", "sha256", value="0" * 64)),
    Flaw("POLICY_ADAPTER_DIFFERS", _play_by_script, name="script"),
    Flaw("POLICY_BASE_DIFFERS", top(layout.MANIFEST, base_model_sha256="0" * 64)),
    Flaw("EVALUATIONS_EQUAL", _copy_before),
    Flaw("SCORE_CONSTANT", _constant),
    # Training.
    Flaw("TRAINING_NOT_FINITE", _not_finite("grad_norm")),
    Flaw("METRIC_NOT_FINITE", _not_finite("rewards/a/mean")),
    Flaw("NUMBER_CONTRADICTED", _contradict, also=("METRIC_NOT_FINITE",)),
    *(
        Flaw("NUMBER_IMPOSSIBLE", line(3, layout.TRAINER_LOG, **changes), name=name)
        for name, changes in {
            "share above 1": {"success_rate": 1.2},
            "share below 0": {"clip_ratio/low_mean": -0.1},
            "spread below 0": {"rewards/a/std": -0.5},
            "minimum above mean": {"completions/min_length": 50.0, "completions/mean_length": 40.0},
            "mean above maximum": {"rewards/a/mean": 2.0, "rewards/a/max": 1.0},
            "spread wider than reach": {"a/min": 0.4, "a/max": 0.6, "a/std": 0.3},
            "spread of one value": {"n": 1, "a/std": 0.01},
            "share of three": {"n": 3, "success_rate": 0.5},
            "entropy below 0": {"entropy": -0.2},
            "divergence below 0": {"kl": -0.2},
            "step without time": {"step_time": 0.0},
            "step longer than clock": {"step_time": 500.0},
            "no tokens": {"num_tokens": 0.0},
            "half a token": {"num_tokens": 100.5},
            "completion over limit": {"completions/max_length": 5000.0},
        }.items()
    ),
    Flaw("NUMBER_IMPOSSIBLE", line(5, layout.TRAINER_LOG, elapsed_seconds=90_000.0), name="elapsed over clock"),
    Flaw("NUMBER_IMPOSSIBLE", line(5, layout.TRAINER_LOG, train_runtime=5_000.0), name="runtime over training"),
    Flaw("NUMBER_IMPOSSIBLE", line(5, layout.TRAINER_LOG, train_steps_per_second=3.0), name="speed"),
    Flaw("NUMBER_IMPOSSIBLE", _fall_back_in_epochs, name="epoch goes back"),
    Flaw("NUMBER_IMPOSSIBLE", top(layout.MANIFEST, training_seconds=90_000.0), name="training over run"),
    Flaw("NUMBER_IMPOSSIBLE", top(layout.MANIFEST, training_seconds=-1.0), name="training below 0"),
    Flaw("NUMBER_IMPOSSIBLE", top(layout.MANIFEST, total_parameters=10), name="parameters"),
    Flaw("NUMBER_IMPOSSIBLE", setting("max_grad_norm", -1.0), name="setting"),
    Flaw("NUMBER_IMPOSSIBLE", line(5, remaining_budget=999_999), name="budget of a line"),
    Flaw("NUMBER_IMPOSSIBLE", episode(2, _grow_rich), name="budget"),
    Flaw("NUMBER_IMPOSSIBLE", episode(2, lambda entry: entry["scores"].update(novelty_score=1.5)), name="score"),
    Flaw("NUMBER_IMPOSSIBLE", episode(2, lambda entry: entry.update(wall_time_seconds=9_000.0)), name="wall time"),
    Flaw("NUMBER_IMPOSSIBLE", episode(2, _speak_at_length), name="tokens of a turn"),
    Flaw("NUMBER_IMPOSSIBLE", episode(2, _speak_in_no_tokens), name="words in no tokens"),
    Flaw("STEPS_RESUMED", _resume(2, marked=True)),
    Flaw("STEPS_OVERLAP", _resume(2, marked=False)),
    Flaw("STEP_REPEATED", line(3, layout.TRAINER_LOG, step=2)),
    Flaw("STEPS_MISSING", lambda root: builder.drop_line(root, 2, layout.TRAINER_LOG), also=("TRAINER_MEAN_DIFFERS",)),
    Flaw(
        "SIGNAL_ABSENT",
        every_line(layout.TRAINER_LOG, lambda row: row["type"] == "train" and row.update(_STILL)),
        also=("TRAINER_MEAN_DIFFERS",),
    ),
    Flaw(
        "COMPLETIONS_CUT",
        every_line(
            layout.TRAINER_LOG, lambda row: row["type"] == "train" and row.update({"completions/clipped_ratio": 1.0})
        ),
    ),
    Flaw("KL_MISSING", every_line(layout.TRAINER_LOG, lambda row: row.pop("kl", None))),
    Flaw("SCHEDULE_DIFFERS", line(3, layout.TRAINER_LOG, learning_rate=5e-4)),
    Flaw("SCHEDULE_DIFFERS", setting("lr_scheduler", "polynomial"), name="course"),
    Flaw("SCHEDULE_UNKNOWN", setting("lr_scheduler", "warm_restarts")),
    Flaw("VERSIONS_DIFFER", deep(layout.MANIFEST, "packages", "molforge-evidence", value="9.9.9")),
    Flaw("VERSIONS_DIFFER", deep(layout.MANIFEST, "packages", "python", value="2.7"), name="python"),
    Flaw("VERSIONS_DIFFER", deep(layout.MANIFEST, "packages", "rdkit", value="2025.9.1"), name="rdkit"),
    Flaw("CONFIGURATION_DIFFERS", setting("logging_steps", 3), name="logging"),
    Flaw("CONFIGURATION_DIFFERS", setting("batch_size", 12), name="batch"),
    Flaw("CONFIGURATION_DIFFERS", setting("num_iterations", 2), name="iterations"),
    Flaw("CONFIGURATION_DIFFERS", setting("run_name", "another"), name="run name"),
    Flaw("CONFIGURATION_DIFFERS", setting("reward_mode", "dense"), name="reward mode"),
    Flaw("CONFIGURATION_DIFFERS", setting("seed", 2), name="seed", also=("PROMPT_UNPLANNED",)),
    Flaw("CONFIGURATION_DIFFERS", setting("run_after_eval", value=False), name="evaluation"),
    Flaw("INTERFACE_DIFFERS", setting("temperature", 0.5), name="temperature"),
    Flaw("COUNT_DIFFERS", top(layout.MANIFEST, trainable_parameters=7), name="trainable"),
    Flaw("STEPS_DIFFER", line(5, layout.TRAINER_LOG, step=9), name="summary row"),
    Flaw("TRAINER_MEAN_DIFFERS", line(5, layout.TRAINER_LOG, train_loss=0.5), name="loss"),
    Flaw("RUN_INCOMPLETE", top(layout.MANIFEST, status="interrupted")),
    Flaw("STEPS_DIFFER", deep(layout.MANIFEST, "configuration", "max_steps", value=800)),
    Flaw("STATUS_DIFFERS", top(layout.MANIFEST, ended_at=None)),
    Flaw("TRAINER_MEAN_DIFFERS", line(2, layout.TRAINER_LOG, reward=2.09)),
    Flaw("TRAINER_MEAN_DIFFERS", line(2, layout.TRAINER_LOG, reward_std=0.9), name="spread"),
    Flaw("TRAINER_MEAN_DIFFERS", _pay_wider, name="wider pay"),
    Flaw("TRAINER_MEAN_DIFFERS", line(2, layout.TRAINER_LOG, frac_reward_zero_std=0.5), name="even groups"),
    Flaw("TRAINER_MEAN_DIFFERS", line(2, layout.TRAINER_LOG, **{"tools/call_frequency": 99.0}), name="calls"),
    # Rollouts.
    Flaw("EPISODE_HEADLESS", line(1, prompt=None, scenario=None)),
    Flaw("EPISODE_UNENDED", lambda root: builder.drop_line(root, -1), also=("TRAINER_MEAN_DIFFERS",)),
    Flaw("EPISODE_UNENDED", line(2, episode_score=0.5), name="early score"),
    Flaw("EPISODE_MISNAMED", _exchange_names),
    Flaw("PROMPT_UNPLANNED", setting("dataset_size", 7)),
    Flaw("PROMPT_UNLIKE", _hint),
    Flaw("PROMPT_UNLIKE", episode(3, _hint_later), name="later turn"),
    Flaw("STEP_MISCOUNTED", line(4, turn=9), also=("STEP_MISCOUNTED",), name="turn"),
    Flaw("EPISODE_MIXED", line(3, difficulty="hard")),
    Flaw("STEP_MISCOUNTED", lambda root: builder.drop_line(root, 5)),
    Flaw(
        "EPISODES_MISSING",
        drop_lines(where=lambda entry: entry["episode_id"] == "step00001-prompt00-01"),
        also=("TRAINER_MEAN_DIFFERS",),
    ),
    Flaw("FALLBACK_RULES", _fall_back(2)),
    Flaw("FALLBACK_PRESENT", _fall_back(80)),
    Flaw("ENVIRONMENT_BROKEN", _break_rollouts(12), also=("TRAINER_MEAN_DIFFERS",)),
    Flaw("ENVIRONMENT_FAULTS", _break_rollouts(1), also=("TRAINER_MEAN_DIFFERS",)),
    Flaw("EPISODES_UNFINISHED", every_line(layout.ROLLOUTS, _silence)),
    Flaw("CALL_UNREAD", _open_block),
    # Table.
    Flaw("TABLE_UNREADABLE", _cut_table, "hashes"),
    Flaw("TABLE_HEADER_DIFFERS", in_bytes(layout.METRICS_TABLE, b"reward", b"rewarded"), "hashes"),
    Flaw("TABLE_ROW_DIFFERS", _edit_cell, "hashes"),
    Flaw("TABLE_ROW_MISSING", _drop_row, "hashes"),
    Flaw("TABLE_ROW_SURPLUS", _repeat_row, "hashes"),
    # Plots.
    Flaw("PLOT_UNREADABLE", file("plots/loss_curve.png", b"GIF89a"), "hashes"),
    Flaw("PLOT_UNSIGNED", _unsign, "hashes"),
    Flaw(
        "PLOT_OUTDATED",
        _exchange_picture,
        "hashes",
    ),
    Flaw(
        "PLOT_HASH_DIFFERS",
        deep(layout.PLOT_DATA, "plots", 0, "data_sha256", value="0" * 64),
        "hashes",
        also=("PLOT_OUTDATED",),
    ),
    Flaw("PLOT_DATA_DIFFERS", line(2, layout.TRAINER_LOG, grad_norm=0.9), "hashes"),
    Flaw("PLOT_MISSING", gone("plots/grad_norm_curve.png"), "hashes"),
    Flaw(
        "PLOT_UNLISTED",
        lambda root: write(root, "plots/more.png", (root / "plots/loss_curve.png").read_bytes()),
        "hashes",
    ),
    # Adapter.
    Flaw("WEIGHTS_MISSING", gone(layout.ADAPTER_WEIGHTS), "hashes", also=("ARTIFACT_MISSING",)),
    Flaw(
        "WEIGHTS_PICKLED",
        lambda root: (root / layout.ADAPTER_WEIGHTS).rename(root / "adapters/adapter_model.bin") and None,
        "hashes",
        also=("ARTIFACT_MISSING", "WEIGHTS_MISSING"),
    ),
    Flaw("WEIGHTS_PICKLED", _header(b"\x80\x04K\x01."), "hashes", also=("ADAPTER_DIFFERS",), name="renamed"),
    Flaw("WEIGHTS_PICKLED", _header(b"PK\x03\x04zip"), "hashes", also=("ADAPTER_DIFFERS",), name="zip"),
    Flaw(
        "WEIGHTS_POINTER",
        _header(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"),
        "hashes",
        also=("ADAPTER_DIFFERS",),
    ),
    Flaw("WEIGHTS_UNREADABLE", _header(b"\x05\0\0\0\0\0\0\0[1,2]"), "hashes", also=("ADAPTER_DIFFERS",)),
    Flaw("WEIGHTS_UNREADABLE", _header(b"\xff" * 30), "hashes", also=("ADAPTER_DIFFERS",), name="length"),
    Flaw("WEIGHTS_NOT_FINITE", tensors(lambda values: [value.fill(np.nan) for value in values.values()] and None)),
    Flaw("ADAPTER_ZERO", tensors(lambda values: {name: value * ("lora_A" in name) for name, value in values.items()})),
    Flaw("ADAPTER_EMPTY", tensors(dict.clear), also=("ADAPTER_COUNT_DIFFERS",)),
    Flaw("ADAPTER_RANK_DIFFERS", top(layout.ADAPTER_CONFIG, r=16)),
    Flaw("ADAPTER_ZERO", top(layout.ADAPTER_CONFIG, lora_alpha=0), name="scale"),
    Flaw("ADAPTER_KEYS_DIFFER", top(layout.ADAPTER_CONFIG, target_modules=["k_proj"])),
    Flaw("ADAPTER_BASE_DIFFERS", top(layout.ADAPTER_CONFIG, base_model_name_or_path="Qwen/Qwen3-4B")),
    Flaw("ADAPTER_COUNT_DIFFERS", _miscount_adapter),
    Flaw("ADAPTER_DIFFERS", lambda root: rename_adapter(root, "0" * 64)),
    Flaw(
        "ADAPTER_UNCHANGED",
        _keep_adapter,
        also=("POLICY_ADAPTER_DIFFERS",),
    ),
    Flaw("ADAPTER_UNNAMED", top(layout.MANIFEST, output_adapter=None), also=("POLICY_ADAPTER_DIFFERS",)),
    Flaw("TRAINABLE_NONE", top(layout.MANIFEST, trainable_parameters=0)),
    # Packet.
    Flaw("PACKET_OUTDATED", _pack_then_change),
    Flaw("PACKET_UNFIT", file(layout.EVIDENCE, b'{"claims": []}'), "nothing"),
    Flaw("PACKET_UNFIT", file(layout.EVIDENCE, b"<html>"), "nothing", name="no JSON"),
    Flaw("PACKET_UNFIT", on_paper(without=(layout.EVIDENCE,)), "nothing", CARRIED, name="not attached"),
    Flaw("PACKET_NUMBER_DIFFERS", _pack_then_forge, "nothing"),
    Flaw("PACKET_FOREIGN", _attach_elsewhere, "nothing", CARRIED),
    Flaw("PACKET_CARRIES_LESS", on_paper(), "nothing"),
    Flaw("PACKET_LOG_ABSENT", on_paper(without=("trainer_log_history.jsonl.gz",)), "nothing", CARRIED),
    Flaw("PACKET_ATTACHMENT_REPEATED", on_paper(more=(("eval_plan.json", b"{}"),)), "nothing", CARRIED),
    Flaw("PACKET_ATTACHMENT_UNKNOWN", on_paper(more=(("../setup.exe", b"MZ"),)), "nothing", CARRIED),
    Flaw(
        "PACKET_ATTACHMENT_UNREADABLE",
        on_paper(without=("openenv_tool_rollouts.jsonl.gz",), more=(("openenv_tool_rollouts.jsonl.gz", b"no gzip"),)),
        "nothing",
        ("PACKET_LOG_ABSENT", *CARRIED),
    ),
    Flaw(
        "PACKET_ATTACHMENT_TOO_LARGE",
        on_paper(more=(("setup.exe", b"MZ"),)),
        "nothing",
        CARRIED,
        limits=Limits(pdf_attachments=len(layout.ENCLOSURES) - 1),
    ),
    Flaw("PACKET_ACTIVE", on_paper(change=_launch), "nothing", CARRIED),
    # Privacy.
    Flaw("SECRET_PRESENT", deep(layout.MANIFEST, "packages", "token", value="hf_" + "a" * 34)),
    Flaw("HOME_PATH_PRESENT", deep(layout.MANIFEST, "configuration", "output_root", value="/home/someone/runs")),
)


def _easier(entry: dict[str, Any]) -> None:
    entry["scenario"]["max_budget"] = 9_000


def _other_action(entry: dict[str, Any]) -> None:
    entry["steps"][1].update(tool="defer", action_type="defer", arguments={"rationale": "wait"})
    entry["turns"][1]["raw_completion"] = builder.spell_call("defer", {"rationale": "wait"})


def _unreadable_call(entry: dict[str, Any]) -> None:
    entry["turns"][1]["raw_completion"] = "<tool_call><function=defer></function></tool_call>"


def _never_ended(root: Path) -> None:
    def silence(entry: dict[str, Any]) -> None:
        entry["steps"], entry["turns"] = entry["steps"][:2], entry["turns"][:3]
        entry["turns"][2]["raw_completion"] = "I stop here."
        entry["completion_tokens"] = sum(turn["completion_tokens"] for turn in entry["turns"])
        entry["prompt_tokens"] = entry["turns"][2]["prompt_tokens"] - 2 * entry["turns"][0]["completion_tokens"]
        entry.update(ended_by="malformed_call", scores=None, final_score=0.0, submission_score=None)
        entry.update(progress_score=None, total_reward=round(sum(step["reward"] for step in entry["steps"]), 4))

    episode(2, silence)(root)


def _pay_another(root: Path) -> None:
    lines = read_lines(root)
    paid = [entry for entry in lines if entry["ended_by"] is not None and entry["trainer_step"] == 0]
    # Mean and spread of the batch stay as they are.
    first, second = (entry["training_reward"] for entry in paid[:2])
    assert first != second
    paid[0]["training_reward"], paid[1]["training_reward"] = second, first
    write_lines(root, lines)


def _word_otherwise(root: Path) -> None:
    top(layout.MANIFEST, product_version="0.0.9")(root)
    line(1, prompt="Play.")(root)


def _argue_silently(root: Path) -> None:
    lines = read_lines(root)
    silent = next(entry for entry in lines if entry["tool"] is None)
    silent["arguments"] = {"a": 1}
    write_lines(root, lines)


def _empty(root: Path) -> None:
    gone(layout.BEFORE, layout.AFTER, layout.ROLLOUTS, layout.METRICS_TABLE, layout.PLOT_DATA, layout.TRAINER_LOG)(root)
    for picture in sorted((root / "plots").iterdir()):
        picture.unlink()
    gone(layout.SUMMARY)(root)


REPLAY_FLAWS: tuple[Flaw, ...] = (
    Flaw(
        "BACKEND_UNLIKE",
        deep(layout.MANIFEST, "backend", "property_table_sha256", value="0" * 64),
        also=("BACKEND_DIFFERS",),
    ),
    Flaw("REPLAY_NOTHING", _empty, "hashes", also=("ARTIFACT_MISSING", "EVALUATION_MISSING", "LOG_MISSING")),
    Flaw("REPLAY_SCENARIO_DIFFERS", episode(2, _easier), also=("BEFORE_AFTER_UNLIKE",)),
    Flaw("REPLAY_STEP_DIFFERS", line(7, reward=0.5), name="reward of a line"),
    Flaw("REPLAY_STEP_DIFFERS", _argue_silently, name="arguments of no call"),
    Flaw("REPLAY_STEP_DIFFERS", episode(2, _other_action), name="action of an evaluation"),
    Flaw("REPLAY_SCORE_DIFFERS", episode(2, lambda entry: entry["scores"].update(potency_score=0.5))),
    Flaw("REPLAY_ENDING_DIFFERS", _never_ended),
    Flaw("REPLAY_ENDING_DIFFERS", episode(4, _call_it_broken), also=("EVALUATION_PARTIAL",), name="no fault"),
    Flaw("REPLAY_TEXT_DIFFERS", line(1, prompt="Play."), name="prompt", also=("PROMPT_UNLIKE",)),
    Flaw(
        "REPLAY_TEXT_DIFFERS",
        episode(2, lambda entry: entry["steps"][1].update(response="Well done.")),
        name="answer",
        also=("PROMPT_UNLIKE",),
    ),
    Flaw(
        "REPLAY_TEXT_UNLIKE",
        _word_otherwise,
        also=("PROMPT_UNLIKE",),
    ),
    Flaw("REPLAY_CALL_DIFFERS", episode(2, lambda entry: entry["turns"][1].update(raw_completion="I say nothing."))),
    Flaw("REPLAY_CALL_DIFFERS", line(2, raw_completion=None), also=("STEP_MISCOUNTED",), name="no words"),
    Flaw("REPLAY_CALL_UNREAD", episode(2, _unreadable_call)),
    Flaw("REPLAY_REWARD_DIFFERS", _pay_another),
)

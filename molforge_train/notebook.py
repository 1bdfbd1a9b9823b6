"""What the cells of the training notebook call: each step is a command that users have, run in a process of its own.

The kernel may be old, or hold packages that the installation has just replaced: only the standard library is imported
here, and IPython where something is shown. A kernel that ends takes its command along by a signal, which the command
answers by sealing the run, so that `begin` finds it and goes on with it.
"""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

PROGRAMS = {
    "molforge-train": "molforge_train.cli",
    "molforge-eval": "molforge_eval.cli.evaluate",
    "molforge-report": "molforge_eval.cli.report",
}
_LAUNCH = """
import ctypes, importlib, signal, sys
try:
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # a signal to this process when its parent ends
except (AttributeError, OSError):
    pass
name = sys.argv.pop(1)
importlib.import_module(name).main()
"""
_FIRST_PLOTS = ("reward_curve", "loss_curve", "eval_before_after", "action_distribution")
_ENDED = 130
_KEPT_LINES = 3
_ABSENT = "there is no adapter"
_TINY = "molforge_train/models/tiny/"


class StepError(Exception):
    """A step that ended the notebook; a cell shows its three lines and no traceback."""

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


class Session(NamedTuple):
    """One run of the notebook."""

    environment: Mapping[str, str]
    """Variables of every command."""
    preset: str
    folder: Path
    """The run directory, which may not exist yet."""
    is_begun: bool
    """The run was begun before and is gone on with."""


def begin(settings: Mapping[str, str], *, preset: str = "", resume: bool = True) -> Session:
    """Resolve the settings, make a start adapter where none is found, and choose the run directory.

    Args:
        settings: Variables of the Colab workflow; an empty text leaves one to the preset.
        preset: Name or file; empty lets the machine choose.
        resume: Go on with a run of this preset that was stopped, when there is one.

    Raises:
        StepError: The settings cannot be run.
    """
    environment = {**os.environ, **{name: str(value) for name, value in settings.items() if str(value)}}  # noqa: TID251 - the kernel's own, handed on
    # One process uses one GPU; where a machine has two, the run would be refused.
    environment.setdefault("CUDA_VISIBLE_DEVICES", "0")
    if token := _token_of_vault(environment):
        environment["HF_TOKEN"] = token
    wanted = environment.pop("RUN_NAME", "")
    if wanted and (Path(wanted).name != wanted or not wanted.strip(".")):
        raise StepError(
            f"{wanted!r} is no name for a run\n  where: setting RUN_NAME\n"
            "  mend:  Give a name without a path; RL_OUTPUT_ROOT says in which folder the run goes."
        )
    words = ["grpo", "--dry-run", *(["--preset", preset] if preset else [])]
    code, told = _ask(words, environment)
    if code and any(_ABSENT in line for line in told):
        environment["SFT_ADAPTER_PATH"] = str(_start_adapter(_plan_of(told), environment))
        code, told = _ask(words, environment)
    _say("\n".join(told))
    if code:
        raise StepError("\n".join(told[-_KEPT_LINES:]))
    plan = _plan_of(told)
    root = Path(plan["output_root"]).expanduser()
    preset = preset or plan["preset"]
    stopped = _stopped_run(root, wanted or f"{plan['preset']}-", is_whole=bool(wanted)) if resume else None
    if stopped is not None:
        _say(f"\ngoing on with {stopped}; `resume=False` begins a new run")
        return Session(environment, preset, stopped, is_begun=True)
    places = [root, *(Path(drive).expanduser() for drive in [environment.get("DRIVE_OUTPUT_DIR", "")] if drive)]
    folder = root / _free_name(wanted or plan["run_name"], places)
    _say(f"\nthe run goes into {folder}")
    return Session(environment, preset, folder, is_begun=False)


def _token_of_vault(environment: Mapping[str, str]) -> str | None:
    """Read the hub's token from Colab's secrets, which only the kernel can ask for; the steps are other processes."""
    if environment.get("HF_TOKEN") or "google.colab" not in sys.modules:
        return None
    from google.colab import userdata  # type: ignore[import-not-found] # only Colab has it

    try:
        return str(userdata.get("HF_TOKEN"))
    except (userdata.SecretNotFoundError, userdata.NotebookAccessError, userdata.TimeoutException):
        return None


def train(session: Session) -> None:
    """Train, or go on with training.

    Raises:
        StepError: It broke off, or was interrupted; the run directory says what became of it.
    """
    if session.is_begun:
        call("molforge-train", "resume", session.folder, environment=session.environment, codes=(0, 1))
        return
    named = {**session.environment, "RUN_NAME": session.folder.name, "RL_OUTPUT_ROOT": str(session.folder.parent)}
    call("molforge-train", "grpo", "--preset", session.preset, environment=named, codes=(0, 1))


def check(session: Session) -> None:
    """Validate the run and play every episode again; findings are shown and stop nothing.

    Raises:
        StepError: The run cannot be read.
    """
    for step in ("validate", "verify"):
        call("molforge-eval", step, session.folder, environment=session.environment, codes=(0, 1))


def build(session: Session, *words: str) -> None:
    """Build the packet into the run, and bring the run to where its settings want it.

    Raises:
        StepError: It could not be made.
    """
    call("molforge-report", "build", session.folder, *words, environment=session.environment)
    if session.environment.get("DRIVE_OUTPUT_DIR") or session.environment.get("HF_OUTPUT_REPO"):
        # A place that did not get the run is told in its lines; packet and archive are here all the same.
        call("molforge-train", "deliver", session.folder, environment=session.environment, codes=(0, 1))


def show_plots(session: Session) -> None:
    """Show the pictures of the run."""
    from IPython.display import Image, display

    found = {path.stem: path for path in sorted((session.folder / "plots").glob("*.png"))}
    for name in [*(name for name in _FIRST_PLOTS if name in found), *(set(found) - set(_FIRST_PLOTS))]:
        display(Image(filename=str(found[name]), alt=name.replace("_", " ")))


def show_packet(session: Session, *, height: int = 900) -> None:
    """Show the page of the packet in a frame of its own, which can load nothing."""
    from IPython.display import HTML, display

    page = html.escape((session.folder / "judge_packet.html").read_text("utf-8"))
    style = f"width:100%;height:{height}px;border:1px solid #dfe2e7;border-radius:6px;background:#fff"
    frame = f'<iframe sandbox="allow-scripts" referrerpolicy="no-referrer" title="Judge packet" style="{style}"'
    display(HTML(f'<div>{frame} srcdoc="{page}"></iframe></div>'))


def offer(session: Session) -> None:
    """Hand the archive over: a download on Colab, a link elsewhere."""
    archive = session.folder.with_name(f"{session.folder.name}.zip")
    _say(f"archive  {archive}\npacket   {session.folder / 'judge_packet.pdf'}")
    if "google.colab" in sys.modules:
        sys.modules["google.colab"].files.download(str(archive))
        return
    from IPython.display import FileLink, display

    display(FileLink(os.path.relpath(archive)))


def call(program: str, *words: str | Path, environment: Mapping[str, str], codes: Sequence[int] = (0,)) -> None:
    """Run a command and print what it says while it runs.

    Args:
        program: One of the commands of the product.
        words: Its arguments.
        environment: Its variables.
        codes: Exit codes that let the notebook go on.

    Raises:
        StepError: It ended with another code.
    """
    texts = [str(word) for word in words]
    _say(f"$ {shlex.join([program, *texts])}")
    told: deque[str] = deque(maxlen=_KEPT_LINES)
    with _started(program, texts, environment) as process:
        try:
            _follow(process, told)
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            _follow(process, told)
    if process.returncode not in codes:
        raise StepError(_three_lines(list(told), program, texts, process.returncode))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _follow(process: subprocess.Popen[str], told: deque[str]) -> None:
    for line in process.stdout or ():
        _say(line.rstrip("\n"))
        told.append(line.rstrip("\n"))


def _started(program: str, words: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-u", "-c", _LAUNCH, PROGRAMS[program], *words]
    # A group of its own: an interrupt of the kernel is handed on once, and not by the terminal as well.
    return subprocess.Popen(  # noqa: S603 - our own program
        command,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        process_group=0,
    )


def _three_lines(told: list[str], program: str, words: list[str], code: int) -> str:
    if len(told) == _KEPT_LINES and told[1].startswith("  where: "):
        return "\n".join(told)
    what = "was interrupted" if code in (_ENDED, -signal.SIGINT) else f"ended with exit code {code}"
    return f"the command {what}\n  where: {shlex.join([program, *words])}\n  mend:  Read its last lines above."


def _ask(words: Sequence[str], environment: Mapping[str, str]) -> tuple[int, list[str]]:
    with _started("molforge-train", words, environment) as process:
        told, _ = process.communicate()
    return process.returncode, told.splitlines()


def _plan_of(told: Sequence[str]) -> dict[str, str]:
    """Read the values of a plan as a dry run prints them."""
    rows = (re.fullmatch(r"  (\w+)  +(.*)  \((?:flag|environment|preset|default)\)", line) for line in told)
    return {row[1]: row[2] for row in rows if row is not None}


def _start_adapter(plan: Mapping[str, str], environment: Mapping[str, str]) -> Path:
    """Make the adapter that training goes on from, or take the one that was made before."""
    base, length = plan["base_model"], plan["observation_length"]
    name = re.sub(r"[^A-Za-z0-9]+", "-", f"{base}-{length}").strip("-")
    folder = Path(plan["output_root"]).expanduser() / "start_adapters" / name
    data, adapter = folder / "sft.jsonl", folder / "adapter"
    if not (adapter / "sft_record.json").is_file():
        _say(f"no start adapter is found: one is made in {adapter}")
        extra = {key: environment[key] for key in ("SFT_CONVERSATIONS", "SFT_STEPS") if environment.get(key)}
        if not data.is_file():
            count = ["--conversations", extra["SFT_CONVERSATIONS"]] if "SFT_CONVERSATIONS" in extra else []
            call(
                "molforge-train", "data", "--out", data, "--observation-length", length, *count, environment=environment
            )
        recipe = ["--preset", "tiny-cpu"] if base.startswith(_TINY) else []
        steps = ["--steps", extra["SFT_STEPS"]] if "SFT_STEPS" in extra else []
        call(
            "molforge-train",
            "sft",
            data,
            "--base-model",
            base,
            "--out",
            adapter,
            *recipe,
            *steps,
            environment=environment,
        )
    return adapter.resolve()


def _stopped_run(root: Path, name: str, *, is_whole: bool) -> Path | None:
    """Find the run that was stopped last, by its name or the beginning of it."""
    found = [
        path.parent for path in root.glob(f"{name}/run_manifest.json" if is_whole else f"{name}*/run_manifest.json")
    ]
    stopped = [folder for folder in found if _status_of(folder) in ("running", "interrupted")]
    return max(stopped, key=lambda folder: (folder / "run_manifest.json").stat().st_mtime, default=None)


def _status_of(folder: Path) -> str:
    try:
        return str(json.loads((folder / "run_manifest.json").read_text("utf-8"))["status"])
    except (OSError, ValueError, KeyError, TypeError):
        return "unreadable"


def _free_name(name: str, places: Sequence[Path]) -> str:
    return next(found for found in _names(name) if not any(_is_taken(place, found) for place in places))


def _names(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1


def _is_taken(place: Path, name: str) -> bool:
    return (place / name).exists() or (place / f"{name}.zip").exists()

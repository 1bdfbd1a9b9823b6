"""`molforge-train deliver`: bring a sealed run to other places, once more or for the first time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from molforge_env.command_line import report_error
from molforge_env.errors import EXIT_FINDINGS, EXIT_SOUND, UsageError

if TYPE_CHECKING:
    from molforge_train.delivery import Delivery


@click.command("deliver", short_help="Bring a sealed run to a folder or to the hub.")
@click.argument("run_dir", type=click.Path(path_type=Path))
@click.option(
    "--drive",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder that gets a copy; what the run's settings say when absent. [DRIVE_OUTPUT_DIR]",
)
@click.option(
    "--hf",
    metavar="OWNER/NAME",
    help="Repository of the hub; what the run's settings say when absent. [HF_OUTPUT_REPO]",
)
def command(run_dir: Path, *, drive: Path | None, hf: str | None) -> int:
    """Bring a sealed run and its archive to another folder, to the hub, or both, packet included when one was built.

    The archive is made again first. Each file is compared by its hash after the copy, and the copy gets its name when
    all of it is there; an older copy of the same run stands until then. Exit code 1 when a place did not get the run:
    three lines say why, and nothing of the run is lost.

    On the hub the run, its archive and the adapter's card are one commit. A repository that is not there is made
    private; the token is that of HF_TOKEN or of `hf auth login`.

    \b
    molforge-report build runs/first
    molforge-train deliver runs/first --drive /content/drive/MyDrive/molforge
    molforge-train deliver runs/first --hf user/molforge-run
    """
    from molforge_eval import layout
    from molforge_train.config import process_environment
    from molforge_train.delivery import deliver, pack
    from molforge_train.run_record import RunRecord, writing_alone

    with writing_alone(run_dir):
        settings = RunRecord.read(run_dir).manifest.configuration
        if not (run_dir / layout.CHECKSUMS).is_file():
            mend = f"Let it end first: molforge-train resume {run_dir}"
            raise UsageError("the run is not sealed", where=str(run_dir), mend=mend)
        wanted = {"DRIVE_OUTPUT_DIR": None if drive is None else str(drive), "HF_OUTPUT_REPO": hf}
        if drive is None and hf is None:
            variables = process_environment()
            asked = {"DRIVE_OUTPUT_DIR": settings.drive_output_dir, "HF_OUTPUT_REPO": settings.hf_output_repo}
            wanted = {name: variables.get(name, "").strip() or asked[name] for name in asked}
        if not any(wanted.values()):
            mend = "Name a folder (--drive DIR, DRIVE_OUTPUT_DIR) or a repository (--hf OWNER/NAME, HF_OUTPUT_REPO)."
            raise UsageError("nobody says where the run is to go", where="--drive, --hf", mend=mend)
        folder = run_dir.resolve()
        try:
            archive = pack(folder)
        except OSError as error:
            what = f"the archive cannot be made again: {error.strerror or error}"
            raise UsageError(
                what, where=str(run_dir), mend="Make room beside the run, or give the right to write."
            ) from error
        return show_delivery(
            deliver(folder, archive, drive=wanted["DRIVE_OUTPUT_DIR"], repository=wanted["HF_OUTPUT_REPO"])
        )


def show_delivery(delivery: Delivery) -> int:
    """Print where a run has been brought, and what did not get it.

    Returns:
        0, or 1 when a place did not get it.
    """
    if delivery.copy is not None:
        click.echo(f"copy           {delivery.copy}")
    if delivery.commit is not None:
        click.echo(f"hub            {delivery.commit}")
    for fault in delivery.faults:
        report_error(fault)
    return EXIT_FINDINGS if delivery.faults else EXIT_SOUND

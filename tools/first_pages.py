"""Print the first pages of packets for the documentation: `python -m tools.first_pages [--all FOLDER]`.

Each is of a run that is made as a stranger makes it, see `tests/support/first_page_states.py`. Without a folder the few
that stand in `docs/first_page.md` are written to `docs/images/`; with one, every state on both sheets, to be looked at.
Needs `pdftoppm` of Poppler.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from evidence_cases.building import Corpus
from first_page_states import STATES, make_state

from molforge_eval.report.build import PacketOptions, build_packet
from molforge_eval.report.paper import PaperSize

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
SHOWN = ("improved", "no change", "regressed", "error findings")
DOTS_AN_INCH = 100
SIZES: tuple[PaperSize, ...] = ("A4", "letter")


def print_first_page(run: Path, scratch: Path, target: Path, size: PaperSize) -> None:
    """Build the packet of a run and write the picture of its first page.

    Raises:
        FileNotFoundError: `pdftoppm` is not installed.
        RuntimeError: The PDF could not be made.
    """
    packet = build_packet(run, out=scratch, options=PacketOptions(html=False, pack=False, paper_size=size))
    if packet.pdf is None:
        raise RuntimeError(str(packet.paper_fault))
    command = ["pdftoppm", "-r", str(DOTS_AN_INCH), "-f", "1", "-l", "1", "-singlefile", "-png"]
    subprocess.run([*command, str(packet.pdf), str(target.with_suffix(""))], check=True)  # noqa: S603 # words of our own
    with Image.open(target) as picture:
        picture.save(target, optimize=True)


def wanted(folder: Path | None) -> Iterator[tuple[str, PaperSize, Path]]:
    """Yield state, sheet and file of every picture that is asked for."""
    if folder is None:
        yield from ((state, "A4", IMAGES / f"first_page_{state.replace(' ', '_')}.png") for state in SHOWN)
        return
    for state in STATES:
        yield from ((state, size, folder / f"{state.replace(' ', '_')}-{size}.png") for size in SIZES)


def main() -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="every state on both sheets")
    folder = parser.parse_args().all
    (folder or IMAGES).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        corpus = Corpus(scratch / "corpus")
        for state, size, target in wanted(folder):
            run = scratch / "run"
            make_state(state, corpus, run)
            print_first_page(run, scratch / "packet", target, size)
            sys.stdout.write(f"{target} ({target.stat().st_size} bytes)\n")


if __name__ == "__main__":
    main()

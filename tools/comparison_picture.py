"""Take the picture of a comparison that the documentation shows: `python -m tools.comparison_picture`.

The runs are made as a stranger makes them, of scripted policies, see `tests/support/rival_builder.py`; one of them
repeats its evaluation, so that it is withheld.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from rival_builder import build_rival

from molforge_eval.report.comparison_build import ComparisonOptions, compare_runs
from tools.packet_pictures import FOLDER, chromium_path, keep

POLICIES = ("heuristic", "heuristic+random_valid", "random_valid+heuristic", "random_valid", "do_nothing+random_valid")
SIZE = {"width": 1200, "height": 1000}


def main() -> None:
    """Write `comparison.png`: the page from its title to its footer."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = [
            build_rival(folder / f"run-{letter}", number, after=policy, seeds=8, settings={"max_grad_norm": 1 / number})
            for number, (letter, policy) in enumerate(zip("abcde", POLICIES, strict=True), start=1)
        ]
        made = compare_runs(runs, out=folder / "comparison", options=ComparisonOptions(pdf=False))
        if made.html is None:
            raise RuntimeError("the page was not made")
        keep(_photograph(made.html), FOLDER / "comparison.png")


def _photograph(page_file: Path) -> bytes:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto(page_file.resolve().as_uri())
        page.evaluate("document.fonts.ready")
        bottom = page.locator("#provenance").bounding_box()
        shot = page.screenshot(full_page=True)
        browser.close()
    with Image.open(io.BytesIO(shot)) as picture:
        low = picture.height if bottom is None else round(bottom["y"] + bottom["height"]) + 24
        cut = io.BytesIO()
        picture.crop((0, 0, picture.width, min(low, picture.height))).save(cut, format="PNG")
    return cut.getvalue()


if __name__ == "__main__":
    main()

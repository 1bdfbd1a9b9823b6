"""Take the pictures of a page that the documentation shows: on a desk in light and dark, on a phone, and answering.

Run it after the look changes, over the packet of a fresh demo run: `python -m tools.packet_pictures judge_packet.html`.
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images"
DESK = {"width": 1200, "height": 1000}
PHONE = {"width": 390, "height": 844}
_HUES = 192


def take_pictures(packet: Path, folder: Path) -> None:
    """Write `page_light.png`, `page_dark.png`, `page_phone.png` and `page_curve.png`."""
    address = packet.resolve().as_uri()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            page = _open(browser, address, DESK, scheme)
            keep(page.screenshot(), folder / f"page_{scheme}.png")
        keep(_on_phones(browser, address), folder / "page_phone.png")
        keep(_answering(browser, address), folder / "page_curve.png")
        browser.close()


def chromium_path() -> str | None:
    """Find the system's Chromium; Playwright's own where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def _open(browser: Browser, address: str, size: dict[str, int], scheme: str, sharpness: float = 1.0) -> Page:
    page = browser.new_page(viewport=size, color_scheme=scheme, device_scale_factor=sharpness)
    page.goto(address)
    page.wait_for_selector('.plot.drawn[data-chart="hero"]')
    return page


def _on_phones(browser: Browser, address: str) -> bytes:
    """Put the top of the page, its first chart and a learning curve side by side, as a phone shows them."""
    shots = []
    for place in (None, "figure.hero", "#learning"):
        page = _open(browser, address, PHONE, "light", sharpness=1.5)
        if place:
            page.locator(place).evaluate("node => node.scrollIntoView()")
            page.wait_for_timeout(1500)
        shots.append(Image.open(io.BytesIO(page.screenshot())))
    gap = 24
    width = sum(shot.width for shot in shots) + gap * (len(shots) - 1)
    sheet = Image.new("RGB", (width, shots[0].height), "#dfe2e7")
    for number, shot in enumerate(shots):
        sheet.paste(shot, (number * (shot.width + gap), 0))
    written = io.BytesIO()
    sheet.save(written, format="PNG")
    return written.getvalue()


def _answering(browser: Browser, address: str) -> bytes:
    """Point at the reward curve."""
    page = _open(browser, address, {"width": 1200, "height": 520}, "light")
    page.locator("#learning").evaluate("node => node.scrollIntoView()")
    plot = page.locator('.plot[data-chart="reward"]')
    page.wait_for_selector('.plot.drawn[data-chart="reward"]')
    page.wait_for_timeout(500)
    box = plot.bounding_box()
    if box is not None:
        page.mouse.move(box["x"] + box["width"] * 0.46, box["y"] + box["height"] * 0.5)
    page.wait_for_timeout(300)
    return page.screenshot()


def keep(data: bytes, path: Path) -> None:
    """Write a picture in as few colours as its flat grounds and grey letters need."""
    with Image.open(io.BytesIO(data)) as picture:
        picture.convert("RGB").quantize(_HUES, dither=Image.Dither.NONE).save(path, format="PNG", optimize=True)


if __name__ == "__main__":
    take_pictures(Path(sys.argv[1]), FOLDER)

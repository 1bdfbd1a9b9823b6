"""Packets in a real browser: the page with what it says and asks for, and runs that try to break out of theirs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evidence_builder import edit_json, reseal
from old_cases import CASES
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from molforge_eval import layout
from molforge_eval.report.build import PacketOptions, build_packet

HOSTILE = (
    "</script><img src=x onerror=\"document.title='owned'\"> <link rel=attachment href=file:///etc/passwd> "
    "{{ 7*7 }} <!-- datum.value \N{LINE SEPARATOR} <svg onload=\"document.title='owned'\"> "
    "\N{RIGHT-TO-LEFT OVERRIDE}gnp.exe " + "W" * 150
)


class Visit:
    """An opened page and everything that it said or asked for."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.messages: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("dialog", lambda dialog: self.messages.append(dialog.message))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(address)
        page.wait_for_timeout(200)

    @property
    def asked(self) -> list[str]:
        """Everything that was asked for, but for the typefaces that the page carries."""
        return [found for found in self.requests if not found.startswith("data:font/")]

    def chart(self, name: str) -> Locator:
        """Bring a chart into view and wait until it is drawn."""
        plot = self.page.locator(f'.plot[data-chart="{name}"]')
        plot.scroll_into_view_if_needed()
        self.page.wait_for_selector(f'.plot.drawn[data-chart="{name}"]')
        return plot

    def draw_all(self) -> list[str]:
        """Bring every chart into view, and return their names."""
        names = self.page.eval_on_selector_all(".plot", "found => found.map(plot => plot.dataset.chart)")
        for name in names:
            self.chart(name)
        return list(names)


def without_scripts(page: str) -> str:
    """Leave the scripts of a page out: what a browser without scripts has."""
    return re.sub(r"<script[^>]*>.*?</script>", "", page, flags=re.DOTALL)


def eventually(claim: Callable[[], object], page: Page) -> bool:
    """Wait some seconds for a claim to hold; the page's policy lets no test wait inside it."""
    for _ in range(100):
        if claim():
            return True
        page.wait_for_timeout(50)
    return False


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the system's Chromium; Playwright's own where there is none."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield found
        found.close()


def page_address(run: Path, **options: Any) -> str:
    """Build the page of a run and return the address under which a double click opens it."""
    packet = build_packet(run, options=PacketOptions(pdf=False, pack=False, **options))
    assert packet.html is not None
    return packet.html.resolve().as_uri()


def hostile_run(sound: Path, folder: Path) -> Path:
    """A run whose every text tries to break out of the page."""
    run = Path(shutil.copytree(sound, folder))
    edit_json(run, layout.AFTER, _poison_evaluation)
    edit_json(run, layout.BEFORE, _poison_evaluation)
    edit_json(run, layout.MANIFEST, _poison_manifest)
    reseal(run)
    return run


def hostile_old_run(sound: Path, folder: Path) -> Path:
    """The same in the layout of the public script."""
    poison: Callable[[Path], None] = CASES["hostile"]
    run = Path(shutil.copytree(sound, folder))
    poison(run)
    return run


def _poison_evaluation(value: Any) -> None:
    for episode in value["episodes"]:
        for step in episode["steps"]:
            step["arguments"]["rationale"] = HOSTILE
            step["response"] = HOSTILE
        for turn in episode["turns"]:
            turn["raw_completion"] = HOSTILE
        episode["ended_by"] = "no_call"


def _poison_manifest(value: Any) -> None:
    value["run_name"] = HOSTILE
    value["packages"][HOSTILE] = HOSTILE
    for key in ("base_model", "preset", "device", "output_root"):
        value["configuration"][key] = HOSTILE

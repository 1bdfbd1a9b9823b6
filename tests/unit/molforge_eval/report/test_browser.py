"""The page in a real browser: nothing is asked for, nothing is complained of, hostile text stays text."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from evidence_builder import edit_json, reseal
from old_cases import CASES
from playwright.sync_api import Browser, Page, sync_playwright

from molforge_eval import layout
from molforge_eval.report.build import PacketOptions, build_packet

HOSTILE = (
    "</script><img src=x onerror=\"document.title='owned'\"> <link rel=attachment href=file:///etc/passwd> "
    "{{ 7*7 }} <svg onload=\"document.title='owned'\"> \N{RIGHT-TO-LEFT OVERRIDE}gnp.exe " + "W" * 150
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def address(built_run: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A packet whose run tries to break out of it."""
    run = tmp_path_factory.mktemp("hostile") / "run"
    shutil.copytree(built_run, run)
    edit_json(run, layout.AFTER, _poison_evaluation)
    edit_json(run, layout.BEFORE, _poison_evaluation)
    edit_json(run, layout.MANIFEST, _poison_manifest)
    reseal(run)
    packet = build_packet(run, options=PacketOptions(pdf=False, pack=False, title=HOSTILE[:200]))
    assert packet.html is not None
    return packet.html.resolve().as_uri()


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_asks_for_nothing_and_complains_of_nothing(browser, address, scheme, width) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    visit = Visit(page, address)
    asked = [found for found in visit.requests if not found.startswith("data:font/")]

    assert visit.messages == []
    assert asked == [address]
    assert page.title() != "owned"
    assert page.locator("img").count() == page.locator("link").count() == page.locator("iframe").count() == 0
    page.close()


@pytest.mark.parametrize("width", [1280, 768, 390])
def test_nothing_is_wider_than_the_page(browser, address, width) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    Visit(page, address)

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_hostile_text_is_shown_as_it_was_written(browser, address) -> None:
    page = browser.new_page()
    Visit(page, address)

    assert "</script><img src=x" in page.locator("#transcripts").inner_text()
    assert "{{ 7*7 }}" in page.locator("h1").inner_text()
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in page.locator("main").inner_text()
    page.close()


def test_charts_and_faces_are_there_without_a_script(browser, address) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)

    assert page.locator("svg.chart").count() >= 8
    assert min(chart.bounding_box()["height"] for chart in page.locator("svg.chart").all()) > 40
    assert not page.locator("#theme").is_visible()
    context.close()


def test_the_shipped_faces_are_used(browser, address) -> None:
    page = browser.new_page()
    Visit(page, address)

    assert page.evaluate(
        "document.fonts.check('700 16px Inter') && [...document.fonts].some(f => f.status === 'loaded')"
    )
    page.close()


def test_the_reader_turns_the_page_dark_by_keyboard(browser, address) -> None:
    page = browser.new_page(color_scheme="light")
    visit = Visit(page, address)
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(ground)
    page.locator("#theme").focus()
    page.keyboard.press("Enter")

    assert page.evaluate(ground) != light
    assert page.locator("#theme").get_attribute("aria-pressed") == "true"
    assert visit.messages == []
    page.close()


def test_a_dark_page_shows_its_charts_in_dark_colours(browser, address) -> None:
    page = browser.new_page(color_scheme="dark")
    Visit(page, address)
    ink = "getComputedStyle(document.querySelector('svg.chart text')).fill"
    dark = page.evaluate(ink)
    page.emulate_media(color_scheme="light")

    assert page.evaluate(ink) != dark
    page.close()


def test_the_first_key_leads_past_the_contents(browser, address) -> None:
    page = browser.new_page()
    Visit(page, address)
    page.keyboard.press("Tab")

    assert page.evaluate("document.activeElement.className") == "skip"
    page.close()


@pytest.fixture(scope="module")
def old_address(old_run: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A packet of a run in the public script's layout that tries to break out of it."""
    run = tmp_path_factory.mktemp("hostile-old") / "run"
    shutil.copytree(old_run, run)
    CASES["hostile"](run)
    packet = build_packet(run, options=PacketOptions(pdf=False, pack=False))
    assert packet.html is not None
    return packet.html.resolve().as_uri()


@pytest.mark.parametrize("width", [1280, 390])
def test_a_packet_of_the_old_layout_asks_for_nothing_and_is_no_wider_than_the_page(browser, old_address, width) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    visit = Visit(page, old_address)

    assert visit.messages == []
    assert [found for found in visit.requests if not found.startswith("data:font/")] == [old_address]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("img").count() == 0
    assert "</script><img src=x" in page.locator("#traces").inner_text()
    page.close()


@pytest.mark.parametrize(("width", "shown"), [(1280, "svg.desk"), (390, "svg.narrow")])
def test_the_first_chart_is_shown_whole_at_any_width(browser, address, width, shown) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    Visit(page, address)
    visible = [form for form in ("svg.desk", "svg.narrow") if page.locator(form).is_visible()]
    box = page.locator(shown).bounding_box()

    assert visible == [shown]
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    page.close()

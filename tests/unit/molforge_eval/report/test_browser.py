"""The page in a real browser: nothing is asked for, nothing is complained of, hostile text stays text."""

from __future__ import annotations

import pytest
from packet_pages import Visit


@pytest.fixture(scope="module")
def visit(browser, hostile_address):
    """A page on a desk that tests use one after the other, each leaving it as it was."""
    visit = Visit(browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light"), hostile_address)
    yield visit
    visit.page.close()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_the_page_asks_for_nothing_and_complains_of_nothing(browser, hostile_address, scheme, width) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    visit = Visit(page, hostile_address)
    visit.draw_all()
    page.emulate_media(color_scheme="light" if scheme == "dark" else "dark")
    page.wait_for_timeout(200)

    assert visit.messages == []
    assert visit.asked == [hostile_address]
    assert page.title() != "owned"
    assert page.locator("img").count() == page.locator("link").count() == page.locator("iframe").count() == 0
    page.close()


@pytest.mark.parametrize("width", [1280, 768, 390, 320])
def test_nothing_is_wider_than_the_page(visit, width) -> None:
    visit.page.set_viewport_size({"width": width, "height": 900})

    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    visit.page.set_viewport_size({"width": 1280, "height": 900})


def test_hostile_text_is_shown_as_it_was_written(visit) -> None:
    page = visit.page

    assert "</script><img src=x" in page.locator("#transcripts").inner_text()
    assert "{{ 7*7 }}" in page.locator("h1").inner_text()
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in page.locator("main").inner_text()


@pytest.mark.parametrize("width", [1280, 390])
def test_charts_are_there_without_a_script_and_nothing_waits_for_one(browser, hostile_address, width) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": width, "height": 900})
    page = context.new_page()
    page.goto(hostile_address)
    plots = page.locator(".plot").all()
    seen = [[chart for chart in plot.locator("svg.chart").all() if chart.is_visible()] for plot in plots]

    assert len(plots) >= 8
    assert [len(charts) for charts in seen] == [1] * len(plots)
    assert min(charts[0].bounding_box()["height"] for charts in seen) > 40
    for waiting in (".live", ".tasks", ".ask", "#theme", "#keys-curve"):
        assert not page.locator(waiting).first.is_visible()
    context.close()


def test_the_shipped_faces_are_used(visit) -> None:
    assert visit.page.evaluate(
        "document.fonts.check('700 16px Inter') && [...document.fonts].some(f => f.status === 'loaded')"
    )


def test_the_reader_turns_the_page_dark_by_keyboard(visit) -> None:
    page = visit.page
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(ground)
    page.locator("#theme").focus()
    page.keyboard.press("Enter")

    assert page.evaluate(ground) != light
    assert page.locator("#theme").get_attribute("aria-pressed") == "true"
    page.keyboard.press("Enter")

    assert page.evaluate(ground) == light
    assert visit.messages == []


def test_a_dark_page_shows_its_charts_in_dark_colours(browser, hostile_address) -> None:
    page = browser.new_page(color_scheme="dark")
    Visit(page, hostile_address)
    ink = "getComputedStyle(document.querySelector('.drawn .live svg text')).fill"
    page.wait_for_selector(".plot.drawn")
    dark = page.evaluate(ink)
    page.emulate_media(color_scheme="light")

    assert page.evaluate(ink) != dark
    page.close()


def test_the_first_key_leads_past_the_contents(browser, hostile_address) -> None:
    page = browser.new_page()
    Visit(page, hostile_address)
    page.keyboard.press("Tab")

    assert page.evaluate("document.activeElement.className") == "skip"
    page.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_a_packet_of_the_old_layout_asks_for_nothing_and_is_no_wider_than_the_page(
    browser, hostile_old_address, width
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    visit = Visit(page, hostile_old_address)

    assert visit.messages == []
    assert visit.asked == [hostile_old_address]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("img").count() == 0
    assert "</script><img src=x" in page.locator("#traces").inner_text()
    page.close()

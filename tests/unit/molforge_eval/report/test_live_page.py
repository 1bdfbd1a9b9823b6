"""The charts of the page answer to pointer, wheel, keys and task buttons, and the still ones stay behind them."""

from __future__ import annotations

import io
import re

import pypdf
import pytest
from packet_pages import Visit, eventually

TICKS = "plot => [...plot.querySelectorAll('.live .role-axis-label text')].map(text => text.textContent).sort()"


@pytest.fixture(scope="module")
def visit(browser, sound_address):
    """A page on a desk that the tests of this file use one after the other, each leaving it as it was."""
    visit = Visit(browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light"), sound_address)
    yield visit
    visit.page.close()


@pytest.fixture
def tip(visit):
    yield visit.page.locator(".tip")
    visit.page.mouse.move(2, 2)


def ticks_of(plot) -> list[str]:
    """Texts along the axes of a chart."""
    return plot.evaluate(TICKS)


def middle_of(plot) -> tuple[float, float]:
    box = plot.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 3


def test_every_chart_is_drawn_over_its_still_picture_and_shows_the_same_marks(visit) -> None:
    names = visit.draw_all()
    sizes = {name: visit.chart(name).locator(".live svg").bounding_box() for name in names}
    texts = "node => [...node.querySelectorAll('text')].map(text => text.textContent).sort()"

    assert len(names) >= 8
    assert all(box["width"] > 250 and box["height"] > 80 for box in sizes.values())
    for name in names:
        plot = visit.chart(name)
        still = plot.locator(".still svg").first

        assert not still.is_visible()
        assert plot.locator(".live svg").evaluate(texts) == still.evaluate(texts), name
    assert visit.messages == []


def test_the_page_does_not_move_when_a_chart_is_drawn(browser, sound_address) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    shape = "() => [...document.querySelectorAll('.plot')].map(plot => plot.getBoundingClientRect().height)"
    visit = Visit(page, sound_address)
    visit.draw_all()
    drawn = page.evaluate(shape)
    page.evaluate("() => document.querySelectorAll('.plot').forEach(plot => plot.classList.remove('drawn'))")
    still = page.evaluate(shape)

    assert max(abs(first - second) for first, second in zip(drawn, still, strict=True)) < 8
    page.close()


def test_a_curve_tells_the_step_under_the_pointer(visit, tip) -> None:
    plot = visit.chart("loss")
    visit.page.mouse.move(*middle_of(plot))
    told = tip.inner_text().split("\n")

    assert re.fullmatch(r"optimizer step \d+", told[0])
    assert re.fullmatch(r"loss: \N{MINUS SIGN}?[0-9.e-]+", told[1])
    assert re.fullmatch(r"mean of the last 10 points: \N{MINUS SIGN}?[0-9.e-]+", told[2])
    assert re.fullmatch(r"line \d+ of the log", told[3])
    assert plot.locator(".rule").is_visible()
    assert plot.locator(".dot").count() == 2


def test_a_mark_tells_its_number_as_the_evidence_spells_it(visit, tip) -> None:
    plot = visit.chart("hero")
    mark = plot.locator(".live .mark-symbol.role-mark path").first
    mark.hover(force=True)
    told = tip.inner_text().split("\n")
    number_id = told[-1]
    listed = visit.page.locator(f'[id="n-{number_id}"] td').first.text_content()

    assert re.fullmatch(r"score\.[A-Za-z0-9_:-]+\.[a-z_]+", number_id)
    assert told[1].endswith(f": {listed}")


def test_a_drag_looks_closer_and_a_double_click_shows_all_again(visit) -> None:
    plot = visit.chart("loss")
    whole = ticks_of(plot)
    x, y = middle_of(plot)
    visit.page.mouse.move(x - 40, y)
    visit.page.mouse.down()
    visit.page.mouse.move(x + 40, y)
    brush = plot.locator(".brush").is_visible()
    visit.page.mouse.up()

    assert brush
    assert eventually(lambda: ticks_of(plot) != whole, visit.page)
    visit.page.mouse.dblclick(x, y)

    assert eventually(lambda: ticks_of(plot) == whole, visit.page)


def test_a_wheel_scrolls_the_page_and_looks_closer_only_with_control(visit) -> None:
    plot = visit.chart("loss")
    whole = ticks_of(plot)
    visit.page.mouse.move(*middle_of(plot))
    before = visit.page.evaluate("window.scrollY")
    visit.page.mouse.wheel(0, 40)

    assert eventually(lambda: visit.page.evaluate("window.scrollY") != before, visit.page)
    assert ticks_of(plot) == whole
    visit.page.mouse.move(*middle_of(visit.chart("loss")))
    visit.page.keyboard.down("Control")
    for _ in range(4):
        visit.page.mouse.wheel(0, -40)
    visit.page.keyboard.up("Control")

    assert eventually(lambda: ticks_of(plot) != whole, visit.page)
    plot.locator(".tools button").last.click()

    assert eventually(lambda: ticks_of(plot) == whole, visit.page)


def test_a_reader_with_a_keyboard_alone_reads_and_looks_closer(visit, tip) -> None:
    visit.chart("reward")
    plot = visit.chart("loss")
    whole = ticks_of(plot)
    page = visit.page
    page.evaluate("document.querySelector('.plot[data-chart=\"reward\"]').focus()")
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.chart"):
            break

    assert page.evaluate("document.activeElement.dataset.chart") == "loss"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("ArrowRight")
    first = tip.inner_text()
    page.keyboard.press("ArrowRight")

    assert tip.inner_text() != first
    page.keyboard.press("+")

    assert eventually(lambda: ticks_of(plot) != whole, page)
    page.keyboard.press("0")

    assert eventually(lambda: ticks_of(plot) == whole, page)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Escape")

    assert not tip.is_visible()
    page.keyboard.press("Tab")

    assert page.evaluate("document.activeElement.dataset.chart") != "loss"


def test_arrow_keys_go_through_the_marks_of_a_chart(visit, tip) -> None:
    plot = visit.chart("hero")
    plot.focus()
    told = []
    for _ in range(3):
        visit.page.keyboard.press("ArrowRight")
        told.append(tip.inner_text())

    assert len(set(told)) == 3
    assert plot.locator(".ring").is_visible()
    plot.blur()

    assert not tip.is_visible()
    assert not plot.locator(".ring").count()


def test_the_task_buttons_show_and_hide_rows_of_chart_and_tables(visit) -> None:
    page = visit.page
    plot = visit.chart("hero")
    names = "plot => [...plot.querySelectorAll('.live .mark-text text')].map(text => text.textContent).sort()"
    whole = plot.evaluate(names)
    bar = page.locator(".tasks").first
    rows = page.locator("tr[data-task]")
    shown = rows.count()
    bar.locator("button").first.focus()
    page.keyboard.press("Space")

    assert eventually(lambda: len(plot.evaluate(names)) < len(whole), page)
    fewer = [row for row in rows.all() if row.is_visible()]

    assert page.locator('.tasks button[aria-pressed="false"]').count() == page.locator(".tasks").count() == 3
    assert len(fewer) == shown * 2 // 3
    assert set(plot.evaluate(names)) < set(whole)
    assert "mean" in plot.evaluate(names)
    assert "2 of 3 tasks" in bar.inner_text()
    for button in bar.locator("button").all()[1:]:
        button.click()

    assert eventually(lambda: plot.evaluate(names) == whole, page)
    assert len([row for row in rows.all() if row.is_visible()]) == shown
    assert page.locator('.tasks button[aria-pressed="false"]').count() == 0


def test_the_task_buttons_show_and_hide_panels_columns_and_episodes(visit) -> None:
    page = visit.page
    plot = visit.chart("seeds")
    titles = "plot => [...plot.querySelectorAll('.live .role-title-text text')].map(text => text.textContent)"
    whole = plot.evaluate(titles)
    width = plot.locator(".live svg").bounding_box()["width"]
    axis = ticks_of(plot)
    bar = page.locator("#transcripts .tasks")
    buttons = bar.locator("button").all()
    scripts = page.locator("#transcripts article")
    tasks = {script.get_attribute("data-task") for script in scripts.all()}
    columns = page.locator(".by-seed thead th")
    shown = columns.count()
    for button in buttons[1:]:
        button.focus()
        page.keyboard.press("Enter")

    assert [button.get_attribute("aria-pressed") for button in buttons] == ["true", "false", "false"]
    assert eventually(lambda: len(plot.evaluate(titles)) == len(whole) - 2, page)
    assert set(plot.evaluate(titles)) < set(whole)
    assert abs(plot.locator(".live svg").bounding_box()["width"] - width) < 4
    assert len([column for column in columns.all() if column.is_visible()]) == shown - 2
    assert {s.get_attribute("data-task") for s in scripts.all() if s.is_visible()} == tasks & {"0"}
    assert page.locator(".none-left").is_visible() == ("0" not in tasks)
    assert bar.locator("[aria-live=polite]").inner_text() == "1 of 3 tasks shown; the mean is over all of them."
    assert page.locator(".tasks [aria-live=polite]").count() == 1
    buttons[0].focus()
    page.keyboard.press("Space")

    assert [button.get_attribute("aria-pressed") for button in buttons] == ["true"] * 3
    assert eventually(lambda: plot.evaluate(titles) == whole and ticks_of(plot) == axis, page)
    assert all(script.is_visible() for script in scripts.all())
    assert visit.messages == []


def test_without_the_first_task_the_next_panel_carries_the_axis_of_the_seeds(visit) -> None:
    page = visit.page
    plot = visit.chart("seeds")
    titles = "plot => plot.querySelectorAll('.live .role-title-text text').length"
    whole = plot.evaluate(titles)
    seeds = {tick for tick in ticks_of(plot) if "." not in tick}
    first = page.locator("#results .tasks button").first
    first.click()

    assert eventually(lambda: 0 < plot.evaluate(titles) < whole, page)
    assert {tick for tick in ticks_of(plot) if "." not in tick} == seeds
    first.click()
    assert eventually(lambda: plot.evaluate(titles) == whole, page)
    assert visit.messages == []


@pytest.mark.parametrize("width", [390, 320])
def test_a_phone_shows_every_chart_whole_and_its_text_large_enough(browser, sound_address, width) -> None:
    page = browser.new_page(viewport={"width": width, "height": 844}, has_touch=True, is_mobile=True)
    visit = Visit(page, sound_address)
    smallest = {}
    for name in visit.draw_all():
        box = visit.chart(name).locator(".live svg").bounding_box()
        smallest[name] = visit.chart(name).evaluate(
            """plot => {
              const svg = plot.querySelector('.live svg');
              const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
              const sizes = [...svg.querySelectorAll('text')].map(text => parseFloat(getComputedStyle(text).fontSize));
              return Math.min(...sizes) * scale;
            }"""
        )

        assert box["x"] >= 0, name
        assert box["x"] + box["width"] <= width + 1, name
    assert {name: size for name, size in smallest.items() if size < 8} == {}
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not page.locator(".contents li").first.is_visible()
    page.locator(".contents summary").tap()

    assert page.locator(".contents li").first.is_visible()
    page.close()


def test_a_finger_reads_a_curve_and_scrolls_the_page_over_it(browser, sound_address) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    visit = Visit(page, sound_address)
    plot = visit.chart("loss")
    page.touchscreen.tap(*middle_of(plot))

    assert page.locator(".tip").is_visible() or plot.locator(".tools").is_visible()
    assert plot.evaluate("plot => getComputedStyle(plot).touchAction") == "pan-y"
    page.close()


def test_a_page_that_becomes_narrow_draws_its_wide_charts_again(visit) -> None:
    plot = visit.chart("reward")
    wide = plot.locator(".live svg").evaluate("svg => svg.viewBox.baseVal.width")
    width = "document.querySelector('.plot[data-chart=reward].drawn .live svg')?.viewBox.baseVal.width"
    visit.page.set_viewport_size({"width": 390, "height": 844})

    assert eventually(lambda: (visit.page.evaluate(width) or wide) < wide, visit.page)
    visit.page.set_viewport_size({"width": 1280, "height": 900})

    assert eventually(lambda: visit.page.evaluate(width) == wide, visit.page)
    assert visit.messages == []


def test_print_has_the_still_charts_in_light_colours_and_every_row(browser, sound_address) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="dark")
    visit = Visit(page, sound_address)
    visit.draw_all()
    page.locator(".tasks button").first.click()
    page.locator("#theme").click()
    page.locator("#theme").click()
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 700, "height": 900})
    plots = page.locator(".plot").all()
    stills = [[svg for svg in plot.locator(".still svg").all() if svg.is_visible()] for plot in plots]

    assert [len(found) for found in stills] == [1] * len(stills)
    assert page.locator(".chart.narrow:visible").count() == 0
    for hidden in (".live", ".tasks", ".contents", ".skip", ".ask", ".tools"):
        assert page.locator(f"{hidden}:visible").count() == 0, hidden
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    assert all(row.is_visible() for row in page.locator("tr[data-task]").all())
    printed = pypdf.PdfReader(io.BytesIO(page.pdf(format="A4", page_ranges="1"))).pages

    assert "Root hash" in printed[0].extract_text()
    assert "Where each criterion is answered" not in printed[0].extract_text()
    page.close()


def test_a_chart_that_cannot_be_drawn_keeps_its_still_picture(browser, sound_address) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.add_init_script(
        "const embed = () => Promise.reject(new Error('no'));"
        "Object.defineProperty(window, 'vegaEmbed', { get: () => embed, set: () => {} });"
    )
    visit = Visit(page, sound_address)

    assert eventually(lambda: "hero: no" in visit.messages, page)
    assert page.locator(".plot.drawn").count() == 0
    assert page.locator('.plot[data-chart="hero"] .still svg').first.is_visible()
    page.close()

"""The page of a comparison: every numeral from its evidence, in a real browser, sound to axe-core."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from numeral_walk import Stray, strays
from packet_pages import HOSTILE, Visit

from molforge_eval.catalogue import finding
from molforge_eval.ladder import ladder
from molforge_eval.report.comparison_assembly import assemble_comparison
from molforge_eval.report.comparison_build import draw_comparison
from molforge_eval.report.comparison_evidence import ComparisonEvidence
from molforge_eval.report.comparison_pages import render_comparison_page, write_comparison_sheet
from molforge_eval.report.rivals import Entry, enter_runs

GRAVE = {"serious", "critical"}
ERROR = finding("SCORE_DIFFERS", "final_score is 0.9, the episode gives 0.1", file="eval_after_training.json")
CASES = ("two apart", "three", "ties", "short", "refused", "withheld", "nothing", "twelve", "hostile")


@pytest.fixture(scope="module")
def compared(entry, scored, plan):
    """Compare the runs of one of `CASES`."""
    other = tuple(
        part.model_copy(update={"decoding": part.decoding.model_copy(update={"temperature": 0.7})})
        if part.name == "sampled"
        else part
        for part in plan.parts
    )
    few = tuple(
        part.model_copy(update={"seeds": part.seeds[:4]}) if part.name == "sampled" else part for part in plan.parts
    )

    def short() -> Entry:
        evaluation = scored(0.9, played=plan.model_copy(update={"parts": few}))
        kept = tuple(e for e in evaluation.episodes if e.part == "greedy" or e.seed in few[1].seeds)
        return entry(3, evaluation.model_copy(update={"episodes": kept}))

    unlike = plan.model_copy(update={"parts": other})
    cases = {
        "two apart": lambda: [entry(1, 0.3), entry(2, 0.7)],
        "three": lambda: [entry(1, 0.9, max_grad_norm=0.5), entry(2, 0.3), entry(3, 0.6)],
        "ties": lambda: [entry(1, scored(0.5, spread=0.3)), entry(2, scored(0.52, spread=0.3, turn=3)), entry(3, 0.9)],
        "short": lambda: [entry(1, 0.1), entry(2, 0.5), short()],
        "refused": lambda: [entry(1, 0.3), entry(2, 0.7), entry(3, scored(0.7, played=unlike))],
        "withheld": lambda: [entry(1, 0.3), entry(2, 0.7, findings=(ERROR,), level="E1"), entry(3, None)],
        "nothing": lambda: [entry(1, None), entry(2, 0.7, findings=(ERROR,), level="E1")],
        "twelve": lambda: [entry(number, 0.07 * number) for number in range(1, 13)],
        "hostile": lambda: [entry(number, 0.2 * number, name=f"{number} {HOSTILE}"[:200]) for number in (1, 2, 3)],
    }
    made: dict[str, ComparisonEvidence] = {}

    def compare(case: str) -> ComparisonEvidence:
        if case not in made:
            made[case] = assemble_comparison(enter_runs(cases[case]()), ladder())
        return made[case]

    return compare


@pytest.fixture(scope="module")
def figures_of(compared):
    made: dict[str, dict] = {}

    def draw(case: str) -> dict:
        if case not in made:
            made[case] = draw_comparison(compared(case))
        return made[case]

    return draw


@pytest.fixture(scope="module")
def page_of(compared, figures_of):
    made: dict[str, str] = {}

    def make(case: str) -> str:
        if case not in made:
            made[case] = render_comparison_page(compared(case), figures_of(case)).decode()
        return made[case]

    return make


@pytest.fixture(scope="module")
def address(page_of, tmp_path_factory):
    """The address under which a double click opens the page of a case."""

    def of(case: str) -> str:
        path: Path = tmp_path_factory.mktemp("comparison") / "comparison.html"
        path.write_text(page_of(case), encoding="utf-8")
        return path.as_uri()

    return of


@pytest.mark.parametrize("case", CASES)
def test_every_numeral_of_a_page_and_a_sheet_has_its_origin(compared, figures_of, page_of, case) -> None:
    evidence = compared(case)
    sheet = write_comparison_sheet(evidence, figures_of(case), created="some day")
    pictures = "".join(data.decode() for name, data in sheet.shelf.items() if name.endswith(".svg"))

    assert strays(page_of(case), evidence) == []
    assert strays(sheet.markup + pictures, evidence) == []


def test_a_numeral_of_ones_own_is_found(compared, tmp_path) -> None:
    evidence = compared("three")
    (tmp_path / "compare_numbers.html.j2").write_text('<p>3.14159</p><b data-n="runs.named">7</b>')
    found = strays(render_comparison_page(evidence, {}, templates=tmp_path).decode(), evidence)

    assert [stray.numeral for stray in found] == ["3.14159", "7"]
    assert Stray("7", "not what runs.named says") in found


@pytest.mark.parametrize("case", CASES)
def test_every_number_links_to_how_it_is_made_and_back(compared, page_of, case) -> None:
    page = page_of(case)
    placed = set(re.findall(r'<a class="n" data-n="[^"]+" href="#n-([^"]+)"', page))
    ids = re.findall(r'\bid="([^"]+)"', page)

    assert len(placed) > 5
    assert placed <= {number.id for number in compared(case).numbers}
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
    assert len(ids) == len(set(ids))


def test_the_grid_tells_of_every_two_runs_how_they_stand(compared) -> None:
    evidence = compared("ties")
    page = render_comparison_page(evidence, {}).decode()
    said = re.findall(r'<span class="heard"> (r\d) ([a-z ]+) (r\d)</span>', page)

    assert sorted(said) == [
        ("r1", "is not told from", "r2"),
        ("r1", "scores lower than", "r3"),
        ("r2", "is not told from", "r1"),
        ("r2", "scores lower than", "r3"),
        ("r3", "scores higher than", "r1"),
        ("r3", "scores higher than", "r2"),
    ]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("two apart", "run-1 scores under run-2"),
        ("three", "run-1 scores above run-2 and run-3; run-3 scores above run-2: 3 of 3 tested pairs told apart"),
        ("ties", "run-3 scores above run-1 and run-2: 2 of 3 tested pairs told apart"),
        ("refused", "2 pairs measure not the same thing and are not compared"),
        ("nothing", "No difference between runs is claimed"),
        ("twelve", "No tested pair of 66 is told apart"),
    ],
)
def test_the_sentence_of_the_outcome_names_the_runs(compared, case, words) -> None:
    page = render_comparison_page(compared(case), {}).decode()
    sentence = re.search(r'aria-label="Outcome">.*?</div>', page, re.DOTALL)
    assert sentence is not None
    said = " ".join(re.sub(r"<[^>]+>", "", sentence[0]).split())

    assert words in said


@pytest.mark.parametrize("case", ["ties", "hostile"])
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_the_page_asks_for_nothing_says_nothing_and_axe_finds_nothing_serious(
    browser, address, case, scheme, width
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    at = address(case)
    visit = Visit(page, at)
    found = Axe().run(page, context={"exclude": [["svg > *"]]}).response

    assert visit.messages == []
    assert visit.asked == [at]
    assert page.title() != "owned"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert len(found["passes"]) > 12
    assert [(fault["id"], fault["nodes"][0]["html"]) for fault in found["violations"] if fault["impact"] in GRAVE] == []
    page.close()


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_without_scripts_chart_grid_and_tables_are_there(browser, address, width) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": width, "height": 900})
    page = context.new_page()
    page.goto(address("ties"))
    charts = [chart for chart in page.locator("svg.chart").all() if chart.is_visible()]

    assert len(charts) == 1
    assert charts[0].bounding_box()["width"] <= width
    assert page.locator(".grid-of-runs td .icon").count() == 6
    assert page.locator("table").count() == 5
    context.close()


def test_a_dark_page_shows_its_chart_in_dark_colours(browser, address) -> None:
    page = browser.new_page(color_scheme="dark")
    Visit(page, address("ties"))
    ink = "getComputedStyle(document.querySelector('svg.chart text')).fill"
    dark = page.evaluate(ink)
    page.emulate_media(color_scheme="light")

    assert page.evaluate(ink) != dark
    page.close()


def test_a_keyboard_reaches_every_table_that_scrolls_and_every_number_once(browser, address) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 900})
    Visit(page, address("ties"))
    links = "[...document.querySelectorAll('main > *:not(#numbers) a.n')]"
    stops = page.evaluate(f"{links}.filter(link => link.tabIndex === 0).map(link => link.dataset.n)")

    assert page.locator(".scroll:not([tabindex='0'])").count() == 0
    assert len(stops) == len(set(stops)) > 40
    assert page.evaluate(f"{links}.length") > len(stops)
    page.close()


def test_a_run_of_a_lower_level_says_why(entry) -> None:
    low = [entry(1, 0.3, level="E2"), entry(2, 0.7)]
    evidence = assemble_comparison(enter_runs(low), ladder())
    page = render_comparison_page(evidence, {}).decode()

    assert dataclasses.is_dataclass(low[0].checked.run)
    assert f'<span class="key">r1</span> {evidence.run("r1").level_reason}' in page

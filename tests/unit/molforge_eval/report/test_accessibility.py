"""axe-core looks at the page as it stands in a browser: in both schemes, on a desk and on a phone, for both layouts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from packet_pages import Visit, page_address

GRAVE = {"serious", "critical"}
# The inside of a picture has no part in what a reader hears: each has one text, and is otherwise hidden.
LOOKED_AT = {"exclude": [["svg > *"]]}

OF_COLOURS = {"runOnly": ["color-contrast", "color-contrast-enhanced", "link-in-text-block"]}
"""The rules that look at colours: all that a dark page could break and a light one could not."""


@pytest.fixture(scope="module")
def old_address(old_run: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_address(Path(shutil.copytree(old_run, tmp_path_factory.mktemp("old-sound") / "run")))


def grave(found) -> list[tuple[str, str]]:
    return [(fault["id"], fault["nodes"][0]["html"]) for fault in found["violations"] if fault["impact"] in GRAVE]


@pytest.mark.parametrize("layout", ["sound_address", "old_address"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_serious(browser, request, layout, width) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme="light")
    visit = Visit(page, request.getfixturevalue(layout))
    visit.draw_all()
    page.evaluate("window.scrollTo(0, 0)")
    light = Axe().run(page, context=LOOKED_AT).response

    assert len(light["passes"]) > 15
    assert grave(light) == []
    if width > 1000:
        page.emulate_media(color_scheme="dark")
        dark = Axe().run(page, context=LOOKED_AT, options=OF_COLOURS).response

        assert "color-contrast" in {rule["id"] for rule in dark["passes"]}
        assert grave(dark) == []
    page.close()


def test_axe_finds_a_fault_where_there_is_one(browser, sound_address) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    Visit(page, sound_address)
    page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    found = Axe().run(page, options={"runOnly": ["button-name"]}).response

    assert "button-name" in {fault["id"] for fault in found["violations"] if fault["impact"] in GRAVE}
    page.close()

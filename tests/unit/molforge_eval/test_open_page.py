from __future__ import annotations

import time
from pathlib import Path

import pytest

from molforge_eval.cli.browser import open_page


def test_a_machine_without_a_screen_says_so_in_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    open_page(tmp_path / "page.html", {})
    assert capfd.readouterr().err == f"there is no screen here to open the page on: {tmp_path / 'page.html'}\n"


def test_the_opener_of_the_system_gets_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "told"
    opener = tmp_path / "xdg-open"
    opener.write_text(f'#!/bin/sh\nprintf %s "$1" > {told}.new && mv {told}.new {told}\n')
    opener.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    page = tmp_path / "a page.html"

    open_page(page, {"DISPLAY": ":0"})
    end = time.monotonic() + 20
    while not told.exists() and time.monotonic() < end:
        time.sleep(0.02)

    assert told.read_text() == str(page)


def test_a_system_without_an_opener_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    open_page(tmp_path / "page.html", {"DISPLAY": ":0"})
    assert capfd.readouterr().err == f"no browser opened the page: {tmp_path / 'page.html'}\n"

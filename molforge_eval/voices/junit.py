"""Findings as JUnit XML: a suite a run, a test case a code, and one for the level.

Only codes that were found have a test case: a code that nothing was found of may not have been looked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from molforge_eval.catalogue import printable
from molforge_eval.findings import Finding
from molforge_eval.voices.judged_run import JudgedRun, count_text, groups_of, level_text, place_text, waiver_lines

_COUNTED = (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))


def render(runs: Sequence[JudgedRun]) -> str:
    """Spell runs as one XML 1.0 document."""
    top = ET.Element("testsuites", name="molforge-eval")
    for run in runs:
        _add_suite(top, run)
    _count(top)
    ET.indent(top)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(top, encoding="unicode") + "\n"


def _add_suite(top: ET.Element, run: JudgedRun) -> None:
    suite = ET.SubElement(top, "testsuite", name=run.name)
    if run.result is None:
        case = ET.SubElement(suite, "testcase", classname=run.name, name="readable")
        what, text = ("not read", "") if run.error is None else (run.error.what, str(run.error.mend))
        _tell(case, "error", message=what, kind="unreadable", lines=[text])
    else:
        told = {"level": run.result.level or "none", "findings": count_text(run.result)}
        if run.result.only:
            told |= {"only": ", ".join(run.result.only), "left_out": str(run.result.left_out)}
        properties = ET.SubElement(suite, "properties")
        for name, value in told.items():
            ET.SubElement(properties, "property", name=name, value=value)
        level = ET.SubElement(suite, "testcase", classname=run.name, name="level")
        if run.shortfall is not None:
            _tell(level, "failure", message=run.shortfall, kind="level", lines=[level_text(run.result)])
        for group in groups_of(run.result):
            _add_case(suite, run, group)
        for number, line in enumerate(waiver_lines(run.result), start=1):
            # A waiver is a test that was not run: reports show it beside those that were.
            waiver = ET.SubElement(suite, "testcase", classname=run.name, name=f"waiver {number}")
            ET.SubElement(waiver, "skipped", message=printable(line))
    _count(suite)


def _add_case(suite: ET.Element, run: JudgedRun, group: Sequence[Finding]) -> None:
    """Add the test case of one code; what does not fail the run is told as output of a test that passed."""
    first = group[0]
    case = ET.SubElement(suite, "testcase", classname=run.name, name=first.code)
    lines = [f"{finding.what}  [{place_text(finding)}]" for finding in group]
    unseen = 0 if run.result is None else run.result.omitted.get(first.code, 0)
    if unseen:
        lines.append(f"{unseen} more were counted and not kept")
    lines.append(f"mend: {first.mend}")
    if run.fails_by(first):
        _tell(case, "failure", message=first.what, kind=first.severity, lines=lines)
    else:
        ET.SubElement(case, "system-out").text = _text(lines)


def _tell(case: ET.Element, tag: str, *, message: str, kind: str, lines: Sequence[str]) -> None:
    ET.SubElement(case, tag, message=printable(message), type=kind).text = _text(lines)


def _text(lines: Sequence[str]) -> str:
    # What is not printable has no place in XML 1.0 either: controls, surrogates, U+FFFE and U+FFFF.
    return "\n".join(printable(line) for line in lines)


def _count(element: ET.Element) -> None:
    for attribute, tag in _COUNTED:
        element.set(attribute, str(len(list(element.iter(tag)))))

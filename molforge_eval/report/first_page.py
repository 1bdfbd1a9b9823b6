"""What the first page of a packet PDF says, written again from its evidence, and where a page says something else.

The words are compared in their order and without blanks, up to the last word of the page; what stands in its chart and
at its foot is held to the words that can stand there. A drawing over the words is not seen by this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

from jinja2 import TemplateError

from molforge_eval.report.evidence import Evidence
from molforge_eval.report.glyphs import name_undrawn
from molforge_eval.report.ladder_chart import MARKS, has_own_score
from molforge_eval.report.numerals import short_hash
from molforge_eval.report.quoting import quote
from molforge_eval.report.render import Svg
from molforge_eval.report.theme import palettes
from molforge_eval.report.wording import Medium, open_templates, words_for

_NO_DRAWING = Svg(body="", width=1.0, height=1.0)
_SHOWN = 24
_LONGEST_NAME = 40
_AXIS_WORDS = ("final_score", "strict", "as the run lists it", "mean")


class _Words(HTMLParser):
    """The texts of a document in their order; the names of pictures stand in none."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._is_named = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 # the parser's call
        self._is_named = tag == "title"

    def handle_endtag(self, tag: str) -> None:
        self._is_named = self._is_named and tag != "title"

    def handle_data(self, data: str) -> None:
        if not self._is_named:
            self.found.append(data)


def write_words(evidence: Evidence, *, logs_left_out: bool) -> str | None:
    """Write what the first page says, without blanks and in small letters.

    Args:
        evidence: What the page is written from.
        logs_left_out: The PDF carries no logs although the run has some.

    Returns:
        The words; `None` when the evidence lacks what the page names.
    """
    figures = {"hero": _NO_DRAWING} if has_own_score(evidence) else {}
    name = "sections/old_first.html.j2" if evidence.old else "sections/first.html.j2"
    try:
        words = words_for(evidence, figures, Medium(str, palettes()["light"].__getitem__, {}))
        markup = open_templates().get_template(name).render(**words, logs_left_out=logs_left_out)
    except (TemplateError, LookupError, TypeError, ValueError):
        # Only evidence that no builder wrote ends here: it fits the schema and says half of what it must.
        return None
    reader = _Words()
    reader.feed(name_undrawn(markup))
    reader.close()
    return _joined("".join(reader.found))


def compare_words(page: str, evidence: Evidence, *, logs_left_out: bool) -> Iterator[str]:
    """Say where the words of a printed first page are not those of the evidence attached to it.

    Args:
        page: Words of the page without blanks.
        evidence: What is attached.
        logs_left_out: The PDF carries no logs although the run has some.
    """
    wanted = write_words(evidence, logs_left_out=logs_left_out)
    if wanted is None:
        yield "from the evidence that is attached no first page can be written"
        return
    found = _joined(page)
    if not found.startswith(wanted):
        pairs = enumerate(zip(wanted, found, strict=False))
        at = next((place for place, (one, other) in pairs if one != other), min(len(wanted), len(found)))
        start = max(0, at - _SHOWN)
        said, given = (f"“{text[start : at + _SHOWN]}”" for text in (found, wanted))
        yield f"the first page says {said} where the evidence that is attached gives {given}"
        return
    stranger = _strip_known(found[len(wanted) :], evidence)
    if stranger:
        yield f"the first page says “{stranger[: 2 * _SHOWN]}” beside what the evidence that is attached gives"


def _strip_known(rest: str, evidence: Evidence) -> str:
    """Take away what follows the words: texts of the chart, signs of the lists, the line at the foot."""
    identity = evidence.identity
    name = quote(identity.run_name, _LONGEST_NAME) if evidence.old else identity.run_id
    foot = _joined(name_undrawn(f"Run {name} · root {short_hash(identity.root_sha256)}"))
    tasks = evidence.tasks if evidence.old is None else evidence.old.tasks
    texts = {*_AXIS_WORDS, *(mark.label for mark in MARKS), *(task.label for task in tasks)}
    known = "|".join(re.escape(_joined(name_undrawn(text))) for text in sorted(texts, key=len, reverse=True))
    above, found, below = rest.rpartition(foot)
    if not found:
        return rest
    # Possessive: labels are a stranger's, and could be made to match in a million ways.
    middle = re.match(rf"(?>{known}|[\d.,→\u2212\u2013•])*+", above)
    stray = above if middle is None else above[middle.end() :]
    return stray + re.sub(r"^page1of\d+", "", below)


def _joined(text: str) -> str:
    return "".join(text.split()).casefold()

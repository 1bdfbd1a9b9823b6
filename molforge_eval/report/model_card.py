"""The card of a trained adapter: Markdown from the same numbers as the packet, written before the run is sealed.

What a run says in its own words stands in it as text, whatever Markdown or a hub would make of it.
"""

from __future__ import annotations

import re
import string
from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from molforge_eval.ladder import ladder
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.numerals import percent, scientific
from molforge_eval.report.provenance import put_manifest
from molforge_eval.report.quoting import quote
from molforge_eval.report.scores import Sides, put_scores
from molforge_eval.run_directory import RunDirectory
from molforge_eval.shipped import template_folder
from molforge_eval.verdict import decide

LONGEST_TEXT = 300
_TEMPLATE = "model_card.md.j2"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95}){0,8}")
_PLAIN_WORDS = re.compile(r"[A-Za-z0-9]+(?:[ ._/-][A-Za-z0-9]+)*")
"""Words that mean nothing to Markdown: a mark between letters begins no emphasis."""
_REFERENCES = {ord(mark): f"&#{ord(mark)};" for mark in string.punctuation if mark not in "-,./:;"}


def write_card(run: RunDirectory) -> str | None:
    """Write the card of a run's adapter; equal records give equal text.

    Args:
        run: The run as it was read; sealed or about to be.

    Returns:
        The Markdown; `None` when the run has no manifest, no plan or no adapter of its own to speak of.
    """
    manifest, plan = run.manifest, run.plan
    if manifest is None or plan is None or manifest.output_adapter is None:
        return None
    book = NumberBook({})
    put_manifest(book, manifest)
    rungs = ladder()
    verdict = decide(run.before, run.after, plan, ladder=rungs)
    tasks = put_scores(book, Sides(run.before, run.after, plan), verdict, rungs)
    texts = {number.id: number.text for number in book.numbers}
    base = manifest.configuration.base_model
    safe_base = base if _PLAIN_NAME.fullmatch(base) else None
    return (
        _environment()
        .get_template(_TEMPLATE)
        .render(
            n=texts.__getitem__,
            manifest=manifest,
            adapter=manifest.output_adapter,
            settings=manifest.configuration,
            plan=plan,
            tasks=tasks,
            outcome=verdict.outcome,
            reasons=verdict.reasons,
            has_interval=verdict.sampled.interval is not None,
            safe_base=safe_base,
            hub_base=safe_base if safe_base is not None and safe_base.count("/") == 1 else None,
        )
    )


def markdown_text(text: str) -> str:
    """Spell a text so that Markdown shows it as it is, on one line.

    >>> markdown_text("a|b <i>"), markdown_text("tiny/base_model")
    ('a&#124;b &#60;i&#62;', 'tiny/base_model')
    """
    shown = quote(text, LONGEST_TEXT)
    return shown if _PLAIN_WORDS.fullmatch(shown) else shown.translate(_REFERENCES)


@cache
def _environment() -> Environment:
    # Escaping is that of Markdown, by the filter `md`: a character reference of HTML would stand as such in code.
    environment = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(template_folder()),
        autoescape=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(md=markdown_text, percent=percent, scientific=scientific)
    return environment

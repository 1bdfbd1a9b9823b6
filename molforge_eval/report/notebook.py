"""The first page of a packet inside a notebook: a frame of its own, without scripts and without a way out.

A notebook runs what its cells print. Whatever a run says stands escaped in a document of its own, in a frame that may
neither run a script nor open, send or load anything.
"""

from __future__ import annotations

from html import escape

from markupsafe import Markup

from molforge_eval.report.evidence import Evidence
from molforge_eval.report.figures import HERO, HERO_NARROW
from molforge_eval.report.ladder_chart import has_own_score, ladder_chart
from molforge_eval.report.page import paint_by_role
from molforge_eval.report.render import svg_of
from molforge_eval.report.theme import palettes
from molforge_eval.report.wording import Medium, open_templates, words_for

HEIGHT = 980
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def first_page(evidence: Evidence) -> str:
    """Write the first page as a document of its own; it takes the typefaces of the machine, and so stays small."""
    environment = open_templates()
    hues = palettes()
    style = "".join(environment.get_template(name).render(**hues) for name in ("base.css.j2", "page.css.j2"))
    figures = {}
    if has_own_score(evidence):
        figures["hero"] = svg_of(ladder_chart(evidence, size=HERO), prefix="hero")
        figures["hero_narrow"] = svg_of(
            ladder_chart(evidence, size=HERO_NARROW, legend_columns=3), prefix="hero-narrow"
        )
    medium = Medium(paint_by_role, lambda role: f"var(--{role})", shelf=None)
    return environment.get_template("notebook.html.j2").render(
        **words_for(evidence, figures, medium),
        policy=_POLICY,
        style=Markup(style),  # noqa: S704 # our own sheet
    )


def frame_of(document: str, *, title: str, height: int = HEIGHT) -> str:
    """Put a document into a frame that runs no script, opens nothing and has no origin.

    Args:
        document: The whole document.
        title: What the frame is called by a reader that speaks.
        height: In pixels.
    """
    style = f"width:100%;height:{height}px;border:1px solid #dfe2e7;border-radius:6px;background:#fff"
    return (
        f'<iframe sandbox="" referrerpolicy="no-referrer" title="{escape(title)}" style="{style}" '
        f'srcdoc="{escape(document)}"></iframe>'
    )

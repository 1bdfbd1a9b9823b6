"""Cut the upstream typefaces to the characters and features that a packet uses.

Run by hand when a typeface is renewed, never by a build: `report_templates/fonts/` holds the result. Each face is
written as TTF (chart and PDF rendering) and as WOFF2 (to stand inside the HTML page).

Contextual alternates and ligatures are left out on purpose: they draw `->` as an arrow, and a packet shows a record's
text as it was written.

    python tools/subset_fonts.py INTER_WEB_FOLDER JETBRAINS_MONO_FOLDER report_templates/fonts
"""

from __future__ import annotations

import sys
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

INTER_FACES = ("Regular", "Italic", "Medium", "SemiBold", "Bold")
MONO_FACES = ("Regular", "Bold")

# Latin, Greek, punctuation, small figures, currency, letter-like signs, arrows, mathematics, shapes, dingbats.
KEPT_RANGES = (
    (0x0020, 0x024F),
    (0x02B0, 0x036F),
    (0x0370, 0x03FF),
    (0x2000, 0x22FF),
    (0x2300, 0x23FF),
    (0x2500, 0x27BF),
    (0xFFFD, 0xFFFD),
)
KEPT_FEATURES = ["kern", "mark", "mkmk", "ccmp", "locl", "tnum", "pnum", "zero", "case", "frac", "numr", "dnom", "sups"]
KEPT_FEATURES += ["subs", "sinf"]


def cut_face(source: Path, stem: Path) -> None:
    """Write `stem.ttf` and `stem.woff2`, both with the kept characters only."""
    font = TTFont(source, recalcTimestamp=False)
    options = Options()
    options.layout_features = KEPT_FEATURES
    options.name_IDs = ["*"]
    options.notdef_outline = True
    options.hinting = False
    options.drop_tables += ["DSIG"]
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=[code for first, last in KEPT_RANGES for code in range(first, last + 1)])
    subsetter.subset(font)
    for flavor, ending in ((None, ".ttf"), ("woff2", ".woff2")):
        font.flavor = flavor
        font.save(stem.with_name(stem.name + ending))


def main(inter: Path, mono: Path, target: Path) -> None:
    """Cut every face into `target`."""
    for face in INTER_FACES:
        cut_face(inter / f"Inter-{face}.woff2", target / f"Inter-{face}")
    for face in MONO_FACES:
        cut_face(mono / f"JetBrainsMono-{face}.ttf", target / f"JetBrainsMono-{face}")


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:4]))

from __future__ import annotations

from molforge_eval.report.joined_shapes import join_cells, join_lines, join_strokes


def test_strokes_of_one_look_become_one_path_in_the_order_of_their_looks() -> None:
    blue, ink = 'fill="none" stroke="#00f" stroke-width="1"', 'fill="none" stroke="currentColor" stroke-width="1"'
    markup = "".join(f'<path d="M 0,{y} L 1,{y}" {look}/>' for y, look in enumerate((ink, blue, ink)))

    assert join_strokes(f'{markup}<path d="M 5,5" fill="#00f"/>') == (
        f'<path d="M 0,0 L 1,0 M 0,2 L 1,2" {ink}/><path d="M 0,1 L 1,1" {blue}/><path d="M 5,5" fill="#00f"/>'
    )


def test_strokes_on_both_sides_of_another_shape_stay_apart() -> None:
    stroke = '<path d="M 0,0 L 1,1" fill="none" stroke="#00f"/>'
    markup = f'{stroke}<circle r="1"/>{stroke}'

    assert join_strokes(markup) == markup


def test_lines_become_one_path_at_the_same_places() -> None:
    lines = "".join(f'<line transform="translate({x},-2.5)" x2="0" y2="9" stroke="#eee"/>' for x in (0, 4))

    assert join_lines(f"<g>{lines}</g>") == '<g><path d="M0,-2.5l0,9M4,-2.5l0,9" fill="none" stroke="#eee"/></g>'


def test_cells_of_one_size_are_joined_and_the_unseen_left_out() -> None:
    cells = "".join(
        f'<path d="M{x},0h2v2h-2Z" fill="#07b" opacity="{opacity}"/>' for x, opacity in enumerate((0.3, 0, 0.5, 0.3))
    )

    assert join_cells(cells) == (
        '<path d="M0,0h2v2h-2ZM3,0h2v2h-2Z" fill="#07b" opacity="0.3"/>'
        '<path d="M2,0h2v2h-2Z" fill="#07b" opacity="0.5"/>'
    )


def test_a_cell_that_lies_on_a_larger_one_stays_on_it() -> None:
    ground, cell = '<path d="M0,0h9v9h-9Z" fill="#fff"/>', '<path d="M0,0h2v2h-2Z" fill="#07b"/>'

    assert join_cells(ground + cell + ground) == ground + cell + ground

"""Small charts as SVG, drawn with classes so that the page's style colours them.

Every text is escaped; nothing has a style attribute, which the page's policy would refuse.
"""

import numpy as np
from markupsafe import Markup, escape

WIDTH, LEFT, RIGHT, ROW = 560, 190, 70, 22


def bars(names, values, texts, *, pale=None, most=None) -> Markup:
    """Horizontal bars with a name on the left and a text on the right.

    ``pale`` are lengths drawn behind in a lighter shade.
    """
    values = np.asarray(values, dtype=float)
    longest = most or max(np.max(values), np.max(pale) if pale is not None else 0, 1e-300)
    room = WIDTH - LEFT - RIGHT
    parts = []
    for i, (name, value, text) in enumerate(zip(names, values, texts, strict=True)):
        y = i * ROW
        if pale is not None:
            parts.append(_rect(y, room * pale[i] / longest, "pale"))
        parts.append(_rect(y, room * value / longest, "fill"))
        parts.append(_text(LEFT - 8, y + 14, _short(name), "end", title=name))
        end = LEFT + room * max(value, 0 if pale is None else pale[i]) / longest
        parts.append(_text(end + 6, y + 14, text, "start", "soft"))
    return _svg(parts, len(values) * ROW + 2)


def line(values, label) -> Markup:
    """A curve against the number of the iteration."""
    values = np.asarray(values, dtype=float)
    height, left, bottom = 200, 80, 172
    x = left + (WIDTH - left - 20) * np.linspace(0, 1, len(values))
    low, high = float(values.min()), float(values.max())
    y = bottom - (bottom - 14) * (values - low) / (high - low or 1)
    keep = np.unique(np.linspace(0, len(values) - 1, min(len(values), 400)).astype(int))
    path = " ".join(f"{x[i]:.1f},{y[i]:.1f}" for i in keep)
    parts = [
        Markup('<line class="axis" x1="{0}" y1="{1}" x2="{2}" y2="{1}"/>').format(
            left, bottom, WIDTH - 20
        ),
        Markup('<polyline class="line" points="{}"/>').format(path),
        _text(left - 6, bottom, f"{low:.6g}", "end", "soft"),
        _text(left - 6, 18, f"{high:.6g}", "end", "soft"),
        _text(left, bottom + 18, "1", "middle", "soft"),
        _text(WIDTH - 20, bottom + 18, f"{len(values)}", "end", "soft"),
        _text((left + WIDTH) / 2, bottom + 18, label, "middle", "soft"),
    ]
    return _svg(parts, height)


def intervals(rows, low, high) -> Markup:
    """A dot for each (name, value, lower, upper), with a whisker where there is an interval."""
    room = WIDTH - LEFT - RIGHT

    def at(value):
        return LEFT + room * (min(max(value, low), high) - low) / (high - low or 1)

    parts = [
        _text(at(low), len(rows) * 28 + 14, f"{low:.3g}", "middle", "soft"),
        _text(at(high), len(rows) * 28 + 14, f"{high:.3g}", "middle", "soft"),
    ]
    for i, (name, value, lower, upper) in enumerate(rows):
        y = i * 28 + 12
        parts.append(_rule(at(low), at(high), y, "grid"))
        if lower is not None:
            parts.append(_rule(at(lower), at(upper), y, "whisker"))
        shade = "fill" if i == 0 else "grey"
        parts.append(
            Markup('<circle class="{}" cx="{:.1f}" cy="{}" r="5"/>').format(shade, at(value), y)
        )
        parts.append(_text(LEFT - 8, y + 4, name, "end"))
        parts.append(_text(WIDTH - RIGHT + 8, y + 4, f"{value:.3f}", "start", "soft"))
    return _svg(parts, len(rows) * 28 + 22)


def curve(x, mean, spread, chosen) -> Markup:
    """Means with whiskers against whole numbers, the chosen one marked."""
    height, left, bottom = 210, 80, 172
    mean, spread = np.asarray(mean, dtype=float), np.asarray(spread, dtype=float)
    low, high = float((mean - spread).min()), float((mean + spread).max())
    at_x = left + 12 + (WIDTH - left - 40) * (np.arange(len(x)) / max(1, len(x) - 1))
    at_y = bottom - (bottom - 14) * (np.array([mean - spread, mean, mean + spread]) - low) / (
        high - low or 1
    )
    every = max(1, len(x) // 14)
    parts = [_rule(left, WIDTH - 10, bottom, "axis")]
    for i, number in enumerate(x):
        shade = "fill" if number == chosen else "grey"
        parts.append(
            Markup(
                '<line class="axis" x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}"/>'
            ).format(at_x[i], at_y[0, i], at_y[2, i])
        )
        parts.append(
            Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}"/>').format(
                shade, at_x[i], at_y[1, i], 6 if number == chosen else 4
            )
        )
        if i % every == 0 or number == chosen:
            parts.append(_text(at_x[i], bottom + 18, f"{number}", "middle", "soft"))
    parts.append(_text(left - 6, bottom, f"{low:.5g}", "end", "soft"))
    parts.append(_text(left - 6, 18, f"{high:.5g}", "end", "soft"))
    parts.append(_text((left + WIDTH) / 2, bottom + 34, "dimensions", "middle", "soft"))
    return _svg(parts, height)


def _rect(y, length, shade):
    return Markup('<rect class="{}" x="{}" y="{}" width="{:.1f}" height="{}" rx="2"/>').format(
        shade, LEFT, y + 3, max(length, 0.5), ROW - 7
    )


def _rule(x1, x2, y, shade):
    return Markup('<line class="{}" x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}"/>').format(
        shade, x1, x2, y, y
    )


def _text(x, y, text, anchor, shade="", title=None):
    inner = escape(text) if title is None else Markup("{}<title>{}</title>").format(text, title)
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}" class="{}">{}</text>').format(
        x, y, anchor, shade, inner
    )


def _short(name, most=22):
    return name if len(name) <= most else name[: most - 1] + "…"


def _svg(parts, height):
    inner = Markup("").join(parts)
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" xmlns="http://www.w3.org/2000/svg">{}</svg>'
    ).format(WIDTH, height, inner)

"""Small charts as SVG, drawn with classes, so that the page's style colours them.

Every text is escaped; nothing has a style attribute, which the page's policy would refuse.
"""

from typing import NamedTuple

import numpy as np
from markupsafe import Markup, escape

# Of a chart in its own units: its width, room for names and numbers beside it, height of a bar.
WIDTH, LEFT, RIGHT, ROW = 560, 190, 70, 22
# The same of a chart that stands beside others.
SMALL_WIDTH, SMALL_LEFT = 400, 165
# Room for the numbers left of a plot, for the name above it and for the numbers below it.
PLOT_LEFT, PLOT_TOP, PLOT_BELOW = 80, 26, 40
# Letters of a name that fit beside bars, wide letters and the larger type of a phone included.
MOST_LETTERS = 19


class Frame(NamedTuple):
    """A plane with axes: the bounds of what it shows, the names of its axes, its height.

    With ``root`` both axes are those of square roots, so that squares show as distances.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    names: tuple[str, str]
    height: int = 300
    root: bool = False

    def across(self, values):
        """Places of values on the axis that goes across."""
        return PLOT_LEFT + (WIDTH - PLOT_LEFT - 14) * self._share(values, self.x)

    def up(self, values):
        """Places of values on the axis that goes up."""
        room = self.height - PLOT_TOP - PLOT_BELOW
        return self.height - PLOT_BELOW - room * self._share(values, self.y)

    def _share(self, values, bounds):
        scale = np.sqrt if self.root else np.asarray
        low, high = (float(scale(bound)) for bound in bounds)
        return np.clip((scale(np.asarray(values, dtype=float)) - low) / (high - low or 1), 0, 1)

    def dots(self, x, y, shade="dots"):
        """A dot at each place."""
        pairs = zip(self.across(x), self.up(y), strict=True)
        return _path("".join(f"M{a:.1f} {b:.1f}h0" for a, b in pairs), shade)

    def whiskers(self, x, low, high, shade="whiskers"):
        """A line from low to high at each place."""
        ends = zip(self.across(x), self.up(low), self.up(high), strict=True)
        return _path("".join(f"M{a:.1f} {b:.1f}V{c:.1f}" for a, b, c in ends), shade)

    def line(self, x, y, shade="line"):
        """A line through the points."""
        pairs = zip(self.across(x), self.up(y), strict=True)
        return _path("M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in pairs), shade)

    def text(self, x, y, text, shade="soft", anchor="middle"):
        """A text above a place, kept inside the chart."""
        place, room = float(self.across(x)), 3.5 * len(str(text)) * (anchor == "middle")
        place = min(max(place, room), WIDTH - 4 - room)
        return _text(place, max(float(self.up(y)) - 6, 12), text, anchor, shade)

    def draw(self, *parts, x_ticks=None) -> Markup:
        """The chart with these parts on its axes."""
        floor = self.height - PLOT_BELOW
        axes = [_rule(PLOT_LEFT, WIDTH - 14, floor, "axis")]
        for value, text in _ticks(*self.y, 4, self.root):
            place = float(self.up(value))
            axes.append(_rule(PLOT_LEFT, WIDTH - 14, place, "grid"))
            axes.append(_text(PLOT_LEFT - 6, place + 4, text, "end", "soft"))
        for value, text in _ticks(*self.x, 6, self.root) if x_ticks is None else x_ticks:
            axes.append(_text(float(self.across(value)), floor + 16, text, "middle", "soft"))
        axes.append(_text(2, 14, self.names[1], "start", "soft"))
        axes.append(_text(WIDTH - 14, self.height - 6, self.names[0], "end", "soft"))
        return _svg([*axes, *parts], self.height)


def _ticks(low, high, count, root=False):
    """Round numbers between the bounds with their texts; of squares those of whole roots."""
    if root:
        low, high = np.sqrt(low), np.sqrt(high)
    rough = max((high - low) / count, np.finfo(float).tiny)
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))
    values = step * np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1)
    if root:
        return [(v**2, f"{v**2:.4g}") for v in values]
    return [(v, _short_number(v, step)) for v in values]


def _short_number(value, step):
    """A multiple of a step in eight letters at most, in thousands or more where it is long."""
    for power, unit in ((0, ""), (3, "k"), (6, "M"), (9, "G")):
        decimals = max(0, -int(np.floor(np.log10(step) - power + 1e-9)))
        text = f"{value / 10**power + 0.0:.{decimals}f}{unit}"
        if len(text) <= 8:
            return text
    return f"{value:.1e}"


def bounds_of(*values, margin=0.05):
    """The least and the greatest of all values, with a margin."""
    known = np.concatenate([np.ravel(np.asarray(v, dtype=float)) for v in values])
    known = known[np.isfinite(known)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    pad = margin * (high - low) or 0.5
    return low - pad, high + pad


def draw_bars(names, values, texts, *, pale=None) -> Markup:
    """Horizontal bars with a name on the left and a text on the right.

    ``pale`` are lengths drawn behind in a lighter shade.
    """
    values = np.asarray(values, dtype=float)
    longest = max(np.max(values), np.max(pale) if pale is not None else 0, 1e-300)
    room = WIDTH - LEFT - max(RIGHT, 10 * max(len(text) for text in texts))
    parts = []
    for i, (name, value, text) in enumerate(zip(names, values, texts, strict=True)):
        y = i * ROW
        if pale is not None:
            parts.append(_rect(LEFT, y, room * pale[i] / longest, "pale"))
        parts.append(_rect(LEFT, y, room * value / longest, "fill"))
        parts.append(_name(LEFT - 8, y + 14, name))
        end = LEFT + room * max(value, 0 if pale is None else pale[i]) / longest
        parts.append(_text(end + 6, y + 14, text, "start", "soft"))
    return _svg(parts, len(values) * ROW + 2)


def draw_signed(title, rows, bounds) -> Markup:
    """Bars to both sides of zero, of (name, value, lower, upper), under a title; a small chart."""
    low, high = bounds
    room = SMALL_WIDTH - SMALL_LEFT - 8

    def at(value):
        return SMALL_LEFT + room * (min(max(value, low), high) - low) / (high - low or 1)

    parts = [_text(2, 15, short(title, 44), "start", "head", title=title)]
    for i, (name, value, lower, upper) in enumerate(rows):
        y = i * ROW + ROW
        left, right = sorted((at(0), at(value)))
        parts.append(_rect(left, y, right - left, "fill" if value > 0 else "below"))
        if lower is not None:
            parts.append(_rule(at(lower), at(upper), y + 11, "ink"))
        parts.append(_name(SMALL_LEFT - 8, y + 14, name, f"{name}: {value:.3g}"))
    bottom = (len(rows) + 1) * ROW
    parts.append(_path(f"M{at(0):.1f} {ROW}V{bottom}", "axis"))
    parts += [_text(at(v), bottom + 14, t, "middle", "soft") for v, t in _ticks(low, high, 5)]
    return _svg(parts, bottom + 20, SMALL_WIDTH)


def draw_along(title, numbers, unit, values, low, high, bounds) -> Markup:
    """A line of values along a scale of numbers, with their intervals."""
    order = np.argsort(numbers)
    numbers, values, low, high = (v[order] for v in (numbers, values, low, high))
    frame = Frame((numbers[0], numbers[-1]), bounds, (unit, short(title, 44)), 210)
    zero = frame.line(np.array(frame.x), np.zeros(2), "limit")
    band = frame.whiskers(numbers, low, high, "faint")
    return frame.draw(zero, band, frame.line(numbers, values))


def draw_line(values, label) -> Markup:
    """A curve against the number of the iteration."""
    values = np.asarray(values, dtype=float)
    keep = np.unique(np.linspace(0, len(values) - 1, min(len(values), 400)).astype(int))
    frame = Frame((1, len(values)), bounds_of(values, margin=0.02), (label, ""), 230)
    ends = [(1, "1"), (len(values), f"{len(values)}")]
    return frame.draw(frame.line(keep + 1, values[keep]), x_ticks=ends)


def draw_intervals(rows, low, high) -> Markup:
    """A dot for each (name, value, lower, upper), with a whisker where there is an interval.

    The names stand above the lines, where they have the whole width.
    """
    left, right, high_row = 16, WIDTH - RIGHT, 42

    def at(value):
        return left + (right - left) * (min(max(value, low), high) - low) / (high - low or 1)

    bottom = len(rows) * high_row
    parts = [_text(at(v), bottom + 14, f"{v:.3g}", "middle", "soft") for v in (low, high)]
    for i, (name, value, lower, upper) in enumerate(rows):
        y = i * high_row + 28
        parts.append(_rule(left, right, y, "grid"))
        if lower is not None:
            parts.append(_rule(at(lower), at(upper), y, "whisker"))
        parts.append(_dot(at(value), y, 5, lower is not None))
        parts.append(_text(2, y - 12, short(name, 58), "start", title=name))
        parts.append(_text(right + 12, y + 4, f"{value:.3f}", "start", "soft"))
    return _svg(parts, bottom + 22)


def draw_curve(x, mean, sd, chosen, highest=np.inf) -> Markup:
    """Means with whiskers against whole numbers, the chosen one marked.

    What is measured cannot exceed ``highest``, so the whiskers and the axis end there.
    """
    mean, sd = np.asarray(mean, dtype=float), np.asarray(sd, dtype=float)
    low, high = mean - sd, np.minimum(mean + sd, highest)
    bottom, top = bounds_of(low, high)
    frame = Frame((-0.5, len(x) - 0.5), (bottom, min(top, highest)), ("dimensions", ""), 230)
    every = max(1, len(x) // 14)
    places = np.arange(len(x))
    ticks = [(i, f"{x[i]}") for i in places if i % every == 0 or x[i] == chosen]
    dots = [
        _dot(a, b, 6 if number == chosen else 4, number == chosen)
        for number, a, b in zip(x, frame.across(places), frame.up(mean), strict=True)
    ]
    return frame.draw(frame.whiskers(places, low, high, "axis"), *dots, x_ticks=ticks)


def _dot(x, y, radius, marked):
    shade = "fill" if marked else "grey"
    return Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}"/>').format(shade, x, y, radius)


def _rect(x, y, length, shade):
    return Markup('<rect class="{}" x="{:.1f}" y="{}" width="{:.1f}" height="{}" rx="2"/>').format(
        shade, x, y + 3, max(length, 0.5), ROW - 7
    )


def _rule(x1, x2, y, shade):
    return Markup('<line class="{}" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>').format(
        shade, x1, x2, y, y
    )


def _path(d, shade):
    return Markup('<path class="{}" d="{}"/>').format(shade, d)


def _name(x, y, name, title=None):
    return _text(x, y, short(name), "end", title=title or name)


def _text(x, y, text, anchor, shade="", title=None):
    inner = escape(text) if title is None else Markup("{}<title>{}</title>").format(text, title)
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}" class="{}">{}</text>').format(
        x, y, anchor, shade, inner
    )


def short(name, most=MOST_LETTERS):
    """A name of so many letters, cut in its middle: names often differ at their end."""
    end = most // 2
    return name if len(name) <= most else f"{name[: most - end - 1]}…{name[-end:]}"


def _svg(parts, height, width=WIDTH):
    inner = Markup("").join(parts)
    kind = "chart" if width == WIDTH else "chart small"
    return Markup(
        '<svg class="{}" viewBox="0 0 {} {}" role="img" xmlns="http://www.w3.org/2000/svg">{}</svg>'
    ).format(kind, width, height, inner)

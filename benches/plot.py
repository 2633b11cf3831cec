"""Draw the recorded curves as SVG: `python -m benches.plot [--record FILE] [--folder FOLDER]`.

Two files: latency against size, and latency against recall. Nothing but the standard library is
needed. The pictures have their own background, light or dark as the reader's system is.
"""

import argparse
import json
import math
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

HERE = Path(__file__).parent
RECORD = str(HERE / "recorded" / "curves.json")
FOLDER = str(HERE.parent / "docs" / "lab" / "plots")
WIDTH, HEIGHT = 880, 470
TOP, BOTTOM, GAP, LEFT, RIGHT = 78, 128, 62, 64, 24
HOLLOW_BELOW = 0.95
KINDS = {"real": "embeddings of real sentences", "uniform": "independent random directions"}


class Style(NamedTuple):
    """How a system is drawn; markers distinguish systems whose colours may look alike."""

    begins: str
    light: str
    dark: str
    marker: str


OURS = "mnemic"
STYLES = (
    Style(OURS, "#0b62d6", "#58a6ff", "circle"),
    Style("numpy", "#6e7781", "#9aa4af", "square"),
    Style("faiss", "#b35900", "#f0883e", "triangle"),
    Style("usearch exact", "#8a6d00", "#d4a72c", "diamond"),
    Style("hnswlib", "#a40e5a", "#ff7bb5", "square"),
    Style("usearch HNSW", "#7a3bb8", "#c297ff", "diamond"),
    Style("turbovec", "#0a7a66", "#3ecfae", "triangle"),
    Style("ScaNN", "#a11f1f", "#ff8f87", "downward"),
    Style("LanceDB", "#b35900", "#f0883e", "triangle"),
    Style("areev", "#0a7a66", "#3ecfae", "diamond"),
    Style("Chroma", "#a40e5a", "#ff7bb5", "square"),
    Style("LangGraph", "#7a3bb8", "#c297ff", "downward"),
    Style("mem0", "#a11f1f", "#ff8f87", "square"),
    Style("sqlite-vec", "#6e7781", "#9aa4af", "triangle"),
)
METHOD = "384 components, k = 10, one thread, lower quartiles"
GROUND = """
.ground{fill:#fff;stroke:#d8dee4}.text{fill:#1f2328}.soft{fill:#59636e}.grid{stroke:#e3e7eb}
.hollow{fill:#fff;stroke-width:1.6}
@media(prefers-color-scheme:dark){.ground{fill:#0d1117;stroke:#30363d}.text{fill:#e6edf3}
.soft{fill:#9198a1}.grid{stroke:#262c34}.hollow{fill:#0d1117}}
"""


class Axis(NamedTuple):
    """A logarithmic or linear axis from `low` to `high`, with its ticks' values and labels."""

    name: str
    low: float
    high: float
    ticks: dict
    logarithmic: bool = True

    def share(self, value):
        """Return how far along the axis a value lies, 0 to 1."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return (value - low) / (high - low)


class Panel(NamedTuple):
    left: float
    width: float
    across: Axis
    up: Axis

    def place(self, across, up):
        height = HEIGHT - TOP - BOTTOM
        return (
            round(self.left + self.width * self.across.share(across), 1),
            round(TOP + height * (1 - self.up.share(up)), 1),
        )


def size_plot(record):
    sizes = sorted({point["rows"] for points in record["sizes"].values() for point in points})
    across = Axis("rows", sizes[0], sizes[-1], {size: short(size) for size in sizes})
    up = time_axis([point["us"] for points in record["sizes"].values() for point in points])
    curves = {kind: grouped(points, "label", "rows") for kind, points in record["sizes"].items()}
    title = "Time of one query against the number of rows"
    note = f"Filled markers: recall of at least {HOLLOW_BELOW}. Hollow: less, down to {{:.2f}}."
    note = note.format(min(p["recall"] for points in record["sizes"].values() for p in points))
    return drawing(
        record["machine"]["sizes"],
        dict.fromkeys(curves, across),
        up,
        curves,
        title=title,
        note=note,
    )


def recall_plot(record):
    up = time_axis([point["us"] for points in record["recall"].values() for point in points])
    across = {kind: recall_axis(points) for kind, points in record["recall"].items()}
    curves = {
        kind: grouped(points, "system", "recall") for kind, points in record["recall"].items()
    }
    title = f"Time of one query against recall, {record['recall_rows']:,} rows"
    note = "Lower and further to the right is better. Lines join the settings of one system."
    return drawing(record["machine"]["recall"], across, up, curves, title=title, note=note)


def recall_axis(points):
    # A little room on both sides keeps the outermost markers inside.
    room = 0.04 * (1 - min(point["recall"] for point in points))
    low, high = min(point["recall"] for point in points) - room, 1 + room
    step = 0.1 if low < 0.65 else 0.05
    first = math.ceil(low / step - 1e-9)
    ticks = {round(at * step, 2): f"{at * step:.2g}" for at in range(first, round(1 / step) + 1)}
    return Axis("recall@10 against brute force", low, high, ticks, logarithmic=False)


def time_axis(times):
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    names = {-6: "1 µs", -5: "10 µs", -4: "100 µs", -3: "1 ms", -2: "10 ms", -1: "100 ms", 0: "1 s"}
    ticks = {10.0**power: names[power - 6] for power in range(low, high + 1)}
    return Axis("time of one query", min(times) / 1.3, max(times) * 1.3, ticks)


def grouped(points, name, across):
    """Return each system's points in their order along the axis."""
    curves = {}
    for point in points:
        hollow = across == "rows" and point["recall"] < HOLLOW_BELOW
        title = "{label}: {us:,.0f} µs, recall {recall:.3f}".format(**point)
        curves.setdefault(point[name], []).append((point[across], point["us"], hollow, title))
    return {label: sorted(points) for label, points in curves.items()}


def drawing(machine, across, up, curves, *, title, note):
    width = (WIDTH - LEFT - RIGHT - GAP * (len(curves) - 1)) / len(curves)
    parts = [
        *head(title, machine),
        words(LEFT - 34, HEIGHT - 14, note, kind="soft"),
        *legend(sorted({label for lines in curves.values() for label in lines}, key=style_of)),
    ]
    for number, (kind, lines) in enumerate(curves.items()):
        panel = Panel(LEFT + number * (width + GAP), width, across[kind], up)
        parts += [
            *frame(panel, KINDS[kind]),
            *chain.from_iterable(curve(panel, *each) for each in ours_on_top(lines)),
        ]
    return "\n".join([*parts, "</svg>", ""])


def ours_on_top(lines):
    return sorted(lines.items(), key=lambda item: item[0] == OURS)


def style_of(label):
    """Return the number of a label's style."""
    return next(at for at, style in enumerate(STYLES) if label.startswith(style.begins))


def head(title, machine, method=METHOD):
    light = "".join(colour_rules(at, style.light) for at, style in enumerate(STYLES))
    dark = "".join(colour_rules(at, style.dark) for at, style in enumerate(STYLES))
    font = "system-ui,-apple-system,Segoe UI,Helvetica,Arial,sans-serif"
    subtitle = f"{method}; {machine['processor']}, kernel {machine['kernel']}, {machine['date']}"
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"',
        f' height="{HEIGHT}" role="img" aria-label="{escape(title)}" font-family="{font}">',
        f"<style>{GROUND}{light}@media(prefers-color-scheme:dark){{{dark}}}</style>",
        f'<rect class="ground" x=".5" y=".5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8"/>',
        words(LEFT - 44, 28, title, size=16, weight=600),
        words(LEFT - 44, 47, subtitle, kind="soft"),
    ]


def colour_rules(at, colour):
    return f".s{at}{{stroke:{colour}}}.s{at}.m{{fill:{colour}}}"


def frame(panel, title):
    bottom, middle = HEIGHT - BOTTOM, panel.left + panel.width / 2
    yield words(middle, TOP - 8, title, anchor="middle", weight=600)
    for value, label in panel.up.ticks.items():
        if panel.up.low <= value <= panel.up.high:
            _, y = panel.place(panel.across.low, value)
            yield line(panel.left, y, panel.left + panel.width, y)
            yield words(panel.left - 7, y + 4, label, kind="soft", anchor="end")
    for value, label in panel.across.ticks.items():
        x, _ = panel.place(value, panel.up.low)
        yield line(x, TOP, x, bottom)
        yield words(x, bottom + 16, label, kind="soft", anchor="middle")
    yield words(middle, bottom + 34, panel.across.name, kind="soft", anchor="middle")


def curve(panel, label, points):
    places = [panel.place(across, up) for across, up, *_ in points]
    path = " ".join(f"{x},{y}" for x, y in places)
    yield f'<polyline {stroke(label)} points="{path}" fill="none"/>'
    for place, (_, _, hollow, title) in zip(places, points, strict=True):
        yield dot(label, *place, title, hollow=hollow)


def stroke(label):
    return f'class="s{style_of(label)}" stroke-width="{3 if label == OURS else 1.6}"'


def dot(label, x, y, title, *, hollow=False):
    filled = "hollow" if hollow else "m"
    shape = marker(STYLES[style_of(label)].marker, x, y, 5 if label == OURS else 3.6)
    return f'<g class="s{style_of(label)} {filled}"><title>{escape(title)}</title>{shape}</g>'


def marker(kind, x, y, r):
    if kind == "circle":
        return f'<circle cx="{x}" cy="{y}" r="{r}"/>'
    corners = {
        "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        "triangle": ((0, -1.3), (1.2, 0.9), (-1.2, 0.9)),
        "diamond": ((0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)),
        "downward": ((0, 1.3), (1.2, -0.9), (-1.2, -0.9)),
    }[kind]
    points = " ".join(f"{x + r * across:.1f},{y + r * down:.1f}" for across, down in corners)
    return f'<polygon points="{points}"/>'


def legend(labels):
    """Yield the names under the panels, four to a line."""
    columns = 4
    for number, label in enumerate(labels):
        x = LEFT - 34 + number % columns * ((WIDTH - LEFT) / columns)
        y = HEIGHT - 66 + number // columns * 22
        yield f'<line {stroke(label)} x1="{x}" y1="{y - 4}" x2="{x + 20}" y2="{y - 4}"/>'
        yield dot(label, x + 10, y - 4, label)
        yield words(x + 27, y, label, weight=600 if label == OURS else 400)


def words(x, y, text, *, kind="text", anchor="start", size=12, weight=400):
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    font = f'font-size="{size}" font-weight="{weight}"'
    return f'<text class="{kind}" {place} {font}>{escape(text)}</text>'


def line(x1, y1, x2, y2):
    return f'<line class="grid" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def short(count):
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count // size}{letter}"
    return str(count)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", default=RECORD, help="default: %(default)s")
    parser.add_argument("--folder", default=FOLDER, help="default: %(default)s")
    chosen = parser.parse_args()
    record = json.loads(Path(chosen.record).read_text(encoding="utf-8"))
    folder = Path(chosen.folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in (("size", size_plot), ("recall", recall_plot)):
        path = folder / f"{name}-latency.svg"
        path.write_text(draw(record), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()

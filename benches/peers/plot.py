"""Draw the recorded comparison: `python -m benches.peers.plot [--record FILE] [--folder FOLDER]`.

One file, peers.svg: the time of a search against recall@10, a panel each set of questions.
"""

import argparse
import json
import math
from pathlib import Path

from benches.peers.base import KEYWORD
from benches.plot import (
    FOLDER,
    GAP,
    HEIGHT,
    LEFT,
    OURS,
    RIGHT,
    WIDTH,
    Axis,
    Panel,
    dot,
    frame,
    head,
    legend,
    style_of,
    time_axis,
    words,
)

RECORD = str(Path(__file__).parents[1] / "recorded" / "peers.json")
TITLE = "Time of one search against recall@10"
NOTE = "Lower and further to the right is better. hybrid, semantic, keyword: the ranking."
# The ranking's name is right of its point, near the right edge left of it, and keyword beneath.
BESIDE, EDGE, BENEATH = 9, 0.75, 17


def plot(record):
    """Return the picture of the first latencies against the recall on each set."""
    timed = record["latency"][0]
    times = {label: 1e3 * found["p50"] for label, found in timed["systems"].items()}
    panels = {name: one["systems"] for name, one in record["quality"].items()}
    up = time_axis(list(times.values()))
    width = (WIDTH - LEFT - RIGHT - GAP * (len(panels) - 1)) / len(panels)
    method = "{rows:,} memories of {users} users, k = 10, embedding excluded, medians"
    parts = [
        *head(TITLE, record["machine"], method.format(**timed)),
        words(LEFT - 34, HEIGHT - 14, NOTE, kind="soft"),
        *legend(sorted({system_of(label) for label in times}, key=style_of)),
    ]
    for number, (name, systems) in enumerate(panels.items()):
        recalls = {label: found["R@10"]["mean"] for label, found in systems.items()}
        across = recall_axis(list(recalls.values()))
        panel = Panel(LEFT + number * (width + GAP), width, across, up)
        parts += frame(panel, f"questions of {name}")
        for label in sorted(times, key=lambda one: system_of(one) == OURS):
            parts += point(panel, label, recalls[label], times[label])
    return "\n".join([*parts, "</svg>", ""])


def system_of(label):
    """Return the label without its last word, the ranking."""
    return label.rsplit(" ", 1)[0]


def recall_axis(recalls):
    room = 0.06 * max(max(recalls) - min(recalls), 0.1)
    low, high = min(recalls) - room, max(recalls) + room
    first, last = math.ceil(low * 20), math.floor(high * 20)
    ticks = {at / 20: f"{at / 20:.2f}" for at in range(first, last + 1)}
    return Axis("recall@10", low, high, ticks, logarithmic=False)


def point(panel, label, recall, microseconds):
    system, mode = label.rsplit(" ", 1)
    x, y = panel.place(recall, microseconds)
    title = f"{label}: {microseconds / 1e3:.2f} ms, recall@10 {recall:.3f}"
    yield dot(system, x, y, title)
    weight = 600 if system == OURS else 400
    if mode == KEYWORD:
        yield words(x, y + BENEATH, mode, anchor="middle", weight=weight)
    elif panel.across.share(recall) > EDGE:
        yield words(x - BESIDE, y + 4, mode, anchor="end", weight=weight)
    else:
        yield words(x + BESIDE, y + 4, mode, weight=weight)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", default=RECORD, help="default: %(default)s")
    parser.add_argument("--folder", default=FOLDER, help="default: %(default)s")
    chosen = parser.parse_args()
    folder = Path(chosen.folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "peers.svg"
    record = json.loads(Path(chosen.record).read_text(encoding="utf-8"))
    path.write_text(plot(record), encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()

"""Measure the curves of the plots: time against size, and time against recall at 100,000 rows.

`python -m benches.curves [--json FILE]`, then `python -m benches.plot` (`make plots`). One thread,
in turns of 16 calls, lower quartiles; 384 components, k = 10. The approximate peers stop at 100,000
rows, above which their builds take from minutes to an hour. Beside other work it takes about 20
minutes, most of it to build graphs, which are stored.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from benches import environment
from benches.cases import Case
from benches.datasets import DIM
from benches.plot import RECORD
from benches.systems import (
    EXACT,
    Hnswlib,
    Scann,
    Turbovec,
    TurbovecRescored,
    Usearch,
    installed,
)
from benches.timing import interleave, timed

KINDS = ("real", "uniform")
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
MOST_APPROXIMATE = 100_000
APPROXIMATE = (Hnswlib, TurbovecRescored, Scann)
TUNED = (Hnswlib, Usearch, Turbovec, Scann)
RECALL_QUERIES = 256
TURN = 16


def measure_sizes(kind, most, seconds):
    found = []
    for count in (size for size in SIZES if size <= most):
        case = Case(kind, count, DIM)
        chosen = EXACT + (APPROXIMATE if count <= MOST_APPROXIMATE else ())
        systems = [case.build(system) for system in installed(chosen)]
        recalls = {system.name: recall_of(case, system) for system in systems}
        times = interleave(
            {system.name: system.search for system in systems},
            case.queries,
            rounds_for(case, systems, seconds),
            TURN,
        )
        for system in systems:
            point = {
                "system": system.name,
                "label": system.label(system.setting),
                "rows": count,
                "us": round(times[system.name], 2),
                "recall": recalls[system.name],
            }
            found.append(point)
            print_point(kind, point)
    return found


def measure_recall(kind, count, seconds):
    """Let all settings of all systems take turns; those of one system share its index."""
    case = Case(kind, count, DIM, RECALL_QUERIES)
    searches, points = {}, []
    for system in [case.build(system) for system in installed(EXACT + TUNED)]:
        for setting in system.settings:
            system.tune(setting)
            name = system.label(setting)
            searches[name] = tuned(system, setting)
            points.append({"system": system.name, "label": name, "recall": recall_of(case, system)})
    once = sum(timed(search, case.queries[0])[0] for search in searches.values())
    rounds = max(2, int(seconds * 4 / once / TURN))
    times = interleave(searches, case.queries, rounds, TURN)
    for point in points:
        point["us"] = round(times[point["label"]], 2)
        print_point(kind, point | {"rows": count})
    return points


def tuned(system, setting):
    """Set a system before each call, which takes less than a microsecond."""

    def search(query):
        system.tune(setting)
        return system.search(query)

    return search


def recall_of(case, system):
    return round(case.check(system, [system.search(query) for query in case.queries]), 4)


def rounds_for(case, systems, seconds):
    once = sum(timed(system.search, case.queries[0])[0] for system in systems)
    return int(np.clip(seconds / once / TURN, 2, 200))


def print_point(kind, point):
    line = "{label:40} {us:12,.1f} us  recall@10 {recall:.4f}".format(**point)
    print(f"{kind:8} {point['rows']:9,} {line}", flush=True)


PARTS = {"recall": (measure_recall, MOST_APPROXIMATE), "sizes": (measure_sizes, max(SIZES))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(PARTS), help="the record keeps the other's")
    parser.add_argument("--most", type=int, default=max(SIZES), help="leave out more rows")
    parser.add_argument("--seconds", type=float, default=8, help="about how long to take each time")
    parser.add_argument("--json", default=RECORD, help="default: %(default)s")
    chosen = parser.parse_args()
    environment.restart_at_their_best()
    path = Path(chosen.json)
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    record["recall_rows"] = MOST_APPROXIMATE
    print(environment.title(environment.machine()))
    for part in chosen.only.split(","):
        measured, most = PARTS[part]
        record[part] = {
            kind: measured(kind, min(most, chosen.most), chosen.seconds) for kind in KINDS
        }
        record.setdefault("machine", {})[part] = environment.machine()
        environment.write_record(path, record)


if __name__ == "__main__":
    main()

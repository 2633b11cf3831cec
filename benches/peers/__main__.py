"""Compare mnemic with other memories: `python -m benches.peers [DIRECTORY]`.

All systems hold the same memories with the same vectors and take turns in one process, each with
its usual settings. Libraries: `pip install --group memory-peers`; missing ones are left out.
"""

import argparse
from pathlib import Path

from benches.support import environment
from benches.support.datasets import report

PARTS = ("quality", "latency", "filters")


def parse():
    parser = argparse.ArgumentParser(prog="python -m benches.peers", description=__doc__)
    parser.add_argument(
        "directory",
        nargs="?",
        type=Path,
        help="folder with turns.jsonl and questions.jsonl, measured beside the project's own set",
    )
    parser.add_argument("--parts", type=listed, default=PARTS, help="default: all")
    parser.add_argument("--only", type=listed, default=(), help="of the systems, by module")
    parser.add_argument(
        "--rows",
        type=numbers,
        default=(5_000,),
        help="memories for latency, such as 5000,100000 (default: 5000)",
    )
    parser.add_argument("--users", type=numbers, default=(10, 5), help="of them (default: 10,5)")
    parser.add_argument("--cpu", action="store_true", help="processor time, on a busy machine")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the record there")
    return parser.parse_args()


def listed(text):
    return tuple(text.split(","))


def numbers(text):
    return tuple(int(part) for part in text.split(","))


def load_peers(names):
    """Return the classes of the installed systems by name, and a line for each that is not."""
    from benches.peers.adapters import ADAPTERS, load, pip_line  # noqa: PLC0415 - after restart

    peers, left_out = {}, []
    for name in names or ADAPTERS:
        try:
            peers[name] = load(name)
        except ImportError as error:
            left_out.append(f"Left out: {name} ({error}): {pip_line(name)}")
    return peers, left_out


def machine(names, directory):
    """Describe the machine and the versions of the systems."""
    from benches.peers.adapters import versions  # noqa: PLC0415 - after the restart

    # The folder's place on this machine is of no use elsewhere.
    command = f"python -m benches.peers {directory.resolve().name if directory else ''}".strip()
    return environment.machine() | {"command": command, "versions": versions(names)}


def quality(peers, directory):
    from benches.peers.measure import measure_quality  # noqa: PLC0415 - after the restart
    from benches.quality.datasets import load_conversations, load_own  # noqa: PLC0415

    found = {}
    for dataset in [*([load_conversations(directory)] if directory else []), load_own()]:
        report(f"asking the questions of {dataset.name}")
        systems = measure_quality(peers, dataset)
        found[dataset.name] = {
            "sha256": dataset.sha256,
            "memories": sum(len(one.memories) for one in dataset.collections),
            "questions": sum(len(one.questions) for one in dataset.collections),
            "systems": {
                label: {name: {"mean": mean, "error": error} for name, (mean, error) in one.items()}
                for label, one in systems.items()
            },
        }
    return found


def latency(peers, sizes, crowds):
    from benches.peers.measure import measure_latency  # noqa: PLC0415 - after the restart

    found = []
    for rows in sizes:
        for users in crowds:
            report(f"timing searches of {rows:,} memories of {users} users")
            systems = measure_latency(peers, rows, users)
            found.append({"rows": rows, "users": users, "systems": systems})
    return found


def filters(peers, rows):
    from benches.peers.measure import measure_filters  # noqa: PLC0415 - after the restart

    report(f"filtering {rows:,} memories")
    return {"rows": rows, "systems": measure_filters(peers, rows)}


def main():
    options = parse()
    environment.restart_at_their_best()
    from benches.peers.report import render  # noqa: PLC0415 - numpy comes after the restart
    from benches.support.timing import clock, work  # noqa: PLC0415 - so does it here

    if options.cpu:
        clock.now = work
    found, left_out = load_peers(options.only)
    peers, chosen = list(found.values()), options.parts
    record = {
        "machine": machine(found, options.directory),
        "left_out": left_out,
        "quality": quality(peers, options.directory) if "quality" in chosen else {},
        "latency": latency(peers, options.rows, options.users) if "latency" in chosen else [],
        "filters": filters(peers, min(options.rows)) if "filters" in chosen else {},
    }
    print(render(record))
    if options.json:
        environment.write_record(options.json, record)


if __name__ == "__main__":
    main()

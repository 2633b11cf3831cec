"""Tables for people: Markdown, a row each way to search."""

from benches.peers.samples import TOPICS
from benches.support.environment import title


def render(record):
    """Write all figures, under a line with the machine and the versions."""
    parts = [title(record["machine"]), *record["left_out"]]
    parts += [quality_table(name, one) for name, one in record["quality"].items()]
    parts += [latency_table(one) for one in record["latency"]]
    if record["filters"]:
        parts.append(filter_table(record["filters"]))
    return "\n\n".join(parts)


def quality_table(name, measured):
    heading = f"Quality on {name}: {measured['memories']:,} memories, "
    heading += f"{measured['questions']:,} questions (± standard error)"
    systems = measured["systems"]
    figures = list(next(iter(systems.values())))
    lines = {
        label: [f"{found[one]['mean']:.3f} ± {found[one]['error']:.3f}" for one in figures]
        for label, found in systems.items()
    }
    return table(heading, figures, lines)


def latency_table(measured):
    heading = "{rows:,} memories of {users} users, one user's searched, ms a search".format(
        **measured
    )
    lines = {
        label: [f"{found['p50']:.2f}", f"{found['p95']:.2f}"]
        for label, found in measured["systems"].items()
    }
    return table(heading, ["p50", "p95"], lines)


def filter_table(measured):
    heading = f"Filters over {measured['rows']:,} memories: share of the wanted that came back, "
    heading += "and of answers by meaning that are the exact ones"
    columns = [f"{share:.1%} {of}" for share in TOPICS.values() for of in ("returned", "exact")]
    lines = {
        label: [percent(found[topic][of]) for topic in TOPICS for of in ("returned", "exact")]
        for label, found in measured["systems"].items()
    }
    return table(heading, columns, lines)


def percent(share):
    """Write a share; only a complete one is shown as 100 %."""
    if share is None:
        return ""
    text = f"{share:.0%}"
    return f"{share:.2%}" if text == "100%" and share < 1 else text


def table(heading, columns, lines):
    rows = [["system", *columns], ["---"] * (len(columns) + 1)]
    rows += [[label, *cells] for label, cells in lines.items()]
    return "\n".join([f"{heading}:", "", *(f"| {' | '.join(cells)} |" for cells in rows)])

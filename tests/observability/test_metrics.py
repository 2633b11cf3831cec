"""Metrics by OpenTelemetry. Each scenario has its own process: providers are set only once."""

import json
from importlib.metadata import version

import pytest

from mnemic.observability.table import HISTOGRAMS, METRICS
from tests.support.metrics import MNEMIC, OTEL, run

PREFIX = "agents.memory.longterm."


def value(measured, name):
    """Return the one value of a gauge that has one point, of the agent `aide`."""
    (point,) = measured[PREFIX + name]["points"]
    assert point["attributes"] == {"agent_id": "aide"}
    return point["value"]


USE_IT_ALL = """
async def use():
    async with AsyncLongTermMemory(
        ":memory:", agent_id="aide", embedder=WordEmbedder()
    ) as memory:
        one = entry("dark møde")
        await memory.store(one)
        await memory.store_batch([entry("light mode"), entry("tea")])
        await memory.store_batch([])
        await memory.retrieve(one.id)
        await memory.retrieve_batch([uuid4() for _ in range(40)])
        await memory.search_semantic("mode", limit=2, min_similarity=0, user_id=None)
        await memory.search_semantic("mode", min_similarity=0, user_id="a secret user")
        await memory.forget(one.id)
        return points()

show(asyncio.run(use()), points())
"""


@pytest.fixture(scope="module", params=["before", "after"])
def used(request):
    """What is measured if the provider is set before mnemic is imported, or long after."""
    if request.param == "before":
        (measured, closed), logged = run(OTEL, "use_provider()", MNEMIC, USE_IT_ALL)
    else:
        late = USE_IT_ALL.replace("        one =", "        use_provider()\n        one =")
        (measured, closed), logged = run(MNEMIC, OTEL, late)
    assert logged == ""
    return measured, closed


@pytest.mark.requirement("R100", "R101", "R102", "R103", "R104")
@pytest.mark.parametrize(
    ("name", "unit", "calls"),
    [
        ("store_latency_ms", "ms", 2),
        ("retrieve_latency_ms", "ms", 2),
        ("search_latency_ms", "ms", 2),
        ("embedding_time_ms", "ms", 4),  # two writes and two queries
        ("search_results", "{result}", 2),
    ],
)
def test_every_call_is_in_the_histogram_of_its_kind(used, name, unit, calls):
    metric = used[0][PREFIX + name]
    (point,) = metric["points"]
    assert (metric["unit"], metric["scope"], point["count"]) == (unit, "mnemic", calls)
    kind = {"search_type": "semantic"} if name.startswith("search") else {}
    assert point["attributes"] == {"agent_id": "aide", **kind}
    assert point["sum"] > 0


EVERY_ROW = """
from collections import defaultdict
from mnemic.observability import table, telemetry

meter, facts = telemetry.Meter("aide", None), defaultdict(lambda: 2)
for row in list(vars(table).values()):
    if isinstance(row, table.Row):
        meter.measure(row, facts)
show(points())
"""


@pytest.mark.requirement("R202", "R206", "R263", "R265", "R316", "R317", "R318", "R319", "R320")
def test_each_metric_of_the_table_is_exported_with_its_unit_and_bounds():
    (measured,), logged = run(OTEL, "use_provider()", EVERY_ROW)
    assert logged == ""
    told = {name: (each["unit"], each["points"][0]) for name, each in measured.items()}
    bounds = {name: point.get("explicit_bounds") for name, (_, point) in told.items()}
    # OpenTelemetry's own SDK writes all names in lower case.
    wanted = {name.lower(): each for name, each in METRICS.items()}
    assert {name: unit for name, (unit, _) in told.items()} == {
        name: each.unit for name, each in wanted.items()
    }
    assert bounds == {
        name: list(HISTOGRAMS[each.unit][1]) if each.unit in HISTOGRAMS else None
        for name, each in wanted.items()
    }


def test_latencies_are_milliseconds_and_told_apart_below_one(used):
    for name in ("store_latency_ms", "retrieve_latency_ms", "search_latency_ms"):
        (point,) = used[0][PREFIX + name]["points"]
        assert 0.001 < point["min"] <= point["max"] < 60_000
        assert sum(bound < 1 for bound in point["explicit_bounds"]) >= 5


def test_a_search_lasts_at_least_as_long_as_its_embedding(used):
    (search,) = used[0][PREFIX + "search_latency_ms"]["points"]
    (embedding,) = used[0][PREFIX + "embedding_time_ms"]["points"]
    assert search["sum"] > embedding["min"] * 2


@pytest.mark.requirement("R104")
def test_results_are_counted(used):
    (point,) = used[0][PREFIX + "search_results"]["points"]
    assert (point["sum"], point["min"], point["max"]) == (2, 0, 2)


@pytest.mark.requirement("R098", "R099")
def test_gauges_show_what_there_is_when_they_are_read(used):
    measured, _ = used
    assert value(measured, "entries") == 2  # one was forgotten
    assert value(measured, "storage_bytes") == len("dark møde light mode tea".encode()) - 2
    assert [measured[PREFIX + name]["unit"] for name in ("entries", "storage_bytes")] == [
        "{entry}",
        "By",
    ]


def test_gauges_are_silent_after_close(used):
    gauges = {PREFIX + "entries", PREFIX + "storage_bytes"}
    assert set(used[0]) - set(used[1]) == gauges


def test_neither_contents_nor_users_nor_ids_are_told(used):
    told = json.dumps(used)
    assert "secret" not in told
    assert "mode" not in told


def test_a_memory_is_measured_from_when_the_program_imports_opentelemetry():
    opened = "memory = opened()\nmemory.add('x')"
    (measured,), _ = run(MNEMIC, opened, OTEL, "use_provider()\nmemory.add('y')\nshow(points())")
    assert value(measured, "entries") == 2
    assert measured[PREFIX + "store_latency_ms"]["points"][0]["count"] == 1


def test_several_memories_are_measured_side_by_side(tmp_path):
    scenario = """
memories = [opened("one.db"), opened("one.db"), opened("link.db"), opened("two.db"), opened(),
            opened("one.db", "other"), opened()]
for number, memory in enumerate(memories):
    memory.add("x" * 10 ** number)
both = points()
for at in (0, 3, 6):
    memories[at].close()
some = points()
for memory in memories:
    memory.close()
show(both, some, points())
"""
    (tmp_path / "link.db").symlink_to("one.db")
    (both, some, none), logged = run(OTEL, "use_provider()", MNEMIC, scenario, directory=tmp_path)
    assert logged == ""
    assert gauge_by_agent(both, "entries") == {"aide": 6, "other": 1}
    assert gauge_by_agent(both, "storage_bytes") == {"aide": 1_011_111, "other": 100_000}
    assert gauge_by_agent(some, "entries") == {"aide": 4, "other": 1}
    assert PREFIX + "entries" not in none
    stored = {
        point["attributes"]["agent_id"]: point["count"]
        for point in none[PREFIX + "store_latency_ms"]["points"]
    }
    assert stored == {"aide": 6, "other": 1}


def gauge_by_agent(measured, name):
    points = measured[PREFIX + name]["points"]
    assert len({point["attributes"]["agent_id"] for point in points}) == len(points)
    return {point["attributes"]["agent_id"]: point["value"] for point in points}


def test_a_memory_that_nobody_closed_is_collected_and_no_longer_measured():
    scenario = """
memory = opened()
memory.add("x")
before = points()
del memory
gc.collect()
show(before, points())
"""
    (before, after), _ = run(OTEL, "use_provider()", MNEMIC, scenario)
    assert value(before, "entries") == 1
    assert PREFIX + "entries" not in after


def test_gauges_may_be_read_while_memories_come_and_go():
    scenario = """
kept = opened()
kept.add("x")
stop = threading.Event()

def come_and_go():
    while not stop.is_set():
        opened(agent_id="brief").close()

threads = [threading.Thread(target=come_and_go) for _ in range(3)]
for thread in threads:
    thread.start()
seen = [points() for _ in range(100)]
stop.set()
for thread in threads:
    thread.join()
show(*seen)
"""
    seen, logged = run(OTEL, "use_provider()", MNEMIC, scenario)
    assert logged == ""
    assert [gauge_by_agent(measured, "entries")["aide"] for measured in seen] == [1] * 100


def test_threads_lose_no_measurement():
    scenario = """
memory = opened()
def add():
    for number in range(50):
        memory.add(f"memory {number}")
threads = [threading.Thread(target=add) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
show(points())
"""
    (measured,), _ = run(OTEL, "use_provider()", MNEMIC, scenario)
    (point,) = measured[PREFIX + "store_latency_ms"]["points"]
    assert point["count"] == 200
    assert value(measured, "entries") == 200


def test_what_failed_is_not_measured():
    scenario = """
memory = opened()
one = memory.add("x")
for refused in (lambda: memory.add("y", id=one.id), lambda: memory.search(" ")):
    try:
        refused()
    except ValueError:
        continue
    raise SystemExit("should have been refused")
show(points())
"""
    (measured,), _ = run(OTEL, "use_provider()", MNEMIC, scenario)
    assert measured[PREFIX + "store_latency_ms"]["points"][0]["count"] == 1
    assert PREFIX + "search_latency_ms" not in measured


ADD_AND_SEARCH = """
with opened() as memory:
    memory.add("dark mode")
    memory.search("mode")
    assert memory.count() == 1
"""


def test_nothing_is_imported_because_it_is_installed():
    assert version("opentelemetry-api")
    seen, _ = run(
        MNEMIC,
        ADD_AND_SEARCH,
        "import json",
        "print(json.dumps([name for name in sys.modules if name.startswith('opentelemetry')]))",
    )
    assert seen == []


def test_everything_works_where_opentelemetry_cannot_be_imported():
    absent = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
"""
    assert run(absent, MNEMIC, ADD_AND_SEARCH) == (None, "")


def test_everything_works_where_no_provider_was_set():
    assert run("import opentelemetry.metrics", MNEMIC, ADD_AND_SEARCH) == (None, "")


NO_METER = """
class Provider(metrics.MeterProvider):
    def get_meter(self, *arguments, **options):
        print("asked for a meter", file=sys.stderr)
        raise OSError("no meter")
"""

NO_RECORD = """
class Histogram(metrics.NoOpHistogram):
    def record(self, *arguments, **options):
        raise OSError("no record")

class Meter(metrics.NoOpMeter):
    def create_histogram(self, name, *arguments, **options):
        return Histogram(name)

class Provider(metrics.NoOpMeterProvider):
    def get_meter(self, *arguments, **options):
        return Meter("broken")
"""

WITHOUT_BOUNDS = """
class Meter(metrics.NoOpMeter):
    def create_histogram(self, name, unit, description):
        return metrics.NoOpHistogram(name)

class Provider(metrics.NoOpMeterProvider):
    def get_meter(self, *arguments, **options):
        return Meter("older than 1.30")
"""


@pytest.mark.parametrize("broken", [NO_METER, NO_RECORD, WITHOUT_BOUNDS])
def test_a_broken_back_end_is_logged_once_and_breaks_nothing(broken):
    _, logged = run(
        "import sys\nfrom opentelemetry import metrics",
        broken,
        "metrics.set_meter_provider(Provider())",
        MNEMIC,
        "import logging\nlogging.basicConfig(format='%(name)s: %(message)s')",
        ADD_AND_SEARCH * 2,
    )
    lines = [
        line for line in logged.splitlines() if line.startswith("mnemic.observability.telemetry: ")
    ]
    assert lines
    assert len(lines) == len(set(lines))
    assert all("Measuring agents.memory." in line for line in lines)
    assert logged.count("asked for a meter") == (broken == NO_METER)


def test_a_store_that_cannot_be_read_does_not_silence_the_others(tmp_path):
    scenario = """
import logging
from mnemic.store.operations import EntryCount
from pytest import MonkeyPatch
from tests.support.operations import replace_operation
logging.basicConfig(format="%(name)s: %(message)s")
bad, good = opened(agent_id="bad"), opened()
good.add("x")
def count(*_):
    raise OSError("the disk is gone")
replace_operation(MonkeyPatch(), bad._repository._store, EntryCount, count)
show(points(), points())
"""
    seen, logged = run(OTEL, "use_provider()", MNEMIC, scenario, directory=tmp_path)
    assert [value(measured, "entries") for measured in seen] == [1, 1]
    assert gauge_by_agent(seen[0], "storage_bytes") == {"aide": 1, "bad": 0}
    assert (
        logged.count(f"mnemic.observability.telemetry: Measuring {PREFIX}entries failed: OSError")
        == 1
    )


def test_a_memory_that_is_closed_while_it_is_measured_is_no_failure():
    scenario = """
from mnemic.store.operations import EntryCount
from pytest import MonkeyPatch
from tests.support.operations import replace_operation
memory = opened()
def count(*_):
    memory.close()
    raise OSError("closed meanwhile")
replace_operation(MonkeyPatch(), memory._repository._store, EntryCount, count)
show(points())
"""
    (measured,), logged = run(OTEL, "use_provider()", MNEMIC, scenario)
    assert logged == ""
    assert PREFIX + "entries" not in measured


def test_a_forked_process_measures_the_memories_it_opens_itself(tmp_path):
    scenario = """
import logging
logging.basicConfig(format="%(name)s: %(message)s")
inherited = opened("a.db")
inherited.add("x")
child = os.fork()
if child == 0:
    with opened("b.db") as own:
        own.add_many(["y", "z"])
        show(points())
    sys.stdout.flush()
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0
"""
    (measured,), _ = run(OTEL, "use_provider()", MNEMIC, scenario, directory=tmp_path)
    assert value(measured, "entries") == 2

"""Spans by OpenTelemetry. Each scenario has its own process: providers are set only once."""

import json

import pytest

from mnemic.observability.spans import CAPTURES_CONTENT, IN_DEVELOPMENT, OPTS_IN
from tests.support.metrics import MNEMIC, run

SPANS = """
import json
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from mnemic import AsyncMemory
exporter = InMemorySpanExporter()

def use_provider():
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)

def told():
    "Return name, name of the parent, attributes, status and kind of each span, in their order."
    spans = exporter.get_finished_spans()
    exporter.clear()
    names = {span.context.span_id: span.name for span in spans}
    return [
        (
            span.name,
            names.get(span.parent.span_id, "?") if span.parent else None,
            dict(span.attributes),
            span.status.status_code.name,
            [span.kind.name, len(span.events), span.status.description],
        )
        for span in spans
    ]

def show(*values):
    print(json.dumps(values))
"""

USE = """
SECRET, USER = "the vault opens at nine", "a secret user"
memory = opened()
mine = memory.scoped(user_id=USER)
one = mine.add(SECRET)
added = told()
mine.add_many(["tea", "bread"])
mine.add_many([{"content": "milk", "id": one.id}], on_conflict="replace")
several = told()
mine.search("vault")
mine.context("vault", max_tokens=100)
searched = told()
mine.update(one.id, content="rye bread")
mine.delete(one.id)
mine.restore(one.id)
try:
    mine.update(uuid4(), content="nobody's")
except LookupError:
    pass
mine.delete_all()
memory.forget_agent()
changed = told()
try:
    mine.search("vault", timeout=1e-9)
except Exception:
    pass
failed = told()
show(added, several, searched, changed, failed, str(one.id))
"""


@pytest.fixture(scope="module")
def used():
    told, logged = run(SPANS, "use_provider()", MNEMIC, USE)
    assert logged == ""
    return told


def names(spans):
    return [(name, parent) for name, parent, *_ in spans]


def test_an_addition_has_its_id_and_the_embedder_inside(used):
    added, *_, one = used
    assert names(added) == [("embeddings words", "create_memory"), ("create_memory", None)]
    (*_, embedded, _, _), (*_, created, status, (kind, *_)) = added
    assert embedded == {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.request.model": "words",
        "gen_ai.embeddings.dimension.count": 64,
    }
    assert created == {
        "gen_ai.operation.name": "create_memory",
        "gen_ai.memory.store.id": "aide",
        "gen_ai.memory.record.count": 1,
        "gen_ai.memory.record.id": one,
    }
    assert (status, kind) == ("UNSET", "INTERNAL")


def test_several_records_have_a_number_and_what_replaces_has_a_name(used):
    _, several, *_, one = used
    counts = [(name, about.get("gen_ai.memory.record.count")) for name, _, about, *_ in several]
    assert [each for each in counts if each[1]] == [("create_memory", 2), ("upsert_memory", 1)]
    assert several[-1][2]["gen_ai.memory.record.id"] == one


def test_a_search_has_its_phases_inside(used):
    searched = used[2]
    first = names(searched)[:5]
    inside = ["refresh", "embeddings words", "rank", "read"]
    assert first == [*[(name, "search_memory") for name in inside], ("search_memory", None)]
    assert searched[4][2]["gen_ai.memory.record.count"] == 3
    assert [name for name, parent in names(searched) if parent is None] == ["search_memory"] * 2


def test_changes_and_deletions_have_their_names_and_numbers(used):
    changed = [
        (name, about["gen_ai.memory.record.count"])
        for name, parent, about, *_ in used[3]
        if not parent
    ]
    assert changed == [
        ("update_memory", 1),
        ("delete_memory", 1),
        ("update_memory", 1),
        ("update_memory", 0),
        ("delete_memory", 3),
        ("delete_memory_store", 3),
    ]


def test_an_error_is_named_and_not_quoted(used):
    *_, (name, _, about, status, (_, events, description)) = used[4]
    assert (name, status, events, description) == ("search_memory", "ERROR", 0, None)
    assert about["error.type"] == "DeadlineExceededError"


def test_no_text_and_no_user_is_in_a_span(used):
    assert "vault" not in json.dumps(used)
    assert "secret user" not in json.dumps(used)


def test_content_is_captured_where_the_program_asks_for_it_but_for_sensitive_memories():
    told, _ = run(
        f"import os; os.environ['{CAPTURES_CONTENT}'] = 'true'",
        SPANS,
        "use_provider()",
        MNEMIC,
        "memory = opened()\n"
        "memory.add('the vault opens at nine')\n"
        "memory.add('the vault has a code', sensitive=True)\n"
        "exporter.clear()\n"
        "memory.search('vault')\n"
        "show(told())",
    )
    *_, (_, _, about, *_) = told[0]
    assert about["gen_ai.memory.query.text"] == "vault"
    (record,) = json.loads(about["gen_ai.memory.records"])
    assert record["content"] == "the vault opens at nine"
    assert about["gen_ai.memory.record.count"] == 2


def test_awaited_calls_are_inside_the_span_of_their_task():
    told, _ = run(
        SPANS,
        "use_provider()",
        MNEMIC,
        "async def use(name):\n"
        "    with trace.get_tracer('program').start_as_current_span(name):\n"
        "        async with AsyncMemory(':memory:', embedder=WordEmbedder()) as memory:\n"
        "            await memory.add(name)\n"
        "            await memory.search(name)\n"
        "async def both():\n"
        "    await asyncio.gather(use('one'), use('two'))\n"
        "asyncio.run(both())\n"
        "show(told())",
    )
    outer = [(parent, name) for name, parent in names(told[0]) if parent in ("one", "two")]
    operations = "create_memory", "search_memory"
    assert sorted(outer) == [(name, each) for name in ("one", "two") for each in operations]


@pytest.mark.parametrize(
    "opened",
    [
        "",
        "from opentelemetry import trace\n",
        "import sys; sys.modules['opentelemetry.trace'] = object()\n",
    ],
)
def test_without_a_provider_calls_are_as_ever(opened):
    told, logged = run(
        opened,
        MNEMIC,
        "import json\n"
        "memory = opened()\n"
        "memory.add('tea')\n"
        "print(json.dumps([len(memory.search('tea')), 'opentelemetry.sdk' in sys.modules]))",
    )
    assert told == [1, False]
    assert logged.count("\n") <= 1


BROKEN = """
import logging
logging.basicConfig(format="%(message)s")

class Broken(TracerProvider):
    def get_tracer(self, *_given, **_named):
        return self

    def start_as_current_span(self, *_given, **_named):
        raise RuntimeError("no span today")

trace.set_tracer_provider(Broken())
"""


def test_a_broken_provider_ends_no_call():
    told, logged = run(
        SPANS,
        BROKEN,
        MNEMIC,
        "memory = opened()\nmemory.add('tea')\nshow(len(memory.search('tea')))",
    )
    assert told == [1]
    assert logged.count("Tracing failed: RuntimeError") == 1


@pytest.mark.parametrize("asked", [True, False])
def test_the_metric_of_the_conventions_is_there_where_the_program_asks_for_it(asked):
    told, _ = run(
        f"import os; os.environ['{OPTS_IN}'] = 'http,{IN_DEVELOPMENT if asked else ''}'",
        SPANS,
        "use_provider()\n"
        "from opentelemetry import metrics\n"
        "from opentelemetry.sdk.metrics import MeterProvider\n"
        "from opentelemetry.sdk.metrics.export import InMemoryMetricReader\n"
        "reader = InMemoryMetricReader()\n"
        "metrics.set_meter_provider(MeterProvider([reader]))",
        MNEMIC,
        "memory = opened()\n"
        "memory.add('tea')\n"
        "memory.search('tea')\n"
        "found = [m for r in reader.get_metrics_data().resource_metrics\n"
        "    for s in r.scope_metrics for m in s.metrics if m.name.startswith('gen_ai')]\n"
        "show([(m.name, m.unit, [dict(p.attributes) for p in m.data.data_points]) for m in found])",
    )
    operations = ["embeddings", "create_memory", "search_memory"]
    points = [{"gen_ai.operation.name": name} for name in operations]
    assert told[0] == ([["gen_ai.client.operation.duration", "s", points]] if asked else [])

"""What is measured: in this process, and by OpenTelemetry in programs of their own."""

import json
import subprocess
import sys
from collections import defaultdict

from mnemic.observability import telemetry
from tests.support.processes import ENVIRONMENT


def measuring(monkeypatch, prefix):
    """Return the values measured from now on, by the rest of the name and the attributes."""
    measured = defaultdict(list)

    class Instruments(dict):
        def __missing__(self, name):
            def record(value, attributes):
                if name.startswith(prefix):
                    measured[name.removeprefix(prefix), *attributes.values()].append(value)

            return record

    monkeypatch.setattr(telemetry._process, "instruments", Instruments)
    return measured


MNEMIC = """
import asyncio, gc, logging, os, sys, threading
from datetime import UTC, datetime
from uuid import uuid4
from tests.support.embedders import WordEmbedder
from mnemic.compat.long_term import AsyncLongTermMemory
from mnemic.memory import Memory
from mnemic.model import MemoryEntry

def opened(path=":memory:", agent_id="aide"):
    return Memory(path, agent_id, embedder=WordEmbedder())

def entry(content):
    return MemoryEntry(id=uuid4(), agent_id="aide", content=content, created_at=datetime.now(UTC))
"""

OTEL = """
import json
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
reader = InMemoryMetricReader()

def use_provider():
    metrics.set_meter_provider(MeterProvider([reader]))

def points():
    "Return all that is measured: name to unit, scope and points; a point is what JSON says of it."
    collected = reader.get_metrics_data()
    return {
        metric.name: {
            "unit": metric.unit,
            "scope": scope.scope.name,
            "points": [json.loads(point.to_json()) for point in metric.data.data_points],
        }
        for resource in (collected.resource_metrics if collected else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }

def show(*values):
    print(json.dumps(values))
"""


def run(*parts, directory=None):
    """Run code as a program; return what it printed as its last line, and what it logged."""
    command = [sys.executable, "-W", "error", "-c", "\n".join(parts)]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=directory, env=ENVIRONMENT
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return (json.loads(lines[-1]) if lines else None), done.stderr

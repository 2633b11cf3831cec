"""What a program sees of the package, as lines: answers, events, log records, metrics, warnings.

Durations are left out, with the warning of a slow embedding, and the places of errors in the
source; nothing else is.
"""

import contextlib
import enum
import hashlib
import logging
import re
import sys
import types
import warnings
from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

import msgspec
import numpy as np

from mnemic import events

EVENTS = [getattr(events, name) for name in dir(events) if name.endswith("Event")]
LEFT_OUT = "…"

_DURATION = re.compile(r"(^|_|\.)(ms|time|seconds|latency)$", re.IGNORECASE)
_SLOW = "Embedding generation slow"
_IN_TEXT = re.compile(r"\d+(\.\d+)?(?= ?ms\b)|\w+\.py:\d+")


class Tape(logging.Handler):
    """Takes down what happens while it runs, in its order."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def write(self, kind, **fields):
        self.lines.append({"kind": kind, **whole(fields)})

    def emit(self, record):
        said = _IN_TEXT.sub(LEFT_OUT, record.getMessage())
        if not said.startswith(_SLOW):
            self.write("log", name=record.name, level=record.levelname, said=said)

    def hear(self, event):
        self.write("event", event=event)

    def measured(self, name, value, attributes):
        value = LEFT_OUT if _DURATION.search(name) else value
        self.write("metric", name=name, value=value, attributes=attributes)

    def warned(self, message, category, *_):
        self.write("warning", name=category.__name__, said=str(message))

    def listen(self, to):
        """Hear all events of a memory."""
        for kind in EVENTS:
            to.subscribe(kind, self.hear)

    @contextlib.contextmanager
    def running(self):
        """Take down log records, metrics and warnings of this process."""
        log = logging.getLogger("mnemic")
        level = log.level
        log.addHandler(self)
        log.setLevel(logging.DEBUG)
        METRICS.tape = self
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.showwarning = self.warned
                yield self
        finally:
            METRICS.tape = None
            log.setLevel(level)
            log.removeHandler(self)


class _Metrics(types.ModuleType):
    """Stands in for `opentelemetry.metrics`: instruments that write to the tape that runs."""

    def __init__(self):
        super().__init__("opentelemetry.metrics")
        self.tape, self.gauges = None, {}

    def get_meter(self, *_):
        return self

    def create_observable_gauge(self, name, callbacks, *_):
        self.gauges[name] = callbacks

    def create_counter(self, name, *_, **__):
        def add(value, attributes):
            if self.tape is not None:
                self.tape.measured(name, value, attributes)

        return types.SimpleNamespace(add=add, record=add)

    create_histogram = create_counter

    @staticmethod
    def Observation(value, attributes):  # noqa: N802 - OpenTelemetry's name
        return value, attributes

    def read_gauges(self):
        for name, callbacks in self.gauges.items():
            for value, attributes in (each for callback in callbacks for each in callback(None)):
                self.tape.measured(name, value, attributes)


METRICS = sys.modules.setdefault("opentelemetry.metrics", _Metrics())


def whole(value):
    """Return a value with all its public fields, at any depth, in plain JSON types."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    return next(make(value) for kind, make in _FORMS if isinstance(value, kind))


def _record(value):
    fields = {name: getattr(value, name) for name in value.__struct_fields__}
    if hasattr(type(value), "prompt"):
        fields["prompt"] = value.prompt
    return _named(value, fields)


def _error(value):
    said, notes = _IN_TEXT.sub(LEFT_OUT, str(value)), getattr(value, "__notes__", [])
    return _named(value, {**vars(value), "said": said, "notes": notes})


def _array(value):
    return f"{value.shape} {hashlib.sha256(value.tobytes()).hexdigest()[:16]}"


def _mapping(value):
    return {str(whole(key)): _item(str(key), item) for key, item in value.items()}


def _listing(value):
    items = list(map(whole, value))
    marks = getattr(value, "__dict__", {})
    return _named(value, {**marks, "items": items}) if marks else items


def _marked(value):
    plain = str.__str__(value) if isinstance(value, str) else int(value)
    return _named(value, {**getattr(value, "__dict__", {}), "value": plain})


def _named(value, fields):
    """Return the public fields that are not None, after the name of the class."""
    shown = {
        name: _item(name, item)
        for name, item in fields.items()
        if item is not None and not name.startswith("_")
    }
    return {"": type(value).__name__, **shown}


def _item(name, value):
    is_duration = isinstance(value, float | timedelta | dict) and _DURATION.search(name)
    return LEFT_OUT if is_duration else whole(value)


_FORMS = (
    (enum.Enum, lambda value: value.name),
    (msgspec.Struct, _record),
    (datetime, datetime.isoformat),
    (timedelta, timedelta.total_seconds),
    (UUID, str),
    (np.ndarray, _array),
    (np.generic, np.generic.item),
    (BaseException, _error),
    (Mapping, _mapping),
    (set | frozenset, lambda value: sorted(map(whole, value))),
    (list | tuple, _listing),
    (str | int, _marked),
    (object, lambda value: {"": type(value).__name__}),
)

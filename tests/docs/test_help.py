"""What `help(Memory)` shows."""

import inspect
import pydoc
import re
import sys

import pytest

from mnemic import AsyncMemory, Memory
from mnemic.annotations import Options
from mnemic.repository.settings import Settings

MOST_LINES = 500

# pydoc of later versions gives each argument of a long signature a line.
at_one_line_a_signature = pytest.mark.skipif(
    sys.version_info[:2] > (3, 11), reason="signatures have several lines"
)

SAID_OTHERWISE = {
    "embedder": "default the local MiniLM",
    "retention": "default 90 days",
    "clock": "default the system's",
    "time_zone": "default the stored one",
    "id_factory": "default UUIDs of version 7",
}


def shown(kind):
    return pydoc.render_doc(kind, renderer=pydoc.plaintext)


def listed(title):
    """Return the names and texts under a title of the docstring of `Memory`."""
    _, _, rest = inspect.getdoc(Memory).partition(f"\n{title}:\n")
    found = re.findall(
        r"^    (\w[\w, ]*): (.*(?:\n     +.*)*)", rest.split("\n\n")[0], re.MULTILINE
    )
    return {name: text for names, text in found for name in names.split(", ")}


@at_one_line_a_signature
@pytest.mark.parametrize("kind", [Memory, AsyncMemory])
def test_help_has_at_most_500_lines(kind):
    assert len(shown(kind).splitlines()) <= MOST_LINES


def test_every_option_has_one_line_with_its_default():
    options = listed("Options")
    assert list(options) == list(Options.__annotations__)
    defaults = inspect.signature(Settings.of).parameters
    for name, text in options.items():
        line = f"        {name}: {text}"
        assert len(line) <= 100, name
        assert "\n" not in text
        assert SAID_OTHERWISE.get(name, as_said(defaults[name].default)) in text


def as_said(default):
    if isinstance(default, str):
        return f'default "{default}"'
    return f"default {default:,g}" if type(default) in {int, float} else f"default {default}"


def test_arguments_described_once_are_those_of_calls():
    arguments = listed("Arguments of many calls")
    methods = [getattr(Memory, name) for name in dir(Memory) if not name.startswith("_")]
    taken = {
        name
        for method in methods
        if callable(method)
        for name in inspect.signature(method).parameters
    }
    assert arguments.keys() <= taken


@pytest.mark.parametrize("kind", [Memory, AsyncMemory])
def test_help_names_types_as_a_program_does(kind):
    text = shown(kind)
    assert "numpy._typing" not in text
    assert "ForwardRef" not in text
    assert "<class 'mnemic" not in text

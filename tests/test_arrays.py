"""numpy as the package has it: loaded on first use, and otherwise the same."""

import inspect
import subprocess
import sys
from typing import get_type_hints

import msgspec
import numpy as np
import pytest

import mnemic
from mnemic import arrays

NAMES = {
    "Array": None,
    "BoolArray": np.bool_,
    "Float32Array": np.float32,
    "Int64Array": np.int64,
    "UInt8Array": np.uint8,
}


def test_the_names_are_those_of_numpy():
    assert arrays.np.float32 is np.float32
    assert arrays.np.linalg is np.linalg
    with pytest.raises(AttributeError, match="no attribute 'float33'"):
        arrays.np.float33  # noqa: B018


@pytest.mark.parametrize(("name", "kind"), NAMES.items())
def test_an_array_is_an_instance_of_the_class_of_its_numbers(name, kind):
    named = getattr(arrays, name)
    assert isinstance(np.zeros(2, kind), named)
    assert isinstance(np.zeros(2, np.float64), named) == (kind is None)
    assert not isinstance([0.0, 0.0], named)


def test_signatures_and_records_have_types_that_are_printed_as_a_word():
    assert get_type_hints(mnemic.Memory.search)["vector"] == arrays.ArrayLike | None
    assert get_type_hints(mnemic.MemoryEntry)["embedding"] == arrays.Float32Array | None
    fields = {field.name: field for field in msgspec.structs.fields(mnemic.MemoryEntry)}
    assert fields["embedding"].type.__origin__ == arrays.Float32Array | None
    assert str(inspect.signature(mnemic.Memory.search).parameters["vector"]) == (
        "vector: mnemic.arrays.ArrayLike | None = None"
    )


def test_msgspec_converts_to_a_record_with_an_array():
    made = mnemic.MemoryEntry("tea", embedding=[1.0, 2.0])
    sent = msgspec.json.encode(made, enc_hook=mnemic.model.enc_hook)
    read = msgspec.json.decode(
        sent, type=mnemic.MemoryEntry, dec_hook=lambda _, given: np.array(given, np.float32)
    )
    assert read.embedding.tolist() == [1.0, 2.0]


def test_threads_that_ask_for_numpy_at_once_all_get_it():
    code = (
        "import threading\n"
        "from mnemic.arrays import np\n"
        "found, start = [], threading.Barrier(8)\n"
        "def ask():\n"
        "    start.wait()\n"
        "    found.append(np.zeros(3).sum())\n"
        "threads = [threading.Thread(target=ask) for _ in range(8)]\n"
        "[each.start() for each in threads], [each.join() for each in threads]\n"
        "assert found == [0.0] * 8\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

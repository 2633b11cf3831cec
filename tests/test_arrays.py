"""numpy as the package has it: loaded on first use, and otherwise the same."""

import subprocess
import sys
from typing import Any, get_type_hints

import msgspec
import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

import mnemic
from mnemic import arrays

TYPES = {
    "Array": NDArray[Any],
    "ArrayLike": ArrayLike,
    "BoolArray": NDArray[np.bool_],
    "Float32Array": NDArray[np.float32],
    "Int64Array": NDArray[np.int64],
    "UInt8Array": NDArray[np.uint8],
}


def test_the_names_are_those_of_numpy():
    assert arrays.np.float32 is np.float32
    assert arrays.np.linalg is np.linalg
    with pytest.raises(AttributeError, match="no attribute 'float33'"):
        arrays.np.float33  # noqa: B018


@pytest.mark.parametrize("name", sorted(set(arrays.__all__) - {"np"}))
def test_a_type_is_read_as_that_of_numpy(name):
    def function(given: getattr(arrays, name), others: list[getattr(arrays, name)]): ...

    hints = get_type_hints(function)
    assert hints == {"given": TYPES[name], "others": list[TYPES[name]]}


def test_public_signatures_and_records_have_the_types_of_numpy():
    assert get_type_hints(mnemic.Memory.search)["vector"] == ArrayLike | None
    assert get_type_hints(mnemic.MemoryEntry)["embedding"] == NDArray[np.float32] | None
    fields = {field.name: field for field in msgspec.structs.fields(mnemic.MemoryEntry)}
    assert fields["embedding"].type.__origin__ == NDArray[np.float32] | None


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

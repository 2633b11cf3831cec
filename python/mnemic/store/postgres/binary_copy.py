"""Vectors in PostgreSQL's binary format of COPY, which is read without parsing numbers."""

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_BEGIN: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END: Final = b"\xff\xff"
_COLUMNS: Final = 7


class VectorRow(NamedTuple):
    """A vector of a row's chunk, and when it was stored."""

    row: int
    part: int
    time: int
    vector: NDArray[np.float32]


def vectors_copied(
    agent_id: str, model: str, rows: Iterable[VectorRow], *, is_shadow: bool
) -> bytes:
    """Return rows of `agent_memory_embeddings` as a COPY takes them.

    Each row is its number of columns, and before each column its size; all numbers are big-endian.
    A vector is its dimension, two bytes of zero, and its components (pgvector's `vector_send`).
    """
    agent, name = agent_id.encode(), model.encode()
    head = Struct(f">hi{len(agent)}siqi{len(name)}si?iiiqihh")
    parts = [_BEGIN]
    for row, part, time, vector in rows:
        size = vector.size
        parts.append(
            head.pack(
                _COLUMNS,
                *(len(agent), agent),
                *(8, row),
                *(len(name), name),
                *(1, is_shadow),
                *(4, part),
                *(8, time),
                *(4 + 4 * size, size, 0),
            )
        )
        parts.append(vector.astype(">f4").tobytes())
    parts.append(_END)
    return b"".join(parts)

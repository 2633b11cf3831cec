"""Files of vector maps: all answers of a map, and directories with numbers of a test's own."""

import struct

import numpy as np

from mnemic import VectorMap

HEADER = 48
MAGIC = b"mnemicvm"


def rows_of(count, dim, seed=0):
    return np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)


def map_of(count, dim, metric="cosine", seed=0):
    """A map with ids in no order and of both signs."""
    vectors = VectorMap(dim, metric=metric)
    order = np.random.default_rng(seed + 1).permutation(count)
    vectors.upsert(order * 7 - 30, rows_of(count, dim, seed))
    return vectors


def answers(vectors, seed=0):
    """Return what every reading call answers, as bytes: equal maps have equal ones."""
    ids, queries = vectors.ids(), rows_of(3, vectors.dim, seed + 2)
    allow = vectors.select(ids[::3])
    prior = vectors.prior(ids[::2], np.linspace(-1, 1, len(ids[::2]), dtype=np.float32))
    hits = [
        vectors.search(queries[0], k=10),
        vectors.search(queries[0], k=len(ids) + 1, min_score=0.0),
        vectors.search(queries, k=7),
        vectors.search(queries, k=7, combine="max"),
        vectors.search(queries, k=7, threads=2),
        vectors.search(queries[1], k=7, allow=allow, weight=0.5, prior=prior),
    ]
    found = [part for each in hits for part in (each.ids, each.scores)]
    found += vectors.range_search(queries, min_score=0.1)
    found += vectors.range_search(queries[0], min_score=0.0, allow=allow, prior=prior)
    found += [vectors.count(queries, min_score=0.1), ids, vectors.get(ids)]
    shape = (len(vectors), vectors.dim, vectors.metric)
    return [shape, *((part.dtype.str, part.shape, part.tobytes()) for part in found)]


def checksum(content, folder):
    """Return the checksum of some bytes, as a file has it of its label."""
    VectorMap(1).save(folder / "label", label=bytes(content))
    return directory_of((folder / "label").read_bytes())["label"][2]


class _Numbers:
    """Numbers of seven bits a byte, the lowest first."""

    def __init__(self, content):
        self.content, self.at = content, 0

    def next(self):
        number = shift = 0
        while True:
            byte = self.content[self.at]
            self.at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    def many(self, count):
        return [self.next() for _ in range(count)]


def _place(file):
    return struct.unpack("<2Q", file[16:32])


def directory_of(file):
    """Return the directory of a file; sections are lists of place, size and checksum."""
    first, size = _place(file)
    numbers = _Numbers(file[first : first + size])
    directory = {"metric": numbers.next(), "dim": numbers.next(), "segments": []}
    for _ in range(numbers.next()):
        segment = {"rows": numbers.next(), "section": numbers.many(3), "id_sum": numbers.next()}
        segment["vector_sums"] = numbers.many(numbers.next())
        segment["sketch"] = numbers.many(3) if numbers.next() else None
        directory["segments"].append(segment)
    directory["basis"] = (numbers.next(), numbers.many(3)) if numbers.next() else None
    directory["label"] = numbers.many(3)
    assert numbers.at == size
    return directory


def sections_of(file):
    """Return all bytes before the directory."""
    return bytearray(file[: _place(file)[0]])


def _encoded(number):
    parts = [number >> shift & 127 for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([*(part | 128 for part in parts[:-1]), parts[-1]])


def _numbers_in(directory):
    segments, basis = directory["segments"], directory["basis"]
    yield from (
        directory["metric"],
        directory["dim"],
        directory.get("segment_count", len(segments)),
    )
    for segment in segments:
        sums, sketch = segment["vector_sums"], segment["sketch"]
        yield from (segment["rows"], *segment["section"], segment["id_sum"])
        yield from (segment.get("sum_count", len(sums)), *sums)
        yield from (0,) if sketch is None else (1, *sketch)
    yield from (0,) if basis is None else (1, basis[0], *basis[1])
    yield from directory["label"]


def sealed(sections, directory, folder, version=2, magic=MAGIC):
    """Return a file of these sections and this directory, with sound checksums."""
    if isinstance(directory, dict):
        directory = b"".join(map(_encoded, _numbers_in(directory)))
    numbers = (version, len(sections), len(directory), checksum(directory, folder))
    header = magic + struct.pack("<4Q", *numbers)
    header += struct.pack("<Q", checksum(header, folder))
    return header + bytes(sections[HEADER:]) + directory

"""The floors of an embedder: below them the best memory of a query is most likely no answer."""

from collections.abc import Mapping

from mnemic.errors import InvalidArgumentError
from mnemic.model.search import CosineScale
from mnemic.reporting.description import described

HYBRID_STEP = 0.22
"""A hybrid floor is above `similarity_floor` by this share of the cosines above it.

The default embedder's calibrated floors are this far apart: where no memory has a word of the
query, more similarity is needed.
"""

HYBRID_PLACE = 0.25
"""The learned hybrid floor's place among the cosines from the mean of unrelated memories up to 1.

It refuses at most one question in eighty of any of five sets; see docs/lab/scale.md.
"""

FEW_MEMORIES_FLOOR = 0.35
"""The hybrid floor of memories too few for a scale.

It refuses nonsense where unrelated texts have cosines near 0, and nothing where they have .7.
"""

_TYPES = ("hybrid", "semantic")


def score_floors(embedder: object) -> dict[str, float | None]:
    """Return an embedder's floors by search type; None where it has none.

    Raises:
        InvalidArgumentError: If its `score_floors` are no numbers by search type.
    """
    given = _checked(getattr(embedder, "score_floors", None))
    floor: float | None = getattr(embedder, "similarity_floor", None)
    derived = {
        "hybrid": None if floor is None else floor + HYBRID_STEP * (1 - floor),
        "semantic": floor,
    }
    return {name: given.get(name, derived[name]) for name in _TYPES}


def learned_floor(scale: CosineScale | None) -> float:
    """Return the floor of a hybrid search on the scale of the memories; None is that of few."""
    if scale is None:
        return FEW_MEMORIES_FLOOR
    return scale.mean + HYBRID_PLACE * (1 - scale.mean)


def _checked(floors: object) -> dict[str, float]:
    if floors is None:
        return {}
    read = {name: _floor(floors[name]) for name in floors} if isinstance(floors, Mapping) else {}
    checked = {name: floor for name, floor in read.items() if name in _TYPES and floor is not None}
    if isinstance(floors, Mapping) and len(checked) == len(floors):
        return checked
    raise InvalidArgumentError(
        "the embedder's score_floors must be a dict with cosines for 'hybrid' and 'semantic', "
        f"or None, got {described(floors)}"
    )


def _floor(given: object) -> float | None:
    """Return a cosine that can be a floor; None for anything else."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    return float(given) if -1 <= given < 1 else None

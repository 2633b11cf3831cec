"""Hops, the way from found memories to their neighbours."""

from typing import NamedTuple


class Hops(NamedTuple):
    """Which links are followed from found memories, and what a neighbour's score is.

    Attributes:
        depth: Maximum number of links on a path, 0 to 3; with 0 superseded memories lead to the
            heads of their versions, and nothing else is followed.
        decays: Factor of the score at each link, 0 to 1, by the number of the link's type; links of
            a type with 0 are not followed.
        follow_incoming: Whether links are also followed from the linked memory to the linking one.
        limit: Maximum number of neighbours; with 0 nothing is followed.
    """

    depth: int
    decays: tuple[float, ...]
    follow_incoming: bool = False
    limit: int = 10

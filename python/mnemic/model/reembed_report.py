"""ReembedReport, what a re-embedding has done."""

from uuid import UUID

from mnemic.records import Record


class ReembedReport(Record, frozen=True):
    """What a re-embedding has done.

    Attributes:
        model: Name of the new model.
        dimensions: Length of its vectors.
        previous: Name of the model of the agent's vectors before; None if it had none.
        is_complete: Whether the new vectors are in use. If not, the old ones stay in use, and the
            next call goes on where this one ended.
        embedded: Number of memories embedded by this call.
        kept: Number of memories whose vectors of the model were there already.
        failed: Ids of the memories that the embedder failed on each time, oldest first.
        seconds: Duration.
    """

    model: str
    dimensions: int
    previous: str | None
    is_complete: bool
    embedded: int
    kept: int
    failed: tuple[UUID, ...]
    seconds: float

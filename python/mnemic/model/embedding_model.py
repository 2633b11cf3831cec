"""EmbeddingModel, the model of an agent's stored vectors."""

from mnemic.records import Record


class EmbeddingModel(Record, frozen=True):
    """The model of an agent's stored vectors, as the file records it.

    Attributes:
        name: Name of the model.
        dimensions: Length of each vector.
    """

    name: str
    dimensions: int

"""EmbeddingModel, the model of an agent's stored vectors."""

import msgspec


class EmbeddingModel(msgspec.Struct, frozen=True):
    """The model of an agent's stored vectors, as the file records it.

    Attributes:
        name: Name of the model.
        dimensions: Length of each vector.
    """

    name: str
    dimensions: int

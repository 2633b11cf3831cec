from mnemic.embed.adapting import AdaptedEmbedder as AdaptedEmbedder
from mnemic.embed.adapting import as_embedder as as_embedder
from mnemic.embed.base import AnyEmbedder as AnyEmbedder
from mnemic.embed.base import Embedder as Embedder
from mnemic.embed.base import EmbeddingBatch as EmbeddingBatch
from mnemic.embed.cache import CachedEmbedder as CachedEmbedder
from mnemic.embed.http import HttpEmbedder as HttpEmbedder
from mnemic.embed.minilm import MiniLmEmbedder as MiniLmEmbedder

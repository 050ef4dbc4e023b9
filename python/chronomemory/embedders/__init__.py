"""Embedders: a protocol, one that needs nothing, and adapters, which are modules of their own."""

from chronomemory.embedders.endpoint import CallableEmbedder as CallableEmbedder
from chronomemory.embedders.endpoint import CallableTokenEmbedder as CallableTokenEmbedder
from chronomemory.embedders.endpoint import EndpointEmbedder as EndpointEmbedder
from chronomemory.embedders.endpoint import EndpointError as EndpointError
from chronomemory.embedders.lexical import LexicalEmbedder as LexicalEmbedder
from chronomemory.embedders.protocol import Embedder as Embedder
from chronomemory.embedders.protocol import Matrix as Matrix
from chronomemory.embedders.protocol import TokenEmbedder as TokenEmbedder
from chronomemory.embedders.protocol import Vector as Vector
from chronomemory.embedders.protocol import check_embedder as check_embedder
from chronomemory.embedders.protocol import usual_floor as usual_floor

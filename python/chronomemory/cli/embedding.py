"""Makes the embedder that the options of a command ask for."""

from __future__ import annotations

from dataclasses import dataclass

from chronomemory.cli.session import RefusedError
from chronomemory.embedders import Embedder, EndpointEmbedder, LexicalEmbedder
from chronomemory.embedders.protocol import named_embedder

__all__ = ["BY_WORDS", "Embeds"]


@dataclass(frozen=True, slots=True)
class Embeds:
    """What was said of how texts are embedded."""

    endpoint: str | None = None
    model: str | None = None
    name: str | None = None

    def chosen(self) -> Embedder | None:
        """Return the embedder that was asked for, or None where words are compared."""
        if self.name is not None and self.endpoint is not None:
            raise RefusedError("--endpoint and --embedder both embed", recovery="Give one of them.")
        if self.name is not None:
            return named_embedder(self.name, self.model)
        if (self.endpoint is None) != (self.model is None):
            raise RefusedError(
                "--endpoint and --model belong together",
                recovery="Give both, or neither; or --embedder with a model of its own.",
            )
        if self.endpoint is None or self.model is None:
            return None
        try:
            return EndpointEmbedder(self.model, base_url=self.endpoint)
        except ValueError as error:
            raise RefusedError(str(error), recovery="An address begins with http:// or https://.") from None

    def embedder(self) -> Embedder:
        """Return what embeds blocks: without a choice, what compares words."""
        return self.chosen() or LexicalEmbedder()


#: What a command does that takes no such option.
BY_WORDS = Embeds()

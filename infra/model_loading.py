"""The models that the settings name, loaded when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mnemolog.domain.gate.ports import Extractor, Rules
from mnemolog.infra.settings import Settings
from mnemolog.projections.reranking import Reranker, Reranking

if TYPE_CHECKING:
    from mnemolog.projections.embedding import Embedder


def embedder_of(settings: Settings) -> Callable[[], Embedder] | None:
    """What makes the embedder of the settings when it is needed; None for none."""
    return None if settings.embedder == "none" else lambda: _embedder(settings)


def _embedder(settings: Settings) -> Embedder:
    from mnemolog.infra.embedders import FolderEmbedder, OpenAIEmbedder, SentenceEmbedder

    dimensions = settings.embedder_dimensions
    if dimensions is None:
        return SentenceEmbedder()
    if not settings.embedder_is_url:
        return FolderEmbedder(Path(settings.embedder), dimensions)
    key = None if settings.embedder_key is None else settings.embedder_key.get_secret_value()
    return OpenAIEmbedder(settings.embedder, settings.embedder_model or "", dimensions, key)


def reranking_of(settings: Settings, given: Reranker | None) -> Reranking:
    """The given one, else that of the settings, else none."""
    folder = settings.reranker
    if given is not None:
        return Reranking(lambda: given)
    return Reranking(None if folder is None else lambda: _reranker(folder))


def _reranker(folder: Path) -> Reranker:
    from mnemolog.infra.embedders import FolderReranker

    return FolderReranker(folder)


def extractors_of(settings: Settings, given: Extractor | None) -> Sequence[Extractor]:
    """The rules, and beside them the given one, else the model of the settings, else none."""
    if given is None and settings.extractor_url is not None:
        from mnemolog.infra.models import model_extractor

        given = model_extractor(settings)
    return (Rules(),) if given is None else (Rules(), given)

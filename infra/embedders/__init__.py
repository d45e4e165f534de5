"""Embedders: the one that is built in, a local model folder, and any OpenAI-compatible endpoint."""

from mnemolog.infra.embedders.folder import FolderEmbedder
from mnemolog.infra.embedders.openai import OpenAIEmbedder
from mnemolog.infra.embedders.sentence import SentenceEmbedder

__all__ = ["FolderEmbedder", "OpenAIEmbedder", "SentenceEmbedder"]

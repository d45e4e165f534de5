"""Embedders: the one that is built in, a local model folder, any OpenAI-compatible endpoint; and a local reranker."""

from mnemolog.infra.embedders.folder import FolderEmbedder
from mnemolog.infra.embedders.openai import OpenAIEmbedder
from mnemolog.infra.embedders.reranker import FolderReranker
from mnemolog.infra.embedders.sentence import SentenceEmbedder

__all__ = ["FolderEmbedder", "FolderReranker", "OpenAIEmbedder", "SentenceEmbedder"]

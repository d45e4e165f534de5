"""A cross-encoder in a folder on disk (ONNX and tokenizer files), run by fastembed without a network."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from mnemolog.domain.errors import InvalidInput

_FILES: Final = ("model.onnx", "onnx/model.onnx")


class FolderReranker:
    """Needs the extra `fastembed`. Raises InvalidInput where the folder has no model, or the extra is missing.

    folder: holds the model (`model.onnx`, also below `onnx/`) and the tokenizer's files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder).resolve()
        self._model = self._load(self._file())

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        """One score for each text, as the model gives it."""
        return [float(score) for score in self._model.rerank(question, list(texts))]

    def _file(self) -> str:
        for name in _FILES:
            if (self.folder / name).is_file():
                return name
        raise InvalidInput(
            f"no reranker in {self.folder}: put {_FILES[0]} and its tokenizer there, or unset MNEMOLOG_RERANKER"
        )

    def _load(self, file: str) -> Any:
        try:
            from fastembed.common.model_description import ModelSource
            from fastembed.rerank.cross_encoder import TextCrossEncoder
        except ImportError:
            raise InvalidInput("a reranker needs fastembed: pip install 'mnemolog[fastembed]'") from None
        name = f"mnemolog/{sha256(str(self.folder).encode()).hexdigest()[:16]}"
        if name not in {model["model"] for model in TextCrossEncoder.list_supported_models()}:
            TextCrossEncoder.add_custom_model(model=name, sources=ModelSource(hf=name), model_file=file)
        try:
            return TextCrossEncoder(model_name=name, specific_model_path=str(self.folder), threads=1)
        except Exception as error:  # the libraries raise whatever they met
            raise InvalidInput(
                f"the reranker in {self.folder} cannot be loaded ({type(error).__name__}): is it an ONNX"
                " cross-encoder with tokenizer.json, tokenizer_config.json and config.json?"
            ) from error

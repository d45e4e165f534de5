"""A model folder on disk (ONNX and tokenizer files), run by fastembed without a network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np

from mnemolog.domain.errors import InvalidInput
from mnemolog.projections.embedding import Floats, unit

Pooling = Literal["cls", "mean"]


class FolderEmbedder:
    """Needs the extra `fastembed`.

    folder: holds `model_file` and the tokenizer's files. The space is named after the bytes of the model, so that
    another model in the same folder is another space.
    """

    def __init__(
        self, folder: Path, dimensions: int, *, model_file: str = "model.onnx", pooling: Pooling = "mean"
    ) -> None:
        self.folder, self.dimensions = Path(folder), dimensions
        self._file, self._pooling = model_file, pooling
        self._space: str | None = None
        self._model: Any = None
        self._lock = Lock()

    @property
    def space(self) -> str:
        """Read from the model's bytes at the first look. Raises InvalidInput where there is no model."""
        with self._lock:
            if self._space is None:
                self._space = f"folder:{self._fingerprint()}:{self._pooling}/{self.dimensions}/l2"
            return self._space

    def embed(self, texts: Sequence[str]) -> Floats:
        """One row of length 1 per text."""
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        return unit(np.stack(list(self._loaded().embed(list(texts)))), self.dimensions)

    def _fingerprint(self) -> str:
        digest = sha256()
        for block in self._blocks():
            digest.update(block)
        return digest.hexdigest()[:16]

    def _blocks(self) -> Iterator[bytes]:
        try:
            with (self.folder / self._file).open("rb") as file:
                while block := file.read(1 << 20):
                    yield block
        except OSError:
            raise InvalidInput(f"no model file {self._file} in {self.folder}: put the model there") from None

    def _loaded(self) -> Any:
        name = self.space
        with self._lock:
            if self._model is None:
                self._model = self._load(name)
            return self._model

    def _load(self, name: str) -> Any:
        try:
            from fastembed import TextEmbedding
            from fastembed.common.model_description import ModelSource, PoolingType
        except ImportError:
            raise InvalidInput("a model folder needs fastembed: pip install 'mnemolog[fastembed]'") from None
        if name not in {model["model"] for model in TextEmbedding.list_supported_models()}:
            TextEmbedding.add_custom_model(
                model=name,
                pooling=PoolingType(self._pooling.upper()),
                normalization=True,
                sources=ModelSource(hf=name),
                dim=self.dimensions,
                model_file=self._file,
            )
        return TextEmbedding(model_name=name, specific_model_path=str(self.folder), threads=1)

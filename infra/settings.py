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
    qdrant_url: a Qdrant server for the vector index of several machines, whose log is in PostgreSQL; without one a
        large scope is searched by a scan of its vectors. qdrant_key: its API key; never printed.
    workers: other processes fold the views and embed; this one appends and reads. Needs a database_url.
    batch_size: events that a projection folds in one transaction.
    blob_threshold: bytes of a text above which it goes to the blob store and the event keeps a preview.
    embedder: "usem3" (built in, offline), "none" (recall by words alone), a folder with an ONNX model, or the base
        url of an OpenAI-compatible API, which also needs embedder_model. Folder and url need embedder_dimensions.
    embedder_key: the key of that API; never printed.
    reranker: a folder with an ONNX cross-encoder that looks at the first hits again; None for none.
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
    qdrant_url: str | None = None
    qdrant_key: SecretStr | None = None
    workers: bool = False
    batch_size: int = Field(default=1000, ge=1, le=100_000)
    blob_threshold: int = Field(default=65_536, ge=1024)
    embedder: str = "usem3"
    embedder_model: str | None = None
    embedder_dimensions: int | None = Field(default=None, ge=1, le=65_536)
    embedder_key: SecretStr | None = None
    reranker: Path | None = None
    exact_up_to: int = Field(default=20_000, ge=0)

    @model_validator(mode="after")
    def _one_root_key(self) -> Self:
        if self.root_key is not None and self.root_key_file is not None:
            raise ValueError(f"set {PREFIX}ROOT_KEY or {PREFIX}ROOT_KEY_FILE, not both")
        return self

    @model_validator(mode="after")
    def _a_database_for_many(self) -> Self:
        for name, given in (("QDRANT_URL", self.qdrant_url), ("WORKERS", self.workers)):
            if given and self.database_url is None:
                raise ValueError(f"{PREFIX}{name} is for a log in PostgreSQL: set {PREFIX}DATABASE_URL too")
        return self

    @property
    def database(self) -> tuple[str, str] | None:
        """Url and schema of the database that has log and views; None where they are files of the data directory."""
        url = self.database_url
        return None if url is None else (url.get_secret_value(), self.database_schema)

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

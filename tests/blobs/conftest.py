"""An S3-compatible server, spoken to over HTTP, for the tests that need one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import count

import pytest

from support import require_module

_BUCKETS = count(1)


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """The address of a server that runs for the tests."""
    for module in ("boto3", "moto", "flask"):
        require_module(module, "pip install 'mnemolog[s3,test]'")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@pytest.fixture
def bucket_url(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty bucket of the test's own, and the credentials for it in the environment."""
    import boto3

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tester")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2-secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    name = f"bucket-{next(_BUCKETS)}"
    client = boto3.client("s3", endpoint_url=s3_endpoint, region_name="us-east-1")
    with suppress(client.exceptions.BucketAlreadyOwnedByYou):
        client.create_bucket(Bucket=name)
    return f"s3://{name}/some/prefix?endpoint={s3_endpoint}&region=us-east-1"

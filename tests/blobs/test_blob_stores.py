"""What every blob store promises: a folder, and a bucket that is spoken to over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mnemolog.errors import CorruptStore, InvalidInput, NotFound, StoreUnavailable
from mnemolog.infra.blobs import BlobStore, FolderStore, SealedBlobs, open_blobs
from mnemolog.infra.blobs.sealed import CHUNK_CHARS

A, B = "a" * 32, "b" * 32


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    if request.param == "folder":
        return FolderStore(tmp_path / "blobs")
    from mnemolog.infra.blobs.s3 import S3Store

    return S3Store(request.getfixturevalue("bucket_url"))


class Open:
    """Seals nothing, so that a test sees what is stored."""

    def next_leaf(self) -> int:
        return 7

    def seal_chunk(self, _: Any, leaf: int, index: int, total: int, data: bytes, aad: bytes) -> bytes:
        return data

    def open_chunk(self, _: Any, leaf: int, index: int, total: int, ciphertext: bytes, aad: bytes) -> bytes:
        return ciphertext


def test_what_is_put_is_read_whole_and_in_ranges(store: BlobStore) -> None:
    """The parts are one blob; a range ends with it; one that lies behind it is empty."""
    store.put(A, [b"one ", b"two"])
    assert store.read(A) == b"one two"
    assert (store.read(A, 4), store.read(A, 2, 3), store.read(A, 5, 99)) == (b"two", b"e t", b"wo")
    assert (store.read(A, 7, 2), store.read(A, 3, 0)) == (b"", b"")
    assert store.exists(A)
    assert [(one.name, one.size) for one in store.stored()] == [(A, 7)]
    assert all(0 <= one.age + 1 < 600 for one in store.stored())


def test_what_is_not_there(store: BlobStore) -> None:
    """A blob that was never put, or was deleted, is absent for every method."""
    store.put(A, [b"one"])
    assert store.delete(A)
    assert not store.delete(A)
    for name in (A, B):
        assert not store.exists(name)
        with pytest.raises(NotFound):
            store.read(name, 0, 1)
    assert list(store.stored()) == []


def test_a_text_in_chunks(store: BlobStore) -> None:
    """Any range of characters of a text comes back, over the borders of chunks; only its chunks are read."""
    text = "가나다 abc" * 30_000
    blobs = SealedBlobs(store, Open())
    reference = blobs.write(A, ["s"], text)
    assert reference == {
        "leaf": 7,
        "subjects": ["s"],
        "chars": len(text),
        "chunks": -(-len(text) // CHUNK_CHARS),
    }
    edge = CHUNK_CHARS
    for start, end in (
        (0, len(text)),
        (edge - 3, edge + 3),
        (edge, 2 * edge),
        (len(text) - 1, len(text) + 9),
    ):
        assert blobs.read(A, reference, start, end) == text[start:end]
    assert blobs.read(B, reference, 0, 1) is None
    assert (list(blobs.names()), blobs.exists(A), blobs.exists(B)) == ([A], True, False)
    with pytest.raises(InvalidInput):
        blobs.read("../" + A, reference, 0, 1)


@pytest.mark.parametrize("damage", [lambda data: data[:6], lambda data: b"\xff" * len(data)])
def test_a_damaged_header_is_corrupt(store: BlobStore, damage: Callable[[bytes], bytes]) -> None:
    """A header that is cut off or overwritten is an error, however large the numbers in it are."""
    blobs = SealedBlobs(store, Open())
    reference = blobs.write(A, ["s"], "text")
    store.put(A, [damage(store.read(A))])
    with pytest.raises(CorruptStore):
        blobs.read(A, reference, 0, 4)


def test_a_sealed_text_is_carried_to_another_store(store: BlobStore, tmp_path: Path) -> None:
    """What one store has can be kept by another as it is."""
    blobs, other = SealedBlobs(store, Open()), open_blobs(None, tmp_path / "other", Open())
    reference = blobs.write(A, ["s"], "text")
    other.carry(A, blobs.sealed(A))
    assert other.read(A, reference, 0, 4) == "text"


def test_orphans_are_swept_and_new_ones_spared(store: BlobStore) -> None:
    """What no event has is removed, unless it is so new that its event may be on the way."""
    blobs, shared = SealedBlobs(store, Open()), SealedBlobs(store, Open(), spared_seconds=3600)
    for name in (A, B):
        blobs.write(name, ["s"], name)
    assert shared.sweep({A}) == 0
    assert blobs.sweep({A}) == 1
    assert list(blobs.names()) == [A]


def test_every_version_is_deleted(bucket_url: str, s3_endpoint: str) -> None:
    """In a bucket that keeps versions, nothing of what was deleted can be restored."""
    import boto3

    from mnemolog.infra.blobs.s3 import S3Store

    client = boto3.client("s3", endpoint_url=s3_endpoint, region_name="us-east-1")
    name = bucket_url.split("/")[2]
    client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    store = S3Store(bucket_url)
    for text in (b"first", b"second"):
        store.put(A, [text])
    store.put(A + "b", [b"another"])
    client.delete_object(Bucket=name, Key=f"some/prefix/{A}")
    assert store.delete(A)
    left = client.list_object_versions(Bucket=name)
    assert [one["Key"] for one in left["Versions"]] == [f"some/prefix/{A}b"]
    assert not left.get("DeleteMarkers")


@pytest.mark.parametrize("path", ["no-such-bucket", "bucket-away"])
def test_a_store_that_is_away_is_said_without_secrets(bucket_url: str, s3_endpoint: str, path: str) -> None:
    """A bucket that is not there, or a server: StoreUnavailable, without credentials."""
    from mnemolog.infra.blobs.s3 import S3Store

    endpoint = s3_endpoint if path == "no-such-bucket" else "http://127.0.0.1:9"
    store = S3Store(f"s3://{path}?endpoint={endpoint}&region=us-east-1")
    for use in (
        lambda: store.put(A, [b"x"]),
        lambda: store.read(A),
        lambda: store.delete(A),
        lambda: list(store.stored()),
    ):
        with pytest.raises(StoreUnavailable) as raised:
            use()
        assert "hunter2" not in f"{raised.value!r} {raised.value.__cause__!r}"


@pytest.mark.parametrize(
    "url",
    [
        "s3://",
        "s3://key:hunter2@bucket",
        "s3://bucket?endpoint=ftp://x",
        "s3://bucket?secret=hunter2",
        "s3:bucket",
    ],
)
def test_a_url_of_no_bucket(url: str, tmp_path: Path) -> None:
    """A url that names no bucket, or holds credentials, is refused without being repeated."""
    with pytest.raises(InvalidInput, match="s3://bucket/prefix") as raised:
        open_blobs(url, tmp_path, Open())
    assert "hunter2" not in str(raised.value)

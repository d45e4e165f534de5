"""Where a reader of the log keeps how far it is, in a file and in PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from mnemolog.domain.errors import StoreUnavailable
from mnemolog.infra.places import FILE, DatabasePlaces, opened_places
from mnemolog.infra.settings import Settings
from postgres_world import new_schema


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.postgres)])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """A place for each store."""
    if request.param == "file":
        return Settings.load(data=tmp_path)
    url, schema = request.getfixturevalue("postgres_url"), new_schema()
    import psycopg

    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(f"CREATE SCHEMA {schema}")
    return Settings.load(data=tmp_path, database_url=url, database_schema=schema)


@pytest.fixture
def places(settings: Settings) -> Iterator[DatabasePlaces]:
    with opened_places(settings) as opened:
        yield opened


def test_a_place_is_kept_under_its_name(places: DatabasePlaces, settings: Settings) -> None:
    """It is what it was when the store is opened again; another name has another place."""
    assert places.load("relay") is None
    assert places.save("relay", None, b"1")
    assert places.save("relay", b"1", b"\x00\xff2")
    with opened_places(settings) as again:
        assert again.load("relay") == b"\x00\xff2"
        assert again.load("other") is None


def test_whoever_comes_second_changes_nothing(places: DatabasePlaces, settings: Settings) -> None:
    """A place that is not what the writer saw is left alone, also one that was not there yet."""
    with opened_places(settings) as other:
        assert other.save("relay", None, b"theirs")
        assert not places.save("relay", None, b"ours")
        assert not places.save("relay", b"older", b"ours")
        assert places.save("relay", b"theirs", b"ours")
        assert not other.save("relay", b"theirs", b"again")
    assert places.load("relay") == b"ours"


def test_who_comes_while_another_makes_it_waits_and_goes_on(settings: Settings) -> None:
    """As two machines do that open a new memory together: neither sees the table, and one of them makes it."""
    making = "CREATE TABLE {}places (name varchar PRIMARY KEY, place {} NOT NULL)"
    if settings.database_url is None:
        other: Any = sqlite3.connect(settings.data / FILE, isolation_level=None)
        other.execute("PRAGMA journal_mode=WAL")
        other.execute("BEGIN IMMEDIATE")
        other.execute(making.format("", "blob"))
    else:
        import psycopg

        other = psycopg.connect(settings.database_url.get_secret_value())
        other.execute(making.format(f"{settings.database_schema}.", "bytea"))

    def keep() -> bytes | None:
        with opened_places(settings) as places:
            assert places.save("relay", None, b"1")
            return places.load("relay")

    with closing(other), ThreadPoolExecutor(1) as pool:
        kept = pool.submit(keep)
        sleep(0.5)  # by then it waits for the other one
        assert not kept.done()
        other.commit()
        assert kept.result(20) == b"1"


def test_what_is_removed_is_gone(places: DatabasePlaces) -> None:
    """And may be removed again; what is beside it stays."""
    assert places.save("erasure/1", None, b"1") and places.save("relay", None, b"2")
    places.remove("erasure/1")
    places.remove("erasure/1")
    assert places.all() == {"relay": b"2"}


def test_a_store_that_is_away_is_unavailable(tmp_path: Path) -> None:
    """A folder that is not there is no crash, but the error that is tried again."""
    with pytest.raises(StoreUnavailable):
        DatabasePlaces(tmp_path / "nowhere" / "places.db")

"""Arrays as the server takes them, packed in a third of the time that the driver's lists need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final

import psycopg
from psycopg.types.string import BytesBinaryDumper

from mnemolog.infra.postgres.connecting import escaped

_HEAD: Final = Struct(">iiIii").pack
"""Dimensions, whether there is a NULL, type of the elements, how many they are, number of the first."""
_NULL: Final = b"\xff\xff\xff\xff"


class _Packed(bytes):
    """An array in the binary format of its subclass's type."""

    element: int


def _kind(name: str) -> type[_Packed]:
    info = psycopg.postgres.types[name]
    kind = type(f"_Packed_{name}", (_Packed,), {"element": info.oid})
    dumper = type(f"_Dumper_{name}", (BytesBinaryDumper,), {"oid": info.array_oid})
    psycopg.adapters.register_dumper(kind, dumper)
    return kind


_TEXT, _INT8, _BYTEA = _kind("text"), _kind("int8"), _kind("bytea")


def texts(values: Sequence[str | None]) -> bytes:
    """A text[]; what PostgreSQL does not store travels as `connecting` has it."""
    return _packed(_TEXT, [value if value is None else value.encode() for value in escaped(values)])


def integers(values: Sequence[int]) -> bytes:
    """A bigint[]."""
    return _packed(_INT8, [value.to_bytes(8, "big", signed=True) for value in values])


def chunks(values: Sequence[bytes]) -> bytes:
    """A bytea[]."""
    return _packed(_BYTEA, values)


def _packed(kind: type[_Packed], values: Sequence[bytes | None]) -> bytes:
    return kind(b"".join(_pieces(kind.element, values)))


def _pieces(element: int, values: Sequence[bytes | None]) -> Iterable[bytes]:
    yield _HEAD(1, 1, element, len(values), 1)
    for value in values:
        if value is None:
            yield _NULL
        else:
            yield len(value).to_bytes(4, "big")
            yield value

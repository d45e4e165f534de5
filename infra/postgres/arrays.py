"""Array parameters that are packed here as the server reads them, in a fifth of the time that the driver takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format

from mnemolog.infra.postgres.connecting import escaped_texts

_HEADER: Final = Struct(">iiIii")
"""Dimensions, whether there are NULLs, type of the elements, how many, number of the first."""
_LENGTH: Final = Struct(">i")
_NUMBER: Final = Struct(">iq")
_NULL: Final = _LENGTH.pack(-1)
_BYTES_TYPE, _NUMBER_TYPE, _TEXT_TYPE = 17, 20, 25


class Packed:
    """An array; the statement casts it to its type."""

    __slots__ = ("data",)

    def __init__(self, type_: int, count: int, elements: Iterable[bytes]) -> None:
        self.data = b"".join((_HEADER.pack(1, 1, type_, count, 1), *elements))


class _PackedDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Packed) -> Buffer | None:
        return obj.data


psycopg.adapters.register_dumper(Packed, _PackedDumper)


def texts(values: Sequence[str | None]) -> Packed:
    """text[]"""
    stored = escaped_texts(values)
    return blobs([None if value is None else value.encode() for value in stored], _TEXT_TYPE)


def blobs(values: Sequence[bytes | None], type_: int = _BYTES_TYPE) -> Packed:
    """bytea[]"""
    length, elements = _LENGTH.pack, list[bytes]()
    for value in values:
        if value is None:
            elements.append(_NULL)
        else:
            elements += (length(len(value)), value)
    return Packed(type_, len(values), elements)


def numbers(values: Sequence[int]) -> Packed:
    """bigint[]"""
    return Packed(_NUMBER_TYPE, len(values), [_NUMBER.pack(8, value) for value in values])

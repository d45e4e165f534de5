"""Files as lines or as elements of one JSON array, compressed or not, without holding them in memory."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, cast

from mnemolog.domain.errors import InvalidInput

HEAD_BYTES: Final = 64 * 1024
CHUNK: Final = 256 * 1024
MAX_LINE_BYTES: Final = 256 * 1024 * 1024
_SEPARATORS: Final = re.compile(r"[\s,]*")


@dataclass(frozen=True, slots=True)
class Line:
    """number from 1; whole: a line feed ended it.

    text: None when the line is too long or not UTF-8, and `problem` says which.
    """

    number: int
    text: str | None
    whole: bool
    problem: str = ""


class Source:
    """A file to import."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = path.stat().st_size
        self._raw: IO[bytes] | None = None

    @property
    def done(self) -> int:
        """How many bytes of the file, as it lies on disk, have been read."""
        return self.size if self._raw is None or self._raw.closed else min(self._raw.tell(), self.size)

    def head(self) -> str:
        """The beginning of the text, whatever is not UTF-8 replaced."""
        found = b""
        with suppress(InvalidInput), self._open() as stream:
            while len(found) < HEAD_BYTES and (piece := stream.read(1024)):
                found += piece
        return found.decode("utf-8-sig", "replace")

    def lines(self) -> Iterator[Line]:
        """All lines from the first one. Raises InvalidInput when the compressed data is damaged."""
        with self._open() as stream:
            number = 0
            while raw := stream.readline(MAX_LINE_BYTES):
                number += 1
                whole = raw.endswith(b"\n")
                if len(raw) == MAX_LINE_BYTES and not whole:
                    problem = f"the line is longer than {MAX_LINE_BYTES} bytes"
                    yield Line(number, None, self._drain(stream), problem)
                else:
                    yield self._line(number, raw, whole)

    def elements(self, opening: re.Pattern[str]) -> Iterator[tuple[int, Any]]:
        """(number from 1, value) of the elements of the array that `opening` ends the beginning of.

        Raises InvalidInput where the document cannot be read on.
        """
        with self._open() as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="strict")
            try:
                yield from enumerate(_elements(text, opening), 1)
            except UnicodeDecodeError:
                raise InvalidInput("the document is not UTF-8 from here on") from None

    @staticmethod
    def _line(number: int, raw: bytes, whole: bool) -> Line:
        try:
            return Line(number, raw.decode("utf-8-sig" if number == 1 else "utf-8").strip(), whole)
        except UnicodeDecodeError:
            return Line(number, None, whole, "the line is not UTF-8")

    @staticmethod
    def _drain(stream: IO[bytes]) -> bool:
        """Read to the end of a line that is too long; whether a line feed ended it."""
        while piece := stream.readline(CHUNK):
            if piece.endswith(b"\n"):
                return True
        return False

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        with self.path.open("rb") as raw:
            self._raw = raw
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            try:
                yield cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if zipped else raw
            except (EOFError, zlib.error, gzip.BadGzipFile):
                raise InvalidInput("the compressed file is damaged or cut off from here on") from None


def _elements(text: IO[str], opening: re.Pattern[str]) -> Iterator[Any]:
    buffer = ""
    while not (found := opening.search(buffer)):
        if not (more := text.read(CHUNK)):
            raise InvalidInput("the document does not hold the array that this format has")
        buffer += more
    buffer = buffer[found.end() :]
    while True:
        value, buffer = _next_element(text, buffer)
        if value is _END:
            return
        yield value


_END: Final = object()
_DECODER: Final = json.JSONDecoder()


def _next_element(text: IO[str], buffer: str) -> tuple[Any, str]:
    """The next element and the text after it. Reads twice as much each time that the element is not whole."""
    while True:
        buffer = buffer[_SEPARATORS.match(buffer).end() :]  # type: ignore[union-attr]
        if buffer.startswith("]"):
            return _END, buffer
        try:
            value, end = _DECODER.raw_decode(buffer)
            if end < len(buffer):
                return value, buffer[end:]
        except RecursionError:
            raise InvalidInput("the document is nested too deeply to be read on") from None
        except ValueError:
            pass
        if not (more := text.read(max(CHUNK, len(buffer)))):
            raise InvalidInput("the document is not JSON, or cut off, from here on")
        buffer += more


def parse(text: str) -> Any:
    """The JSON value of a line; lone surrogates are let in, `NaN` is not. Raises InvalidInput."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise InvalidInput("the line is nested too deeply") from None
    except ValueError:
        raise InvalidInput("the line is not JSON") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def derived_key(form: str, *parts: object) -> str:
    """An idempotency key made from what an item is and says."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(raw))
        digest.update(raw)
    return f"{form}:{digest.hexdigest()[:40]}"

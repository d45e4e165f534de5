"""What an extractor is to those who use it: the rules here, and whatever asks a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mnemolog.domain.gate.candidates import EXTRACTOR, Candidate, Source

Found = tuple[Candidate, ...]
"""The candidates of one source, in the order of their spans."""


class Extractor(Protocol):
    """Finds what texts state. Called by a worker only, never in a fold; what it finds is recorded as an event.

    Both properties stay the same as long as the instance lives.
    """

    @property
    def version(self) -> str:
        """Names all that decides what is found: the rules, or model and prompt. At most 100 characters, no text of users.

        The policy may say that only one version counts.
        """

    @property
    def at_rest(self) -> bool:
        """Whether it reads the sources of a session together when the session ends or rests, not each as it comes."""

    @property
    def most(self) -> int:
        """Sources of one call at most, at least 1. All of a call are of one session, in the order of the log."""

    def extract(self, sources: Sequence[Source]) -> Sequence[Found]:
        """The candidates of each source, in the order of the sources: as many as were given.

        A span is of the text of its own source. Raises StoreUnavailable where it cannot tell just now: the same
        sources come again later. What it can never tell, it gives as empty.
        """


class Rules:
    """The extractor without a model."""

    version = EXTRACTOR
    at_rest = False
    most = 8
    """Few: between two calls, whoever waits for a read goes first."""

    def extract(self, sources: Sequence[Source]) -> Sequence[Found]:
        from mnemolog.domain.gate.extraction import (
            extract,  # its patterns take a while, and opening has no use for them
        )

        return [extract(source) for source in sources]

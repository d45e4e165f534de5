"""The workers of the gate, put together: what looks for statements and for what must be hidden, behind the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from mnemolog.consumers.behind import DerivingLog, KeyedHashes, Places
from mnemolog.consumers.extracting import Directory, Extracting
from mnemolog.consumers.scanning import Masking, Scanning
from mnemolog.domain.gate.findings import Finding, Scanner, scan
from mnemolog.domain.gate.ports import Extractor
from mnemolog.domain.policy import GatePolicy
from mnemolog.domain.principal import Tier
from mnemolog.infra.scanning import library_secrets
from mnemolog.projections.ports import Clock, Ids, LargeTexts
from mnemolog.projections.supervision import Trouble

PLACES_FILE: Final = "workers.json"


def _ours(text: str) -> Iterator[Finding]:
    from mnemolog.domain.gate.credentials import credentials  # with their patterns, a memory opens later
    from mnemolog.domain.gate.identifiers import identifiers

    yield from identifiers(text)
    yield from credentials(text)


QUICK: Final[tuple[Scanner, ...]] = (_ours,)
"""Rules of our own, for what must be quick: what a read shows before the worker has looked at it."""
SCANNERS: Final[tuple[Scanner, ...]] = (*QUICK, library_secrets)


class GateWorkers:
    """One scanner, one masking, and a worker per extractor."""

    def __init__(
        self,
        path: Path,
        log: DerivingLog,
        hashes: KeyedHashes,
        ids: Ids,
        clock: Clock,
        directory: Directory,
        large: LargeTexts,
        extractors: Sequence[Extractor],
    ) -> None:
        self.places = places = Places(path / PLACES_FILE)
        self.scanning = Scanning(log, places, hashes, ids, clock, directory.actor, SCANNERS, large)
        self.masking = Masking(SCANNERS, QUICK, large)
        self.extracting = [
            Extracting(log, places, hashes, ids, clock, directory, SCANNERS, one) for one in extractors
        ]
        self.backgrounds = (self.scanning.background, *(one.background for one in self.extracting))

    def adopt(self, policy: GatePolicy) -> None:
        """Decide by this policy from here on."""
        self.masking.sorts = policy.masked
        for one in self.extracting:
            one.gate = policy

    def forget(self) -> None:
        """Drop what is remembered of texts, as after an erasure."""
        for one in (self.masking, *(each.extractor for each in self.extracting)):
            if hasattr(one, "forget"):
                one.forget()

    @staticmethod
    def examined(text: str, tier: Tier) -> dict[str, Any]:
        """What a statement carries: where something to hide stands, and whether it tells its reader what to do.

        tier: the lowest that it rests on; what a person says themselves may tell anything.
        """
        from mnemolog.domain.gate.instructions import instructions

        signs = instructions(text) if tier < Tier.USER_STATED else ()
        found = [one.stored() for one in scan(text, SCANNERS)]
        return {"findings": tuple(found), "signs": tuple(sorted({sign.rule for sign in signs}))}

    def catch_up(self, progress: Callable[[int, int], None] = lambda at, of: None) -> int:
        """Look, in this thread, at everything that is in the log now; the lowest position then."""
        workers: list[Scanning | Extracting] = [self.scanning, *self.extracting]
        reached = []
        for before, one in enumerate(workers):

            def tell(at: int, of: int, before: int = before) -> None:
                progress(before * of + at, len(workers) * of)

            reached.append(one.catch_up(tell))
        return min(reached)

    def lags(self) -> Iterator[tuple[str, str, int]]:
        """Name, version and position of each."""
        yield "findings", "1", self.scanning.position
        for one in self.extracting:
            yield "extraction", one.extractor.version, one.position

    def refused(self) -> Iterator[tuple[str, Counter[str]]]:
        """How often something yielded no candidate, by extractor and reason."""
        for one in self.extracting:
            counted = one.refused + Counter(getattr(one.extractor, "refused", ()))
            if counted:
                yield one.extractor.version, counted

    def troubles(self) -> Iterator[tuple[str, Trouble]]:
        """What went wrong in the background."""
        yield "the search for secrets", self.scanning.background.trouble
        for one in self.extracting:
            yield f"extraction by {one.extractor.version}", one.background.trouble

"""What a `Memory` is made of. Each part comes, with its module, when it is first needed: few of them at an opening."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from mnemolog._guard import Guard
from mnemolog._notes import Notes
from mnemolog._orphans import remove_orphans
from mnemolog._writing import Writer
from mnemolog.domain.principal import Principal
from mnemolog.infra.adopted import adopted
from mnemolog.infra.compose import Store

if TYPE_CHECKING:
    from mnemolog._accessing import Trail
    from mnemolog._batching import Batcher
    from mnemolog._consent import Consent
    from mnemolog._contexts import Contexts
    from mnemolog._erasing import Eraser
    from mnemolog._reading import Reader
    from mnemolog._reviewing import Review
    from mnemolog._stating import Stater
    from mnemolog._working import Desk
    from mnemolog.operations import Operations


class MemoryParts:
    """The parts of one memory, for one principal."""

    def __init__(self, store: Store, principal: Principal) -> None:
        self._store, self.path, self.principal = store, store.path, principal
        self._guard = Guard(store, principal)
        self._writer = Writer(self._guard)

    def take_over(self) -> None:
        """What a leader does first: go on with erasures that were cut off, or did not begin behind a withdrawal."""
        if Notes(self.path, self._store.settings).pending():
            self._eraser.go_on()
        if self._store.leadership.alone and not self._store.blobs.shared:
            remove_orphans(self._store)
        policy = adopted(self._store.log) if self._store.policy.on_withdrawal == "erase" else None
        if policy is not None:
            self._consent.go_on(policy.position)

    @cached_property
    def _reader(self) -> Reader:
        from mnemolog._reading import Reader

        return Reader(self._guard)

    @cached_property
    def _stater(self) -> Stater:
        from mnemolog._stating import Stater

        return Stater(self._guard, self._writer, self._reader)

    @cached_property
    def _batcher(self) -> Batcher:
        from mnemolog._batching import Batcher

        return Batcher(self._guard, self._writer, self._stater)

    @cached_property
    def _eraser(self) -> Eraser:
        from mnemolog._erasing import Eraser

        return Eraser(self._guard, self._writer, self._reader)

    @cached_property
    def _consent(self) -> Consent:
        from mnemolog._consent import Consent

        return Consent(self._guard, self._writer, self._reader, self._eraser)

    @cached_property
    def _desk(self) -> Desk:
        from mnemolog._working import Desk

        return Desk(self._guard, self._writer)

    @cached_property
    def _contexts(self) -> Contexts:
        from mnemolog._contexts import Contexts

        return Contexts(self._guard, self._reader, self._desk)

    @cached_property
    def _trail(self) -> Trail:
        from mnemolog._accessing import Trail

        return Trail(self._guard)

    @cached_property
    def review(self) -> Review:
        """What waits for a person."""
        from mnemolog._reviewing import Review

        return Review(self._guard, self._reader, self._stater)

    @cached_property
    def operations(self) -> Operations:
        """The operator's and auditor's face."""
        from mnemolog.operations import Operations

        return Operations(self._guard, self._eraser)

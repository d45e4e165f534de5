"""Many things in one commit: what happened, and what is to be remembered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mnemolog._guard import Guard
from mnemolog._happened import built
from mnemolog._stating import Known, Stater
from mnemolog._writing import About, Writer
from mnemolog.domain import ingress
from mnemolog.domain.errors import InvalidInput, MnemologError
from mnemolog.domain.events import Draft, Receipt
from mnemolog.domain.principal import Action
from mnemolog.domain.scope import RECORD_LEVELS, Scope

Said = tuple[Scope, About, Callable[[], Draft]]
"""One item: where, when, and how its draft is made."""


class Batcher:
    """Appends what can be of many items; what each says is checked before anything is written."""

    def __init__(self, guard: Guard, writer: Writer, stater: Stater) -> None:
        self._guard, self._store = guard, guard.store
        self._writer, self._stater = writer, stater

    def append(self, items: Sequence[Mapping[str, Any]]) -> list[Receipt | MnemologError]:
        """Append what can be; an item's error stands in its place. One commit, unless an item is refused by it."""
        self._store.enter()
        items = ingress.several(items, "items", "mappings with type, scope and what that type takes")
        known: Known = {}
        said = [self._said(item, known) for item in items]
        self._introduce(said)
        results: list[Receipt | MnemologError | Draft] = [self._drafted(one) for one in said]
        drafts = [result for result in results if isinstance(result, Draft)]
        try:
            receipts: list[Receipt | MnemologError] = list(self._writer.append(drafts)) if drafts else []
        except MnemologError:
            receipts = [
                self._alone(item)
                for item, result in zip(items, results, strict=True)
                if isinstance(result, Draft)
            ]
        settled = iter(receipts)
        return [next(settled) if isinstance(result, Draft) else result for result in results]

    def _said(self, item: Mapping[str, Any], known: Known) -> Said | MnemologError:
        """What an item says, checked."""
        try:
            if not isinstance(item, Mapping):
                raise InvalidInput(f"each item must be a mapping, not {type(item).__name__}")
            given = dict(item)
            kind, scope = given.pop("type", None), given.pop("scope", None)
            if not isinstance(scope, Scope):
                raise InvalidInput("each item needs type= and a mnemolog.Scope as scope=")
            stating = kind == "remember"
            self._guard.check(Action.STATE if stating else Action.RECORD, scope)
            about = About(given.pop("occurred_at", None), given.pop("key", None), given.pop("subjects", ()))
            if stating:
                about = replace(about, expected_version=given.pop("expected_version", None))
                return scope, about, lambda: self._stater.drafted(scope, given, about, known)
            event = built(kind, given)
            return scope, about, lambda: self._writer.draft(scope, event, self._writer.origin(event), about)
        except MnemologError as error:
            return error
        except (TypeError, ValueError, AttributeError) as error:
            return InvalidInput(f"the item does not have the form of a batch item: {error}")

    def _introduce(self, items: Iterable[Said | MnemologError]) -> None:
        """Make the names that a batch brings in one commit, where each would have one of its own."""
        vault = self._store.vault
        new = [one for one in items if isinstance(one, tuple) and not vault.knows(one[0])]
        if len(new) > 1:
            welcome = {scope for scope, about, _ in new if self._is_welcome(scope, about)}
            vault.introduce(welcome | {scope.at(RECORD_LEVELS) for scope in welcome})

    def _is_welcome(self, scope: Scope, about: About) -> bool:
        try:
            at = self._writer.moment(scope, about.occurred_at, "occurred_at")
        except InvalidInput:
            return False
        return not self._store.vault.is_fenced(scope, ingress.microseconds(at))

    @staticmethod
    def _drafted(one: Said | MnemologError) -> Draft | MnemologError:
        if isinstance(one, MnemologError):
            return one
        try:
            return one[2]()
        except MnemologError as error:
            return error
        except (TypeError, ValueError, AttributeError) as error:
            return InvalidInput(f"the item has a value that cannot be stored: {error}")

    def _alone(self, item: Mapping[str, Any]) -> Receipt | MnemologError:
        made = self._drafted(self._said(item, {}))
        if isinstance(made, MnemologError):
            return made
        try:
            return self._writer.append([made])[0]
        except MnemologError as error:
            return error

"""Every error that Mnemolog raises on purpose, all derived from `MnemologError`."""

from mnemolog.domain.errors import (
    AccessDenied,
    CorruptStore,
    ErasedScope,
    IdempotencyConflict,
    InvalidInput,
    KeysMissing,
    MnemologError,
    NotFound,
    ProjectionParked,
    ProjectionStalled,
    StoreClosed,
    StoreInUse,
    StoreUnavailable,
    UnknownEventType,
    VersionConflict,
)

__all__ = [
    "AccessDenied",
    "CorruptStore",
    "ErasedScope",
    "IdempotencyConflict",
    "InvalidInput",
    "KeysMissing",
    "MnemologError",
    "NotFound",
    "ProjectionParked",
    "ProjectionStalled",
    "StoreClosed",
    "StoreInUse",
    "StoreUnavailable",
    "UnknownEventType",
    "VersionConflict",
]

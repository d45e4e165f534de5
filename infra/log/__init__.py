"""The log: what is stored, how it is sealed, and who commits."""

from mnemolog.infra.log.codec import Codec, Sealer
from mnemolog.infra.log.sqlite import SqliteEventLog

__all__ = ["Codec", "Sealer", "SqliteEventLog"]

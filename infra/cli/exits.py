"""Exit codes, and how an error reaches a person or a program: one line or one JSON object on stderr, no traceback."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, Final, cast

import typer
from typer.core import TyperGroup

from mnemolog.domain import errors


class Exit(IntEnum):
    """What the process ends with; `docs/cli.md` explains each to a reader."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    DENIED = 5
    IN_USE = 6
    NO_KEYS = 7
    ERASED = 8
    INCOMPLETE = 9
    CORRUPT = 10
    INTERRUPTED = 130


CODES: Final[dict[type[errors.MnemologError], Exit]] = {
    errors.InvalidInput: Exit.USAGE,
    errors.NotKept: Exit.USAGE,
    errors.NotFound: Exit.NOT_FOUND,
    errors.Erased: Exit.NOT_FOUND,
    errors.VersionConflict: Exit.CONFLICT,
    errors.IdempotencyConflict: Exit.CONFLICT,
    errors.AnotherLog: Exit.CONFLICT,
    errors.AccessDenied: Exit.DENIED,
    errors.StoreMoved: Exit.IN_USE,
    errors.StoreInUse: Exit.IN_USE,
    errors.StoreClosed: Exit.IN_USE,
    errors.StoreUnavailable: Exit.IN_USE,
    errors.KeysMissing: Exit.NO_KEYS,
    errors.ErasedScope: Exit.ERASED,
    errors.ProjectionParked: Exit.INCOMPLETE,
    errors.ProjectionStalled: Exit.INCOMPLETE,
    errors.RebuildRefused: Exit.INCOMPLETE,
    errors.CorruptStore: Exit.CORRUPT,
    errors.UnknownEventType: Exit.CORRUPT,
}

HINTS: Final[dict[type[errors.MnemologError], str]] = {
    errors.InvalidInput: "see --help of the command",
    errors.NotKept: "say it without that, or change the policy (mnemolog policy show)",
    errors.NotFound: "look with the scope that it belongs to: mnemolog records list, mnemolog log list",
    errors.VersionConflict: "read the record again (mnemolog records show), then retry",
    errors.IdempotencyConflict: "use a new --key for new content",
    errors.AnotherLog: "name what is empty or this log's own",
    errors.Erased: "it does not come back: say it anew",
    errors.StoreMoved: "go on where it is now, or run the move again if it is not finished",
    errors.AccessDenied: "ask an operator, or call with --as ROLE:ID of one who may",
    errors.StoreInUse: "stop the other process, or wait until it has finished",
    errors.StoreClosed: "open it anew",
    errors.StoreUnavailable: "see to what the message names, then retry; a write with the same --key",
    errors.KeysMissing: "restore keys and root key, or set MNEMOLOG_ROOT_KEY or MNEMOLOG_ROOT_KEY_FILE",
    errors.ErasedScope: "what was erased does not come back; a new event needs a new session",
    errors.ProjectionParked: "see mnemolog projections parked",
    errors.ProjectionStalled: "see mnemolog projections lag",
    errors.RebuildRefused: "mend the cause, or add --force and see mnemolog projections parked",
    errors.CorruptStore: "keep a copy of the directory, then restore it from a backup",
    errors.UnknownEventType: "read it with the version of mnemolog that wrote it",
}

EXTRAS: Final = {
    "psycopg": "postgres",
    "psycopg_pool": "postgres",
    "kafka": "kafka",
    "faust": "kafka",
    "qdrant_client": "qdrant",
    "boto3": "s3",
    "fastembed": "fastembed",
}
"""The extra that brings a module along."""
_SYSTEM_HINT: Final = "free the disk, or mend the path or its rights, then try again"

# Typer ships Click's errors in some versions and imports them in others; their order of bases is the same.
CommandLineError = cast(type[Exception], typer.BadParameter.__mro__[2])


def code_of(error: errors.MnemologError) -> Exit:
    return next((CODES[kind] for kind in type(error).__mro__ if kind in CODES), Exit.UNEXPECTED)


def hint_of(error: BaseException) -> str | None:
    if isinstance(error, OSError):
        return _SYSTEM_HINT
    return next((HINTS[kind] for kind in type(error).__mro__ if kind in HINTS), None)


def report(error: BaseException, message: str, *, as_json: bool) -> None:
    """One line for people, one object for programs; stored text in a message cannot steer the terminal."""
    from mnemolog.infra.cli.output import dump, one_line

    if as_json:
        line = dump({"error": message, "type": type(error).__name__, "hint": hint_of(error)})
    else:
        line = f"error: {one_line(_advised(error, message))}"
    typer.echo(line, err=True)


def _advised(error: BaseException, message: str) -> str:
    """The message; of errors whose messages do not all say what to do, with what to do."""
    says = isinstance(error, errors.NotFound) and ": " in message
    advised = isinstance(error, errors.NotFound | errors.CorruptStore | OSError)
    hint = hint_of(error) if advised else None
    return message if says or hint is None else f"{message}; {hint}"


def guarded(run: Callable[[], Any], *, as_json: bool) -> int:
    """Run, and turn what it raises into a message and an exit code. MNEMOLOG_DEBUG=1 lets the unexpected fly."""
    try:
        code = run()
        sys.stdout.flush()
    except errors.MnemologError as error:
        report(error, str(error), as_json=as_json)
        return code_of(error)
    except CommandLineError as error:
        report(error, _usage(error), as_json=as_json)
        return Exit.USAGE
    except (KeyboardInterrupt, typer.Abort):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as error:
        _let_go_of_stdout()
        report(error, _system_error(error), as_json=as_json)
        return Exit.IN_USE
    except Exception as error:
        extra = EXTRAS.get(str(getattr(error, "name", "")).partition(".")[0])
        if isinstance(error, ModuleNotFoundError) and extra is not None:
            report(error, f"this needs {error.name}: pip install 'mnemolog[{extra}]'", as_json=as_json)
            return Exit.USAGE
        if os.environ.get("MNEMOLOG_DEBUG", "") not in ("", "0"):
            raise
        report(error, f"unexpected {type(error).__name__}: {error}", as_json=as_json)
        return Exit.UNEXPECTED
    return code if isinstance(code, int) else Exit.OK


def _system_error(error: OSError) -> str:
    """What the operating system refused, and where: the disk, a right, a path; no fault of the program."""
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


def _let_go_of_stdout() -> None:
    """What could not be written is not tried again when the interpreter ends."""
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(error: Any) -> str:
    """What is wrong with the command line, and where its help is."""
    message = str(error.format_message()).rstrip(". ")
    context = getattr(error, "ctx", None)
    return f"{message}: see `{context.command_path} --help`" if context else message


class Root(TyperGroup):
    """The outermost group: every error of every command passes here."""

    def main(self, args: Sequence[str] | None = None, **options: Any) -> Any:  # type: ignore[override]
        arguments = sys.argv[1:] if args is None else list(args)
        options["standalone_mode"] = False
        run = super().main
        sys.exit(guarded(lambda: run(args=arguments, **options), as_json=asks_json(arguments)))


def asks_json(arguments: Sequence[str]) -> bool:
    """Whether the options (not the texts after `--`) ask for JSON."""
    before = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in before

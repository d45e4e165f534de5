"""How a command is declared: its own parameters, and the common ones that every command has.

`@command(app)` takes a function whose first parameter is the `Call`; Typer sees the rest and the common options.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

import typer

from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.principal import LOCAL_OPERATOR, Principal, Role
from mnemolog.domain.scope import ANY, LEVELS, Scope
from mnemolog.infra.cli.output import Output

if TYPE_CHECKING:
    from mnemolog.memory import Memory

WHERE: Final = "Where"
WHOSE: Final = "Whose memory"


def _level(name: str, help: str) -> Any:
    variable = f"MNEMOLOG_{name.upper()}"
    option = typer.Option(
        f"--{name}", metavar="ID", envvar=variable, show_envvar=False, help=help, rich_help_panel=WHOSE
    )
    return Annotated[str | None, option]


def directory(text: str | Path) -> Path:
    """A path that somebody named. An empty one is a forgotten variable, not the current directory."""
    if isinstance(text, str) and not text.strip():
        raise typer.BadParameter("the path is empty")
    return Path(text)


Data = Annotated[
    Path,
    typer.Option(
        "--data",
        metavar="PATH",
        parser=directory,
        envvar="MNEMOLOG_DATA",
        help="The data directory.",
        rich_help_panel=WHERE,
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="JSON on stdout, errors as JSON on stderr.", rich_help_panel=WHERE)
]
ActingAs = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="ROLE:ID",
        help=f"Act as {', '.join(Role)} within this scope; the local operator if left out.",
        rich_help_panel=WHOSE,
    ),
]

PLACE: Final = {"data": (Data, Path("data")), "as_json": (AsJson, False)}
SCOPE: Final = {
    "tenant": (_level("tenant", "The customer or company. Each level is also an environment variable: "
                      "MNEMOLOG_TENANT, MNEMOLOG_USER, ..."), None),
    "organization": (_level("organization", "A part of the tenant."), None),
    "user": (_level("user", "The person."), None),
    "project": (_level("project", "The project."), None),
    "agent": (_level("agent", "The agent."), None),
    "session": (_level("session", "The conversation."), None),
    "acting_as": (ActingAs, None),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """One invocation: where the data is, whose memory is meant, who calls, and where the answer goes."""

    context: typer.Context
    data: Path
    levels: dict[str, str | None]
    acting_as: str | None
    out: Output

    def at(self, path: Path | None) -> Call:
        """This call on another data directory."""
        return self if path is None else replace(self, data=path)

    @property
    def scope(self) -> Scope:
        """The scope of the options. Raises InvalidInput without a tenant."""
        if not self.levels.get("tenant"):
            raise InvalidInput("no tenant: name it with --tenant or MNEMOLOG_TENANT")
        return Scope.of(self.levels)

    @property
    def only(self) -> Scope | None:
        """What a reading of the whole log is narrowed to: the levels that are given, or nothing."""
        return self.scope if any(self.levels.values()) else None

    def reading(self, any_of: Sequence[str]) -> Scope:
        """The scope of a read in which the levels of `--any` are open."""
        wanted = list(LEVELS[1:] if "all" in any_of else any_of)
        if unknown := set(wanted) - set(LEVELS[1:]):
            raise InvalidInput(
                f"--any takes {', '.join(LEVELS[1:])} or all, not {', '.join(sorted(unknown))}"
            )
        opened = {level: ANY for level in wanted if not ("all" in any_of and self.levels.get(level))}
        return Scope.of({**_levels(self.scope), **opened})

    @property
    def principal(self) -> Principal:
        if self.acting_as is None:
            return LOCAL_OPERATOR
        role, _, name = self.acting_as.partition(":")
        if role not in set(Role) or not name:
            raise InvalidInput(f"--as takes ROLE:ID, such as agent:sol; the roles are {', '.join(Role)}")
        return Principal(name, Role(role), scopes=(self.scope,))

    @contextmanager
    def memory(self, *, create: bool = False) -> Iterator[Memory]:
        """The store, open for this call. Raises NotFound where there is none."""
        principal = self.principal
        from mnemolog.infra.settings import Settings
        from mnemolog.memory import Memory

        settings = Settings.load(data=self.data)
        with Memory.open(
            self.data, principal=principal, settings=settings, create=create, background=False
        ) as memory:
            yield memory

    def given(self, parameter: str) -> bool:
        """Whether an option stands on the command line (not in the environment)."""
        source = self.context.get_parameter_source(parameter)
        return source is not None and source.name == "COMMANDLINE"


def _levels(scope: Scope) -> dict[str, str | None]:
    return dict(scope.present())


def command(
    app: typer.Typer, name: str | None = None, *, scoped: bool = True, panel: str | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a command. An int that it returns is the exit code."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        app.command(
            name or function.__name__.replace("_", "-"),
            help=_unwrapped(function.__doc__),
            rich_help_panel=panel,
        )(_bound(function, scoped))
        return function

    return register


def _unwrapped(text: str | None) -> str:
    """Paragraphs without the line breaks of the source, so that the terminal's width breaks them."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text or "").split("\n\n"))


def _bound(function: Callable[..., Any], scoped: bool) -> Callable[..., Any]:
    hints = get_type_hints(function, include_extras=True)
    own = list(inspect.signature(function).parameters.values())[1:]
    common = {**PLACE, **(SCOPE if scoped else {})}

    @functools.wraps(function)
    def run(**values: Any) -> Any:
        return function(_call(values), **values)

    parameters = [
        inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
        *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[one.name]) for one in own),
        *(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=hint, default=default)
            for name, (hint, default) in common.items()
        ),
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _call(values: dict[str, Any]) -> Call:
    """Takes the common options out of `values`."""
    return Call(
        context=values.pop("context"),
        data=values.pop("data"),
        levels={level: values.pop(level, None) for level in LEVELS},
        acting_as=values.pop("acting_as", None),
        out=Output(values.pop("as_json")),
    )


def group(name: str, help: str, parent: typer.Typer, *, panel: str | None = None) -> typer.Typer:
    """A group of commands that, called alone, shows what it has."""
    app = typer.Typer(name=name, help=help, invoke_without_command=True, callback=show_help)
    parent.add_typer(app, rich_help_panel=panel)
    return app


def show_help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def period(since: str | None, until: str | None) -> tuple[datetime | None, datetime | None]:
    """[since, until) from the command line. Raises InvalidInput when it ends before it begins."""
    begin, end = moment(since), moment(until)
    if begin and end and end < begin:
        raise InvalidInput("--until lies before --since: swap them, or leave one out")
    return begin, end


def moment(text: str | None) -> datetime | None:
    """A time from the command line: ISO 8601, a date alone too; without an offset it is this machine's time."""
    if text is None:
        return None
    try:
        value = datetime.fromisoformat(text.strip())
        return value if value.utcoffset() is not None else value.astimezone()
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"not an ISO 8601 time: {text!r}; write 2026-03-02 or 2026-03-02T09:14+09:00"
        ) from None


def content(text: str) -> str:
    """A text argument; "-" reads it from stdin."""
    if text != "-":
        return text
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape").rstrip("\n")

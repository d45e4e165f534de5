"""Numbers beside their goals, and controls that must not reach them."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field


def percent(part: float, whole: float) -> float | None:
    """None where there is nothing to count."""
    return 100 * part / whole if whole else None


def shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.1f}"


@dataclass(slots=True)
class Goals:
    """Prints what was reached. missed: how many goals were not; fooled: how many controls reached theirs."""

    missed: int = 0
    fooled: int = 0
    heads: list[str] = field(default_factory=list)

    def part(self, title: str) -> None:
        print(f"\n{title}")
        sys.stdout.flush()

    def line(
        self,
        name: str,
        value: float | None,
        *,
        least: float | None = None,
        most: float | None = None,
        of: int | None = None,
        control: tuple[str, float | None] | None = None,
    ) -> None:
        """One number, its goal where there is one, and what a control reaches that must not reach it."""
        goal = (
            ""
            if least is None and most is None
            else f"  (at least {least:g})"
            if most is None
            else f"  (at most {most:g})"
        )
        told = f"{'':7}" if not goal else f"{'ok' if _reached(value, least, most) else 'MISSED':7}"
        self.missed += bool(goal) and not _reached(value, least, most)
        print(f"  {told}{name:62} {shown(value):>6}{'' if of is None else f' of {of}'}{goal}")
        if control is not None:
            fooled = bool(goal) and _reached(control[1], least, most)
            self.fooled += fooled
            fate = "" if not goal else " REACHES IT TOO" if fooled else " fails, as it must"
            print(f"  {'':7}  control: {control[0]}: {shown(control[1])}{fate}")
        sys.stdout.flush()

    def end(self) -> int:
        """The exit code."""
        print(f"\n{self.missed} goals missed, {self.fooled} controls that do not fail")
        return int(bool(self.missed or self.fooled))


def _reached(value: float | None, least: float | None, most: float | None) -> bool:
    if value is None:
        return False
    return (least is None or value >= least) and (most is None or value <= most)

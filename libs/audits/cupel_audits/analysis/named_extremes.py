"""Clauses on the highest and the lowest of named values, which may be tied."""

from collections.abc import Sequence


def name_ends(
    values: Sequence[tuple[float, str]], form: str, *, every: str = "every measure", by: str = "by"
) -> str | None:
    """Return a clause on the names with the highest and the lowest value.

    The result is None without values.

    Values are tied if they are the same as shown. Tied names are counted together. every: subject if all are
    tied. by: preposition before a name.
    """
    if not values:
        return None
    by_text: dict[str, list[str]] = {}
    for value, name in sorted(values, reverse=True):
        by_text.setdefault(form.format(value), []).append(name)
    (high, most), (low, fewest) = next(iter(by_text.items())), next(reversed(by_text.items()))
    if high == low:
        return f"{high} {by} {every if len(values) > 1 else values[0][1]}"
    return f"highest {by} {name_tied(most)} ({high}), lowest {by} {name_tied(fewest)} ({low})"


def name_tied(names: Sequence[str]) -> str:
    """Return the first name, and the number of the others with the same value."""
    others = len(names) - 1
    return names[0] if not others else f"{names[0]} and {others} other{'s' if others > 1 else ''}"


def describe_mover(run: str, moves: Sequence[float], *, no: str = "no") -> str:
    """Return a clause on the run that moves most, or on one of several runs that do.

    moves: how far each run moves. no: "no", or "No" if the clause starts a sentence.
    """
    is_tied = [*moves].count(max(moves)) > 1
    return f"{no} run moves more than {run}" if is_tied else f"{run} moves most"


def others_with(tau: float, taus: Sequence[float]) -> str:
    """Return a clause on the other pairs with the same tau, "" if there are none."""
    others = [*taus].count(tau) - 1
    return f" and {others} other pair{'s' * (others > 1)} with this tau" if others else ""

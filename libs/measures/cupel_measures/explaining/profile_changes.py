"""What each other profile would change on a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cupel_measures.explaining.explained_run import ExplainedRun
from cupel_measures.grammar.measure import Measure
from cupel_measures.model import Floats
from cupel_measures.model.profiles import PROFILES, Profile
from cupel_measures.reading.joins import join
from cupel_measures.scoring.evaluator import aggregate, evaluate

RULES = ("single_precision", "truncated_recall", "negatives_judged")
"""The rules of a profile, each of which may change values by itself."""


@dataclass(frozen=True)
class Change:
    """What a measure would be under another profile.

    value: over all topics. difference: that less the value that is explained. topics: the topics where
    the value changes, with their values under the profile. because: the rules (RULES) each of which alone
    changes something.
    """

    profile: str
    value: float
    difference: float
    topics: Mapping[str, float]
    because: tuple[str, ...]

    def as_data(self) -> dict[str, Any]:
        return {
            "profile": self.profile,
            "value": self.value,
            "difference": self.difference,
            "changed": len(self.topics),
            "topics": dict(self.topics),
            "because": list(self.because),
        }


@dataclass(frozen=True)
class Profiles:
    """Every other profile, in the order of PROFILES."""

    others: tuple[Change, ...]

    def as_data(self) -> dict[str, Any]:
        return {"others": [one.as_data() for one in self.others]}


def of_measures(subject: ExplainedRun, measures: Sequence[Measure]) -> list[Profiles]:
    own = subject.profile
    others = [profile for profile in PROFILES.values() if profile.name != own.name]
    changes = [_under(subject, measures, profile) for profile in others]
    return [Profiles(of_measure) for of_measure in zip(*changes, strict=True)]


def _under(subject: ExplainedRun, measures: Sequence[Measure], profile: Profile) -> list[Change]:
    values = _values(subject, measures, profile)
    before = [subject.values(measure) for measure in measures]
    changed = [bool((new != old).any()) for new, old in zip(values, before, strict=True)]
    because = _because(subject, measures, changed, profile)
    return [
        _change(subject, profile, measure, new, because[measure])
        for measure, new in zip(measures, values, strict=True)
    ]


def _change(
    subject: ExplainedRun, profile: Profile, measure: Measure, values: Floats, because: tuple[str, ...]
) -> Change:
    before, after = aggregate(measure, subject.values(measure)), aggregate(measure, values)
    where = np.flatnonzero(values != subject.values(measure)).tolist()
    topics = {subject.qrels.topics[place]: float(values[place]) for place in where}
    return Change(profile.name, after, after - before, topics, because)


def _values(subject: ExplainedRun, measures: Sequence[Measure], profile: Profile) -> list[Floats]:
    joined = join(subject.ranking, subject.qrels, profile=profile, depth=subject.depth)
    found = evaluate(subject.qrels, joined, measures).values
    return [found[measure] for measure in measures]


def _because(
    subject: ExplainedRun, measures: Sequence[Measure], changed: Sequence[bool], profile: Profile
) -> dict[Measure, tuple[str, ...]]:
    """Rules of `profile` that change a measure if the profile that is explained takes them over."""
    found: dict[Measure, tuple[str, ...]] = dict.fromkeys(measures, ())
    affected = [measure for measure, one in zip(measures, changed, strict=True) if one]
    for rule in RULES if affected else ():
        wanted = getattr(profile, rule)
        if wanted == getattr(subject.profile, rule):
            continue
        values = _values(subject, affected, replace(subject.profile, **{rule: wanted}))
        for measure, new in zip(affected, values, strict=True):
            if (new != subject.values(measure)).any():
                found[measure] += (rule,)
    return found

"""The changes of a score if another profile is used."""

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
"""The rules of a profile that can change values."""


@dataclass(frozen=True, kw_only=True)
class ProfileChange:
    """The value of a measure under another profile.

    value: aggregate over topics. difference: value minus the explained value. topics: the topics whose values
    change, with their values under the other profile. because: the rules (RULES) of the other profile that,
    adopted one at a time, change a value.
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
class ProfileChanges:
    """The changes under every other profile, in the order of PROFILES."""

    others: tuple[ProfileChange, ...]

    def as_data(self) -> dict[str, Any]:
        return {"others": [change.as_data() for change in self.others]}


def explain_profiles(subject: ExplainedRun, measures: Sequence[Measure]) -> list[ProfileChanges]:
    others = [profile for profile in PROFILES.values() if profile.name != subject.profile.name]
    changes = [_under(subject, measures, profile) for profile in others]
    return [ProfileChanges(by_profile) for by_profile in zip(*changes, strict=True)]


def _under(subject: ExplainedRun, measures: Sequence[Measure], profile: Profile) -> list[ProfileChange]:
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
) -> ProfileChange:
    before, after = aggregate(measure, subject.values(measure)), aggregate(measure, values)
    where = np.flatnonzero(values != subject.values(measure)).tolist()
    topics = {subject.qrels.topics[place]: float(values[place]) for place in where}
    return ProfileChange(
        profile=profile.name, value=after, difference=after - before, topics=topics, because=because
    )


def _values(subject: ExplainedRun, measures: Sequence[Measure], profile: Profile) -> list[Floats]:
    joined = join(subject.ranking, subject.qrels, profile=profile, depth=subject.depth)
    values = evaluate(subject.qrels, joined, measures).values
    return [values[measure] for measure in measures]


def _because(
    subject: ExplainedRun, measures: Sequence[Measure], changed: Sequence[bool], profile: Profile
) -> dict[Measure, tuple[str, ...]]:
    """Return, by measure, the rules of `profile` that change a value.

    The rules are adopted one at a time.
    """
    rules: dict[Measure, tuple[str, ...]] = dict.fromkeys(measures, ())
    affected = [measure for measure, is_changed in zip(measures, changed, strict=True) if is_changed]
    for rule in RULES if affected else ():
        setting = getattr(profile, rule)
        if setting == getattr(subject.profile, rule):
            continue
        values = _values(subject, affected, replace(subject.profile, **{rule: setting}))
        for measure, new in zip(affected, values, strict=True):
            if (new != subject.values(measure)).any():
                rules[measure] += (rule,)
    return rules

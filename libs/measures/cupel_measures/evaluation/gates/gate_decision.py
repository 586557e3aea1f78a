"""The decision of a gate, with its reasons."""

from collections.abc import Iterator

import numpy as np

from cupel_measures.comparing.differences.topic_differences import TopicDifference, largest_differences
from cupel_measures.evaluation.gates.gate_outcomes import GateOutcome, UnjudgedEffect
from cupel_measures.evaluation.gates.gate_rules import MAX_OTHER_TOPICS, GateRule, GateVerdict
from cupel_measures.evaluation.gates.gate_verdicts import (
    POWER,
    ComparedTopics,
    common_verdict,
    margin_outcome,
    topics_needed,
    verdict_of,
)
from cupel_measures.evaluation.gates.gated_scores import GatedScores
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Floats
from cupel_measures.scoring.evaluator import aggregate

LISTED = 3
"""Number of topics that reasons name."""


def decide(scores: GatedScores, measure: Measure, rule: GateRule) -> GateOutcome:
    """Return the outcome of a gate."""
    topics = scores.topics
    if reason := _topics_reason(topics, rule):
        return GateOutcome(
            rule=rule,
            verdict="undecided",
            reasons=(reason,),
            notes=tuple(_topic_notes(scores)),
            topics=topics.number,
        )
    sides = scores.values[measure]
    run, baseline = scores.compared_sides(measure, sides)
    test = margin_outcome(run, baseline, rule)
    effect = _unjudged_effect(scores, measure, rule)
    tested = verdict_of(test)
    verdict = _with_unjudged(tested, effect, rule)
    outcome = GateOutcome(
        rule=rule,
        verdict=verdict,
        reasons=(),
        topics=topics.number,
        run_mean=aggregate(measure, sides[0]),
        baseline_mean=aggregate(measure, sides[1]),
        test=test,
        unjudged=effect,
        largest_drops=_largest_drops(scores, run - baseline),
    )
    reasons = [*_difference_reasons(outcome, tested, run - baseline), *_unjudged_reasons(outcome, tested)]
    notes = [*_topic_notes(scores), *scores.compared[measure].notes, *test.warnings]
    notes += _unjudged_notes(outcome, tested)
    return GateOutcome(**{**vars(outcome), "reasons": tuple(reasons), "notes": tuple(notes)})


def _topics_reason(topics: ComparedTopics, rule: GateRule) -> str | None:
    """Return why the topics allow no verdict, or None."""
    if not topics.number:
        return "the baseline has results for none of the judged topics, so it is on other topics"
    if topics.share_of_others > MAX_OTHER_TOPICS:
        of_run = topics.only_run + topics.both
        return (
            f"the baseline is on other topics: it lacks {topics.only_run} of the {of_run} judged topics of "
            f"the run (at most {MAX_OTHER_TOPICS:.0%} may be missing)"
        )
    if topics.number < rule.min_topics:
        return f"too few topics: {topics.number} are compared, and at least {rule.min_topics} are required"
    return None


def _topic_notes(scores: GatedScores) -> Iterator[str]:
    topics = scores.topics
    if topics.only_run and topics.share_of_others <= MAX_OTHER_TOPICS:
        yield f"{_number(topics.only_run, 'topic')} without results of the baseline are not compared"
    if topics.only_baseline and topics.number:
        lacking = f"{topics.only_baseline} of the {topics.number} compared topics"
        yield f"the run lacks {lacking}; they count as empty rankings"
    if others := len(scores.qrels.topics) - topics.number - topics.only_run:
        yield f"{_number(others, 'judged topic')} without results of either run are not compared"


def _unjudged_effect(scores: GatedScores, measure: Measure, rule: GateRule) -> UnjudgedEffect:
    run, baseline = scores.unjudged(measure)
    names = scores.qrels.topics
    documents = tuple((names[topic], id_.decode()) for topic, id_ in (*run.documents, *baseline.documents))
    against: GateVerdict | None = None
    favourable: GateVerdict | None = None
    problem = None
    if run.documents or baseline.documents:
        try:
            against, favourable = (
                verdict_of(
                    margin_outcome(
                        *scores.compared_sides(measure, scores.values_under(measure, lowest, highest)), rule
                    )
                )
                for lowest, highest in ((run, baseline), (baseline, run))
            )
        except MeasureError as error:  # a declared set of label tuples can lack these labels
            problem = str(error)
    return UnjudgedEffect(
        run=run.share,
        baseline=baseline.share,
        documents=documents,
        against_run=against,
        for_run=favourable,
        problem=problem,
    )


def _exceeds(effect: UnjudgedEffect, rule: GateRule) -> bool:
    return max(effect.run, effect.baseline) > rule.max_unjudged


def _with_unjudged(tested: GateVerdict, effect: UnjudgedEffect, rule: GateRule) -> GateVerdict:
    """Return the verdict if unjudged documents are taken into account."""
    if not _exceeds(effect, rule):
        return tested
    if effect.against_run is None or effect.for_run is None:
        return "undecided"
    return common_verdict([tested, effect.against_run, effect.for_run])


def _largest_drops(scores: GatedScores, differences: Floats) -> tuple[TopicDifference, ...]:
    names = [name for name, kept in zip(scores.qrels.topics, scores.topics.mask, strict=True) if kept]
    if not np.isfinite(differences).all():
        return ()
    return largest_differences(names, np.minimum(differences, 0))


def _difference_reasons(outcome: GateOutcome, tested: GateVerdict, differences: Floats) -> Iterator[str]:
    """Yield sentences about the tested difference."""
    test, rule = outcome.test, outcome.rule
    assert test is not None
    if test.estimate is None:
        yield f"the difference is undefined: {test.undefined}"
        return
    yield f"{format_change(outcome)}{_format_confidence(outcome)}"
    if outcome.verdict == "no worse":
        yield f"a drop of {rule.max_drop:g} or more is ruled out"
    elif outcome.verdict == "worse":
        yield _drop_reason(outcome)
        listed = ", ".join(item.topic for item in outcome.largest_drops[:LISTED])
        yield f"the largest drops are on the topics {listed}"
    elif tested == "undecided":
        yield from _undecided_reasons(outcome, differences)


def _drop_reason(outcome: GateOutcome) -> str:
    """Return which drop the interval establishes."""
    drop = f"{outcome.rule.max_drop:g}"
    if outcome.interval is not None and outcome.interval[1] < -outcome.rule.max_drop:
        return f"a drop of more than {drop} is established"
    return f"a drop is established, and a drop of {drop} or more is not ruled out"


def _undecided_reasons(outcome: GateOutcome, differences: Floats) -> Iterator[str]:
    rule = outcome.rule
    yield f"these {outcome.topics} topics neither establish a drop nor rule out one of {rule.max_drop:g}"
    if (needed := topics_needed(differences, rule)) is not None:
        yield (
            f"about {needed:,} topics as variable as these would rule it out with power {POWER:g} if the "
            "runs were equally good"
        )


def _unjudged_reasons(outcome: GateOutcome, tested: GateVerdict) -> Iterator[str]:
    """Yield sentences if the verdict depends on unjudged documents."""
    effect, rule = outcome.unjudged, outcome.rule
    if effect is None or not _exceeds(effect, rule) or not _depends(effect, tested):
        return
    yield f"{_format_shares(effect)} (at most {rule.max_unjudged:.0%} is accepted)"
    yield format_dependence(effect, tested)


def _unjudged_notes(outcome: GateOutcome, tested: GateVerdict) -> Iterator[str]:
    effect, rule = outcome.unjudged, outcome.rule
    if effect is None or not (effect.run or effect.baseline):
        return
    if not _depends(effect, tested):
        yield f"{_format_shares(effect)}; the worst and the best labels for the run give this verdict too"
    elif not _exceeds(effect, rule):
        yield f"{_format_shares(effect)}; {format_dependence(effect, tested)}"


def _depends(effect: UnjudgedEffect, tested: GateVerdict) -> bool:
    return {effect.against_run, effect.for_run} != {tested}


def _format_shares(effect: UnjudgedEffect) -> str:
    run = f"{effect.run:.1%} of the new top ten is unjudged and not in that of the baseline"
    if effect.baseline > effect.run:
        return f"{effect.baseline:.1%} of the top ten of the baseline is unjudged and not in the new one"
    return run


def format_dependence(effect: UnjudgedEffect, tested: GateVerdict) -> str:
    """Return how the verdict depends on the labels of unjudged documents."""
    if effect.problem is not None:
        return f"the effect of their labels cannot be computed: {effect.problem}"
    return (
        f"with the present judgments, the verdict is {tested!r}; it would be {effect.against_run!r} with "
        f"labels that are worst for the run, and {effect.for_run!r} with labels that are best for it"
    )


def format_change(outcome: GateOutcome) -> str:
    """Return the direction and size of the difference, such as "down 0.0210"."""
    difference = outcome.difference
    if difference is None:
        return "undefined"
    if abs(difference) < 0.00005:
        return "unchanged" if difference == 0 else f"changed by {difference:+.2g}"
    return f"{'up' if difference > 0 else 'down'} {abs(difference):.4f}"


def _format_confidence(outcome: GateOutcome) -> str:
    if outcome.interval is None:
        return ""
    low, high = outcome.interval
    return f" ({100 * outcome.confidence:g}% interval {low:+.4f} to {high:+.4f})"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"

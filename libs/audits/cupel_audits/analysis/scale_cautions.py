"""Sentences on tests of measures that have no interval scale."""

from collections.abc import Iterator, Sequence

from cupel_audits.report import name_some


def caution_on_scale(scale: str, rank_test: str) -> str:
    """Return which tests are meaningful if the scale is taken seriously."""
    if scale == "ordinal":
        return (
            "The scale of the measure is ordinal. If the scale is taken seriously, the test of means is not "
            f"meaningful (disputed); {rank_test} uses only the order of the scores."
        )
    return (
        "The scale of the measure is neither interval nor ordinal. If the scale is taken seriously, neither "
        "a test of means nor a test of ranks is meaningful (disputed)."
    )


def advise_on_scales(scales: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield how to report tests of measures without an interval scale.

    scales: the name and the scale type of each measure.
    """
    ordinal = [measure for measure, scale in scales if scale == "ordinal"]
    neither = [measure for measure, scale in scales if scale not in ("ordinal", "interval", "count")]
    if ordinal:
        yield (
            f"Say that a test of means treats the scores of {name_some(ordinal, 'measures')} as "
            "interval-scaled, or report the test of ranks, which may have less power."
        )
    if neither:
        yield (
            f"Say that the test treats the scores of {name_some(neither, 'measures')} as interval-scaled "
            "(means) or ordinal (ranks)."
        )

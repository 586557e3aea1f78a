"""Tests of report tables, plots and digests by small examples."""

import json
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Annotated

import pytest

from cupel_audits.report import AuditReport, Column, Heading, Plot, RunCell, TableSchema, digest, name_some


@dataclass(frozen=True)
class Interval:
    """Columns that a row shares with other tables."""

    low: Annotated[float, Heading("lower bound")]
    high: Annotated[float, Heading("upper bound")]


@dataclass(frozen=True)
class ScoreRow:
    """A row with a column, the columns of another class, and a field of two columns."""

    run: RunCell
    interval: Interval
    taus: Annotated[tuple[float, ...], Heading("tau"), Heading("tau AP", "top-weighted")]


SCHEMA = TableSchema.of("scores", "Scores of the runs", ScoreRow)
ROW = ScoreRow("one", Interval(0.25, 0.5), (1.0, 0.75))
PLOT = Plot.bars(SCHEMA, "bars", title="Lower bounds", caption="Higher is better.", x="run", y="low")


def test_table_has_the_columns_of_nested_fields() -> None:
    table = SCHEMA.table([ROW])
    assert table.columns == (
        Column("run", "run"),
        Column("low", "lower bound"),
        Column("high", "upper bound"),
        Column("taus", "tau"),
        Column("taus", "tau AP", "top-weighted"),
    )
    assert table.rows == (("one", 0.25, 0.5, 1.0, 0.75),)


def test_columns_of_a_field_can_be_replaced_or_omitted() -> None:
    schema = SCHEMA.with_columns("taus", Column("tau", "tau"), Column("tau_ap", "tau AP"))
    assert schema.table([ROW]).column("tau_ap") == [0.75]
    assert SCHEMA.with_columns("taus").table([ROW]).as_csv() == "run,low,high\none,0.25,0.5\n"
    with pytest.raises(KeyError, match="table 'scores' has no field 'rank'"):
        SCHEMA.with_columns("rank")


def test_row_with_another_number_of_cells_is_refused() -> None:
    with pytest.raises(ValueError, match="field 'taus' has 1 cells for 2 columns"):
        SCHEMA.table([replace(ROW, taus=(1.0,))])


def test_plot_of_an_unknown_column_is_refused() -> None:
    assert PLOT.column_names == ("run", "low")
    with pytest.raises(ValueError, match="plot 'bars': table 'scores' has no column 'rank'; its columns are"):
        replace(PLOT, value="rank").checked(SCHEMA)


def test_report_equals_its_json_data() -> None:
    plot = replace(PLOT, x_order=("one", "two"), domain=(0.0, 1.0))
    report = AuditReport(
        verdict=("One is best.",), numbers={"best": 0.5}, tables=(SCHEMA.table([ROW]),), plots=(plot,)
    )
    assert AuditReport.of(json.loads(json.dumps(report.as_data()))) == report


def test_long_lists_of_names_are_counted() -> None:
    assert name_some(["AP"], "measures") == "AP"
    assert name_some(["AP", "P@10"], "measures") == "AP and P@10"
    assert name_some(["AP", "P@10", "RR"], "measures") == "3 measures"
    assert name_some(["AP", "P@10"], "measures", most=1) == "2 measures"


def test_digest_is_of_compact_json_with_sorted_keys() -> None:
    assert digest({"b": [1, 2], "a": None}) == sha256(b'{"a":null,"b":[1,2]}').hexdigest()
    with pytest.raises(ValueError, match="Out of range float values are not JSON compliant"):
        digest({"a": float("nan")})

"""Measures that the service can compute."""

from pydantic import Field

from cupel_contract.resource_base import Resource


class MeasureParameterResource(Resource):
    """A parameter of a measure."""

    name: str = Field(description="name of the parameter in the text of a measure")
    required: bool = Field(description="whether the text of the measure must set the parameter")
    default: str | None = Field(None, description="the default as text; null: no default")

    EXAMPLE = {"name": "cutoff", "required": False, "default": None}


class MeasureResource(Resource):
    """A measure with its parameters and documentation."""

    name: str = Field(description="name of the measure")
    aliases: tuple[str, ...] = Field(description="other names that are accepted")
    parameters: tuple[MeasureParameterResource, ...] = Field(description="parameters of the measure")
    at: str | None = Field(None, description="the parameter that a number after @ sets")
    bounds: tuple[float | None, ...] = Field(description="smallest and largest value; null: unbounded")
    aggregate: str = Field(description="how the values of all topics become one number")
    scale: str = Field(
        description="type of the measurement scale: interval, ordinal, neither or count; `depends` if it "
        "depends on the parameters or on the labels"
    )
    combines: bool = Field(
        description="whether the measure combines several aspects: their scores, labels or ranks"
    )
    subtopics: bool = Field(description="whether the measure uses judgments by subtopic instead of an aspect")
    exact: bool = Field(description="whether the service can also compute exact values of the measure")
    summary: str = Field(description="the measure in one sentence")
    documentation: str = Field(description="full description of the measure")
    source: str = Field(description="the publication that defines the measure")

    EXAMPLE = {
        "name": "nDCG",
        "aliases": ["ndcg"],
        "parameters": [MeasureParameterResource.EXAMPLE],
        "at": "cutoff",
        "bounds": [0.0, 1.0],
        "aggregate": "mean",
        "scale": "neither",
        "combines": False,
        "subtopics": False,
        "exact": False,
        "summary": "Normalised discounted cumulative gain.",
        "documentation": "Normalised discounted cumulative gain.",
        "source": "Järvelin and Kekäläinen, TOIS 2002",
    }


class ParsedMeasureResource(Resource):
    """The canonical text of a measure, and the measure that it names."""

    text: str = Field(description="canonical text of the measure")
    declared: MeasureResource = Field(description="the measure that the text names")

    EXAMPLE = {"text": "nDCG@10", "declared": MeasureResource.EXAMPLE}

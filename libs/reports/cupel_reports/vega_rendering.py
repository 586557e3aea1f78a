"""Rendering with vl-convert.

Specifications become static SVG, and Vega becomes a script for interactive plots.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any
from xml.etree import ElementTree

import altair
import vl_convert

SVG = "http://www.w3.org/2000/svg"
VERSION = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
"""The version of Vega-Lite that Altair writes."""

_ATTRIBUTES = {"d", "transform", "x", "y", "x1", "x2", "y1", "y2", "width", "height"}
_TOO_FINE = re.compile(r"(\.\d\d)\d+")
_NAMED = re.compile(r"url\(#([^)]*)\)")


def svg(spec: Mapping[str, Any], name: str, title: str, description: str) -> str:
    """Return a picture as SVG with a text alternative.

    name: prefix of its ids, unique in a page.
    """
    still = {**spec, "layer": [layer for layer in spec["layer"] if layer.get("name") != "touch"]}
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(vl_convert.vegalite_to_svg(still, vl_version=VERSION))
    _rename(root, name)
    for element in root.iter():
        _simplify(element)
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title {name}-desc")
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        child = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": f"{name}-{tag}"})
        child.text = text
        root.insert(place, child)
    return ElementTree.tostring(root, encoding="unicode")


@cache
def script() -> str:
    """Return the script that makes plots interactive.

    It contains Vega with its licences, and templates/page.js.
    """
    ours = files("cupel_reports") / "templates"
    notice, snippet = (ours / "notice.txt").read_text(), (ours / "page.js").read_text()
    bundle = vl_convert.javascript_bundle(snippet, vl_version=VERSION)
    return f"/*!\n{notice}*/\n{bundle}".replace("</script", "<\\/script")


def _rename(root: ElementTree.Element, name: str) -> None:
    """Rename ids, so that the same picture always has the same ids.

    Vega numbers them by process.
    """
    known = {
        old: f"{name}-{place}"
        for place, old in enumerate(filter(None, (element.get("id") for element in root.iter())))
    }
    for element in root.iter():
        if (old := element.get("id")) is not None:
            element.set("id", known[old])
        for attribute, value in element.items():
            if "url(#" in value:
                element.set(attribute, _NAMED.sub(lambda match: f"url(#{known[match[1]]})", value))


def _simplify(element: ElementTree.Element) -> None:
    """Remove classes and redundant attributes, and truncate to 0.01 pixels.

    The aria attributes and roles are redundant with the text alternative.
    """
    for attribute in [*element.keys()]:
        if attribute == "class" or attribute.startswith("aria-") or attribute == "role":
            del element.attrib[attribute]
        elif attribute in _ATTRIBUTES:
            element.set(attribute, _TOO_FINE.sub(r"\1", element.get(attribute, "")))

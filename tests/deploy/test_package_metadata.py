"""Tests of the metadata of the packages, which pip and package indexes read."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = {
    path.parent.name: tomllib.loads(path.read_text())["project"]
    for top in ("libs", "services")
    for path in sorted((ROOT / top).glob("*/pyproject.toml"))
}

every_package = pytest.mark.parametrize("project", PROJECTS.values(), ids=list(PROJECTS))


def test_all_packages_have_one_version() -> None:
    [version] = {project["version"] for project in PROJECTS.values()}
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()


@every_package
def test_package_requires_exactly_this_version_of_the_others(project: dict[str, Any]) -> None:
    names = {other["name"]: other["version"] for other in PROJECTS.values()}
    ours = [needed for needed in project.get("dependencies", ()) if needed.startswith("cupel-")]
    assert ours == [f"{needed.partition('==')[0]}=={names[needed.partition('==')[0]]}" for needed in ours]


@every_package
def test_package_has_licence_keywords_and_classifiers(project: dict[str, Any]) -> None:
    assert project["license"] == "Apache-2.0"
    assert project["license-files"] == ["LICENSE"]
    assert "information retrieval" in project["keywords"]
    assert "Typing :: Typed" in project["classifiers"]


@pytest.mark.parametrize(
    "folder", [path.parent for path in ROOT.glob("*/*/pyproject.toml")], ids=lambda path: path.name
)
def test_package_contains_the_licence(folder: Path) -> None:
    assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()

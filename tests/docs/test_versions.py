"""One version, said alike by the package, the CHANGELOG and the tags."""

import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEADINGS = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
FORM = re.compile(r"(\d+)\.(\d+)\.(\d+) \((unreleased|\d{4}-\d{2}-\d{2})\)")


def test_the_changelog_has_versions_newest_first_and_at_most_the_newest_is_open():
    found = [FORM.fullmatch(heading) for heading in HEADINGS]
    assert all(found), HEADINGS
    numbers = [tuple(map(int, one.groups()[:3])) for one in found]
    assert numbers == sorted(set(numbers), reverse=True)
    assert "unreleased" not in [one[4] for one in found[1:]]


def test_the_package_has_the_newest_version_of_the_changelog():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert HEADINGS[0].split()[0] == project["version"]


def test_every_tag_is_a_version_of_the_changelog_that_has_its_day():
    said = subprocess.run(["git", "tag", "--list", "v*"], cwd=ROOT, capture_output=True, text=True, check=False)
    days = dict(heading.rstrip(")").split(" (") for heading in HEADINGS)
    for tag in said.stdout.split():
        assert days.get(tag.removeprefix("v"), "unreleased") != "unreleased"


def test_decisions_are_numbered_as_they_are_named():
    for path in (ROOT / "docs" / "decisions").glob("*.md"):
        number = int(path.name[:4])
        assert path.read_text("utf-8").startswith(f"# {number}. "), path.name

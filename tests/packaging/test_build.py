"""Wheel and sdist: they build, hold what a stranger needs and nothing else, and the installed wheel works by itself."""

import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytest.importorskip("hatchling", reason="the build backend is in dpsr[dev]")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    place = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(place)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return place


def test_the_wheel_holds_the_package_with_its_templates_and_no_tests(built):
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "dpsr/py.typed" in names
    assert "dpsr/report/templates/card.css" in names
    assert "dpsr/serve/templates/docs.html.jinja" in names
    assert {f"dpsr/studio/templates/studio.{kind}" for kind in ("css", "js")} <= set(names)
    assert all(name.startswith(("dpsr/", "dpsr-")) for name in names)
    assert not any("tests" in name or name.endswith((".nbi", ".nbc", ".pyc")) for name in names)


def test_the_sdist_builds_without_the_repository(built):
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = opened.getnames()
    top = names[0].split("/")[0]
    for needed in ("pyproject.toml", "README.md", "LICENSE", "src/dpsr/__init__.py", "docs/index.md"):
        assert f"{top}/{needed}" in names
    assert not any(f"{top}/{unwanted}" in names for unwanted in (".venv", "tests", "demo-release"))


def test_the_installed_wheel_runs_from_anywhere(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        tmp_path / "site",
    ]
    subprocess.run([*install, wheel], check=True)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    code = "import dpsr; print(dpsr.__file__, dpsr.__version__)"
    where = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path, check=True
    ).stdout
    assert where.startswith(str(tmp_path / "site"))
    run = subprocess.run(
        [sys.executable, "-m", "dpsr", "demo", "--sample", "s"],
        capture_output=True, text=True, env=environment, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "s" / "ratings.csv").exists()


@pytest.fixture(scope="module")
def hatch_build():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def relative(page):
    """What leads somewhere only where there are folders."""
    return [target for target in re.findall(r"\]\(([^)]+)\)", page) if not target.startswith("https://")]


def test_a_package_page_has_no_link_that_leads_nowhere_and_no_address_is_made_up(built):
    (wheel,) = built.glob("*.whl")
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
    page = archive.read(name).decode()
    assert relative((ROOT / "README.md").read_text("utf-8")), "so there was something to replace"
    assert not relative(page)
    assert "which unit do I need?" in page, "the words stay"
    assert "Project-URL" not in page
    assert "source archive" in page


def test_an_address_said_when_building_makes_links_and_pictures_absolute(hatch_build):
    readme, address = (ROOT / "README.md").read_text("utf-8"), "https://example.org/dpsr"
    page = hatch_build.page_of(readme, address)
    assert not relative(page)
    for target in relative(readme):
        kind = "raw" if target.endswith(".png") else "blob"
        assert f"]({address}/{kind}/HEAD/{target})" in page
    for url in hatch_build.urls_of(address).values():
        assert (ROOT / url.removeprefix(address).removeprefix("/blob/HEAD/")).exists()


def test_the_extras_are_named_in_the_readme_by_what_they_are_for():
    readme = (ROOT / "README.md").read_text("utf-8")
    for extra in ("frames", "postgres", "spark", "torch", "web"):
        assert f"`{extra}`" in readme

"""Python and the libraries: those that must be there are imported, optional ones are looked up."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module, metadata

from dpsr.doctor.check import Check, Status

IMPORTED_AS = {"scikit-learn": "sklearn"}
OPTIONAL = {
    "duckdb": "releases from files larger than memory", "matplotlib": "plots and charts",
    "pandas": "frames", "polars": "frames", "psycopg": "ledger in PostgreSQL", "pyspark": "releases on Spark",
    "torch": "to_torch", "implicit": "a peer, and a target of to_implicit", "scikit-surprise": "to_surprise",
    "scikit-learn": "an attack of the benchmark",
}  # fmt: skip
"""Distributions and what they are for."""

_JAVA = 17
_PATIENCE = 20.0
_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*(?:>=\s*([0-9.]+))?")


def check_versions() -> Iterator[Check]:
    """Python, what dpsr requires, what is optional, Java."""
    yield check_python(sys.version_info[:3])
    yield Check("versions", "dpsr", Status.ok, metadata.version("dpsr"))
    for requirement in metadata.requires("dpsr") or []:
        if "extra ==" not in requirement:
            yield check_required(requirement)
    for name, purpose in OPTIONAL.items():
        yield check_optional(name, purpose)
    yield check_java()


def check_python(version: tuple[int, ...]) -> Check:
    """3.11 or newer."""
    spelt = ".".join(map(str, version))
    detail = f"{spelt}, {platform.python_implementation()}, {platform.system()} {platform.machine()}"
    if version < (3, 11):
        return Check("versions", "python", Status.broken, f"{detail}; 3.11 or newer is needed")
    return Check("versions", "python", Status.ok, detail)


def check_required(requirement: str) -> Check:
    """Installed, new enough, and it can be imported."""
    matched = _REQUIREMENT.match(requirement)
    name, least = (matched.group(1), matched.group(2) or "0") if matched else (requirement, "0")
    try:
        version = metadata.version(name)
        import_module(IMPORTED_AS.get(name, name.replace("-", "_")))
    except metadata.PackageNotFoundError:
        return Check("versions", name, Status.broken, f"not installed; install {requirement}")
    except Exception as error:  # a library that is half there may raise anything while it is imported
        return Check("versions", name, Status.broken, f"cannot be imported ({type(error).__name__}); install it again")
    if _numbers(version) < _numbers(least):
        return Check("versions", name, Status.broken, f"{version} is too old; install {requirement}")
    return Check("versions", name, Status.ok, version)


def check_optional(name: str, purpose: str) -> Check:
    """Looked up only: importing it may take seconds, and nobody asked for it."""
    try:
        return Check("versions", name, Status.ok, metadata.version(name))
    except metadata.PackageNotFoundError:
        return Check("versions", name, Status.absent, f"optional, for {purpose}")


def check_java() -> Check:
    """Spark needs a Java runtime."""
    java = shutil.which("java")
    if java is None:
        return Check("versions", "java", Status.absent, f"optional, for releases on Spark: Java {_JAVA} or newer")
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return Check("versions", "java", Status.warning, "found, but it does not answer; Spark will not start")
    found = re.search(r'version "(\d+)([^"]*)"', run.stderr + run.stdout)
    if found is None or int(found.group(1)) < _JAVA:
        return Check("versions", "java", Status.warning, f"found, but Spark needs Java {_JAVA} or newer")
    return Check("versions", "java", Status.ok, found.group(1) + found.group(2))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0])[:3])

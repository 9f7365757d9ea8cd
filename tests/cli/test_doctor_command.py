"""`dpsr doctor`: fit or not, and every planted fault is found."""

import json
import sys
from fractions import Fraction
from importlib import metadata

import numpy as np
import pytest

from dpsr.doctor import Check, Status, examination, machine, randomness, versions
from dpsr.privacy.channels import Channel, laplace
from dpsr.privacy.noise import NoiseSource, discrete_laplace
from dpsr.types import Scale


def test_this_machine_is_fit_and_the_report_is_complete(dpsr, monkeypatch):
    monkeypatch.setattr(randomness, "REJECT", 1e-9)  # five examinations at one in a million would be five in a million
    outcome = dpsr("doctor", "--json")
    found = json.loads(outcome.out)
    broken = [check for check in found["checks"] if check["status"] == "broken"]
    assert outcome.code == 0, broken
    names = {check["name"] for check in found["checks"]}
    assert {"python", "numpy", "pyspark", "java", "torch", "psycopg", "threads", "BLAS", "system generator",
            "exact prices", "sampler, Laplace", "discrete Laplace", "compiled kernels"} <= names  # fmt: skip


def test_something_broken_is_exit_code_1_and_said(dpsr, monkeypatch):
    monkeypatch.setattr(examination, "check_randomness", lambda: [Check("privacy", "x", Status.broken, "is off")])
    monkeypatch.setattr(examination, "check_versions", lambda: [])
    outcome = dpsr("doctor")
    assert outcome.code == 1
    assert "Repair what is broken first" in outcome.out
    assert dpsr("doctor", "--json").code == 1


def test_what_is_absent_or_worrying_is_not_broken(dpsr, monkeypatch):
    mild = [Check("versions", "torch", Status.absent, "optional"), Check("machine", "disk", Status.warning, "little")]
    monkeypatch.setattr(examination, "check_versions", lambda: mild)
    monkeypatch.setattr(examination, "check_randomness", lambda: [])
    assert dpsr("doctor").code == 0


@pytest.mark.parametrize(
    ("read", "word"),
    [
        (lambda n: bytes(n), "do not fit"),
        (lambda n: np.random.default_rng(0).bytes(n), "do not fit"),  # the same bytes twice
        (lambda n: bytes(b & 0xFE for b in np.random.default_rng().bytes(n)), "do not fit"),  # a bit that never flips
        (lambda n: (_ for _ in ()).throw(NotImplementedError), "does not answer"),
    ],
)
def test_a_generator_that_is_not_random_is_found(read, word):
    found = randomness.check_generator(read)
    assert found.status is Status.broken
    assert word in found.detail


CHANNEL = laplace(Scale(1, 5), 1.0)


def test_a_sampler_that_follows_its_table_passes_and_one_off_by_five_per_cent_does_not():
    noise = NoiseSource.seeded(0)
    right = randomness.check_channel("x", CHANNEL, lambda channel, levels: channel.sample(levels, noise))
    assert right.status is Status.ok
    p = CHANNEL.probabilities.copy()
    p[:, 0] *= 1.05
    other = Channel.from_probabilities(CHANNEL.scale, CHANNEL.outputs, p, mechanism="off", settings={})
    wrong = randomness.check_channel("x", CHANNEL, lambda _, levels: other.sample(levels, noise))
    assert wrong.status is Status.broken


def test_a_sampler_that_reuses_its_noise_is_found():
    one = CHANNEL.sample(np.zeros(1, dtype=np.uint16), NoiseSource.system())
    stuck = randomness.check_channel("x", CHANNEL, lambda _, levels: np.repeat(one, len(levels)))
    assert stuck.status is Status.broken


def test_a_table_with_another_price_than_it_states_is_found():
    cheat = laplace(Scale(1, 5), 1.0)
    object.__setattr__(cheat, "epsilon", 0.5)
    found = randomness.check_channel("x", cheat, lambda channel, levels: channel.sample(levels, NoiseSource.system()))
    assert found.status is Status.broken
    assert "price" in found.detail


def test_discrete_noise_of_another_scale_is_found():
    noise = NoiseSource.seeded(0)
    assert randomness.check_discrete(lambda scale, n: discrete_laplace(scale, n, noise)).status is Status.ok
    wider = randomness.check_discrete(lambda scale, n: discrete_laplace(scale * Fraction(21, 20), n, noise))
    assert wider.status is Status.broken


def test_arithmetic_that_rounds_down_is_found(monkeypatch):
    assert randomness.check_arithmetic().status is Status.ok
    monkeypatch.setattr(randomness, "epsilon_of", lambda table: 0.6931471805599452)
    assert randomness.check_arithmetic().status is Status.broken


def test_chi_square_agrees_with_scipy_where_nothing_is_rare():
    from scipy.stats import chisquare

    counts, expected = np.array([480, 530, 990]), np.array([500.0, 500.0, 1000.0])
    assert randomness.chi_square(counts, expected) == pytest.approx(chisquare(counts, expected).pvalue)


def test_old_missing_and_unimportable_libraries_are_broken(monkeypatch):
    assert versions.check_required("numpy>=2.0").status is Status.ok
    assert "too old" in versions.check_required("numpy>=99").detail
    assert "not installed" in versions.check_required("no-such-thing>=1").detail
    monkeypatch.setitem(sys.modules, "rich", None)
    found = versions.check_required("rich>=13")
    assert found.status is Status.broken
    assert "cannot be imported" in found.detail
    assert versions.check_python((3, 10, 4)).status is Status.broken


def test_a_missing_optional_library_and_java_are_absent(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(versions.metadata, "version", absent)
    monkeypatch.setattr(versions.shutil, "which", lambda _: None)
    assert versions.check_optional("torch", "to_torch").status is Status.absent
    assert versions.check_java().status is Status.absent


@pytest.mark.parametrize(
    ("says", "status"), [('openjdk version "17.0.2"', "ok"), ('java version "1.8.0_1"', "warning"), ("", "warning")]
)
def test_java_is_asked_for_its_version(monkeypatch, tmp_path, says, status):
    fake = tmp_path / "java"
    fake.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    fake.chmod(0o755)
    monkeypatch.setattr(versions.shutil, "which", lambda _: str(fake))
    assert versions.check_java().status == status


def test_a_full_or_forbidden_disk_is_a_warning(monkeypatch, tmp_path):
    assert machine.check_disk_space("x", tmp_path).detail.endswith("GiB free")
    monkeypatch.setattr(machine, "_LITTLE_ROOM", 1 << 60)
    assert machine.check_disk_space("x", tmp_path).status is Status.warning
    assert "cannot be written" in machine.check_disk_space("x", tmp_path / "nowhere").detail

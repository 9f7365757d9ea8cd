"""What people get from their own ratings, as a method of the comparison and a table of the frontier."""

import numpy as np

from dpsr import DPSR
from dpsr.data import realistic
from dpsr.evaluate.contract import JOINT
from dpsr.evaluate.registry import METHODS, OURS, PERSONALISED, build, compared_methods
from dpsr.evaluate.runner.jobs import noise_seed
from dpsr.evaluate.studies.frontier import frontier_study
from dpsr.evaluate.studies.frontier.study import NOISE
from dpsr.evaluate.studies.frontier.tables import TITLES
from dpsr.evaluate.studies.frontier.targets import EPSILONS, PERSONAL_TARGETS, TARGETS
from dpsr.evaluate.studies.study import run_study
from dpsr.types import Scale


def test_the_method_predicts_what_personalise_predicts_and_says_joint_dp():
    train, test = realistic(1, n_users=80, n_items=50, n_ratings=1_500).split(0.2, seed=0)
    method = build(PERSONALISED, 1.0, 1e-5, 7).fit(train)
    where = test.mask.users.astype(np.int64), test.mask.items.astype(np.int64)
    ids = test.to_arrow()
    expected = DPSR(1.0, random_state=7).fit(train).personalise(train)
    np.testing.assert_allclose(method.predict(*where), expected.predict(ids["user"], ids["item"]), rtol=1e-12)
    assert JOINT in method.protection.note
    assert method.protection.epsilon <= 1.0
    assert METHODS[PERSONALISED].joint
    assert PERSONALISED not in compared_methods(), (
        "the benchmark compares releases; the frontier shows this beside ours"
    )


def test_it_is_measured_under_the_noise_of_the_release_beside_it():
    assert NOISE[PERSONALISED] == OURS
    assert noise_seed("s", NOISE[PERSONALISED], 1.0, 0) == noise_seed("s", OURS, 1.0, 0)


def test_every_set_with_targets_has_targets_for_people_and_more_is_hoped_for_there():
    assert set(PERSONAL_TARGETS) == set(TARGETS)
    for name, targets in PERSONAL_TARGETS.items():
        for epsilon in EPSILONS:
            assert targets.aim[epsilon] < targets.reach[epsilon]
            assert targets.aim[epsilon] <= TARGETS[name].aim[epsilon]


def test_the_frontier_shows_people_beside_the_release_and_who_is_worse(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    from pyarrow.parquet import write_table

    write_table(realistic(0, n_users=60, n_items=40, n_ratings=1_200).to_arrow(), data / "tiny.parquet")
    study = frontier_study(data, scales={"tiny": Scale(1, 5)}, epsilons=[1.0], seeds=[0], methods=[OURS, PERSONALISED])
    report = run_study(study, tmp_path / "out")
    table = next(table for table in report.tables if table.name == "personalised_tiny")
    rows = {row[0]: row[1] for row in table.rows}
    assert set(rows) == {TITLES[OURS], TITLES[PERSONALISED], "never worse than the release"}
    better = float(rows[TITLES[PERSONALISED]].split()[0]) <= float(rows[TITLES[OURS]].split()[0])
    assert rows["never worse than the release"].startswith("met" if better else "missed")

"""Adapters, against the real libraries: a tiny model of each is trained, and its answers come back as raw ids."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import surprise
from implicit.cpu.als import AlternatingLeastSquares
from scipy.sparse import csr_array, csr_matrix
from threadpoolctl import threadpool_limits

from dpsr import DPSR, Ratings, Scale, load_release
from dpsr.errors import ParameterError
from dpsr.release.adapters import frames as optional_module


def made(kind):
    """80 users and 40 items; even users like even items and odd users odd ones, so that the right answer is known."""
    rng = np.random.default_rng(0)
    cells = np.sort(rng.choice(80 * 40, 1_600, replace=False))
    users, items = np.divmod(cells, 40)
    values = np.where((users + items) % 2 == 0, 5, 1)
    if kind == "strings":
        return [f"user {u:02}" for u in users], [f"film {j:02}" for j in items], values
    return users * 7 + 1000, items * 3 - 5, values


@pytest.fixture(scope="module", params=["strings", "integers"])
def release(request, tmp_path_factory):
    users, items, values = made(request.param)
    times = np.arange(len(users)) + 1_500_000_000
    ratings = Ratings.from_arrays(users, items, values, scale=Scale(1, 5), timestamps=times)
    model = DPSR(epsilon=8.0, random_state=0).fit(ratings, timestamps=True)  # seeded: what others learn is luck too
    return load_release(model.save(tmp_path_factory.mktemp("adapters") / "r"))


def test_arrow_pandas_and_polars_hold_the_released_table(release):
    table = release.to_arrow()
    assert table.column_names == ["user", "item", "rating", "timestamp"]
    assert table["user"].to_pylist() == release.mask.user_ids.take(release.mask.users).to_pylist()
    np.testing.assert_array_equal(table["rating"].to_numpy(), release.ratings)
    pandas, polars = release.to_pandas(), release.to_polars()
    assert isinstance(pandas, pd.DataFrame)
    assert isinstance(polars, pl.DataFrame)
    for name in table.column_names:
        assert pandas[name].tolist() == polars[name].to_list() == table[name].to_pylist()


def test_integer_ids_stay_integers_and_strings_stay_strings(release):
    first = release.mask.user_ids[0].as_py()
    assert type(release.to_pandas()["user"].tolist()[0]) is type(first)
    assert type(release.to_polars()["user"].to_list()[0]) is type(first)


def test_a_frame_goes_back_in_as_the_same_table(release):
    """The private table is a rating table: it can be read again, on a grid fine enough for what it holds."""
    grid = Scale(1, 5, step=0.01, snap=True)
    for frame in (release.to_pandas(), release.to_polars(), release.to_arrow()):
        again = Ratings.from_frame(frame, scale=grid)
        assert again.mask.user_ids.equals(release.mask.user_ids)
        np.testing.assert_array_equal(again.mask.items, release.mask.items)
        np.testing.assert_allclose(again.values, release.ratings, atol=0.005 + 1e-9)


def test_scipy_has_users_as_rows_items_as_columns_and_every_rating_in_its_cell(release):
    matrix = release.to_scipy()
    assert isinstance(matrix, csr_array)
    assert matrix.shape == release.mask.shape
    assert matrix.dtype == np.float64
    assert matrix.nnz == release.mask.n_ratings
    for row in release.to_pandas().sample(50, random_state=0).itertuples():
        assert matrix[release.ids.user_code(row.user), release.ids.item_code(row.item)] == row.rating


def test_a_private_rating_of_zero_stays_a_rating():
    ratings = Ratings.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], [0, 1, 0, 1], scale=Scale(0, 1))
    release = DPSR.paper(epsilon=20.0).fit(ratings).release
    release.ratings[:] = 0.0
    assert release.to_scipy().nnz == 4
    assert release.to_implicit().matrix.nnz == 4


def test_changing_a_matrix_does_not_change_the_release(release):
    before = release.ratings.copy()
    release.to_scipy().data[:] = 0
    release.to_implicit().matrix.indices[:] = 0
    np.testing.assert_array_equal(release.ratings, before)
    assert release.mask.items.max() > 0


def test_implicit_trains_and_its_codes_become_ids(release):
    matrix, ids = release.to_implicit(liked_from=3.5)
    assert isinstance(matrix, csr_matrix)
    assert matrix.dtype == np.float32
    assert matrix.shape == release.mask.shape
    assert set(matrix.data) == {1.0}
    with threadpool_limits(1, "blas"):  # implicit brings its own threads, and warns otherwise
        model = AlternatingLeastSquares(factors=8, iterations=10, random_state=0, num_threads=1)
        model.fit(matrix, show_progress=False)
    assert model.user_factors.shape[0] == release.mask.n_users, "users are rows"
    right = 0
    for user in range(0, 80, 8):
        codes, _ = model.recommend(user, matrix[user], N=3, filter_already_liked_items=True)
        raw = ids.items(codes)
        assert all(release.ids.item_code(item) == code for item, code in zip(raw, codes, strict=True))
        right += sum((user + code) % 2 == 0 for code in codes)
    assert right >= 25, "even users are recommended even items"


def test_implicit_weights_are_the_private_ratings_unless_told_otherwise(release):
    weights = release.to_implicit().matrix
    np.testing.assert_array_equal(weights.data, release.ratings.astype(np.float32))
    liked = release.to_implicit(liked_from=3.0).matrix
    expected = release.to_pandas().query("rating >= 3.0")
    assert liked.nnz == len(expected)
    assert sorted(zip(*liked.nonzero(), strict=True)) == sorted(
        (release.ids.user_code(u), release.ids.item_code(i))
        for u, i in zip(expected["user"], expected["item"], strict=True)
    )


def test_a_threshold_nothing_reaches_is_refused(release):
    with pytest.raises(ParameterError, match="lower liked_from"):
        release.to_implicit(liked_from=99)


def test_surprise_trains_on_the_declared_scale_and_predicts_for_raw_ids(release):
    trainset = release.to_surprise().build_full_trainset()
    assert trainset.rating_scale == (1, 5)
    assert (trainset.n_users, trainset.n_items, trainset.n_ratings) == (*release.mask.shape, release.mask.n_ratings)
    model = surprise.SVD(n_factors=4, n_epochs=40, lr_all=0.02, random_state=0)
    model.fit(trainset)
    user = release.mask.user_ids[4].as_py()
    even, odd = (release.mask.item_ids[code].as_py() for code in (8, 9))
    assert model.predict(user, even).est > model.predict(user, odd).est
    assert not model.predict(user, even).details["was_impossible"]
    raw = release.to_pandas().iloc[0]
    inner = trainset.to_inner_uid(raw["user"]), trainset.to_inner_iid(raw["item"])
    assert dict(trainset.ur[inner[0]])[inner[1]] == raw["rating"]


def test_torch_trains_with_a_loader_and_its_codes_become_ids(release):
    import torch  # seconds, which nobody should wait for who runs other tests

    data = release.to_torch()
    assert len(data) == release.mask.n_ratings
    user, item, rating = data[17]
    assert (user.dtype, item.dtype, rating.dtype) == (torch.int64, torch.int64, torch.float32)
    row = release.to_pandas().iloc[17]
    assert data.ids.users(user) == [row["user"]]
    assert data.ids.items(item) == [row["item"]]
    assert rating.item() == pytest.approx(row["rating"])
    torch.manual_seed(0)
    torch.set_num_threads(1)
    users, items = torch.nn.Embedding(data.n_users, 4), torch.nn.Embedding(data.n_items, 4)
    optimiser = torch.optim.Adam([*users.parameters(), *items.parameters()], lr=0.05)
    losses = []
    for _ in range(12):
        for u, j, r in torch.utils.data.DataLoader(data, batch_size=200, shuffle=True):
            loss = ((3 + (users(u) * items(j)).sum(1) - r) ** 2).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
    best = data.ids.items((users.weight[4] @ items.weight.T).topk(3).indices)
    assert {release.ids.item_code(item) % 2 for item in best} == {0}


def test_what_torch_sends_to_another_process_arrives_whole(release):
    import torch

    data = release.to_torch()
    sent = pickle.loads(pickle.dumps(data))
    assert len(sent) == len(data)
    for mine, theirs in zip(data[7], sent[7], strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("release", ["strings"], indirect=True)  # such a process imports PyTorch, which takes seconds
def test_torch_loaders_may_use_worker_processes(release):
    import torch

    data = release.to_torch()
    loader = torch.utils.data.DataLoader(data, batch_size=400, num_workers=1, multiprocessing_context="spawn")
    ratings = torch.cat([r for _, _, r in loader])
    torch.testing.assert_close(ratings, data.ratings)


def test_ids_and_codes_are_inverse(release):
    codes = np.arange(release.mask.n_items)
    assert [release.ids.item_code(item) for item in release.ids.items(codes)] == codes.tolist()
    assert release.ids.users(np.array([3, -1, 4])) == [release.mask.user_ids[k].as_py() for k in (3, 4)]


@pytest.mark.parametrize("codes", [[40], [0.5]])
def test_codes_of_something_else_are_refused(release, codes):
    with pytest.raises(ParameterError, match="codes are whole numbers below 40"):
        release.ids.items(codes)


def test_an_unknown_id_has_no_code(release):
    with pytest.raises(ParameterError, match="'nobody' is not in this release"):
        release.ids.user_code("nobody")


@pytest.mark.parametrize(
    ("method", "module", "extra"),
    [("to_pandas", "pandas", "dpsr[frames]"), ("to_polars", "polars", "dpsr[frames]"),
     ("to_surprise", "surprise", "dpsr[peers]"), ("to_torch", "torch", "dpsr[torch]")],
)  # fmt: skip
def test_a_missing_library_is_one_sentence_saying_what_to_install(release, monkeypatch, method, module, extra):
    real = optional_module.import_module

    def absent(name):
        if name == module:
            raise ModuleNotFoundError(f"No module named {name!r}")
        return real(name)

    monkeypatch.setattr(optional_module, "import_module", absent)
    with pytest.raises(ParameterError) as caught:
        getattr(release, method)()
    assert extra in str(caught.value)
    assert method in str(caught.value)


def test_a_release_costs_no_import_of_what_is_not_asked_for():
    heavy = ("torch", "pandas", "polars", "surprise", "implicit")
    code = f"import sys; import dpsr.release; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"

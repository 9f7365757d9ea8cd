"""The notebook runs from top to bottom as it is stored, and shows what it did when it was stored."""

import json
import re
from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "quickstart.ipynb"


@pytest.fixture(scope="module")
def cells():
    return json.loads(NOTEBOOK.read_text("utf-8"))["cells"]


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What each code cell prints when the whole notebook is executed in a folder of its own."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    place = str(tmp_path_factory.mktemp("notebook"))
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": place}}).execute()
    outputs = [cell["outputs"] for cell in notebook.cells if cell["cell_type"] == "code"]
    assert not list(Path(place).iterdir()), "nothing is left in the reader's folder"
    return "\n".join(
        "".join(output.get("text", "")) or str(output.get("data", {}).get("text/plain", ""))
        for cell in outputs
        for output in cell
    )


pytestmark = [
    pytest.mark.notebook,
    pytest.mark.filterwarnings("ignore"),  # the kernel's own libraries; ours warn inside the kernel
]


def test_it_runs_from_top_to_bottom_and_arrives(printed):
    assert "Ratings(12,000 ratings, 400 users, 200 items, scale 1:5:1)" in printed
    assert "private: epsilon = 1 per rating" in printed
    assert "ratings.parquet" in printed


def test_its_last_table_shows_the_release_between_the_constant_and_the_factorisation(printed):
    errors = {name: float(value) for name, value in re.findall(r"^(.+?)\s+RMSE ([0-9.]+)$", printed, re.MULTILINE)}
    private = errors["dpsr at epsilon = 1, private"]
    assert errors["factorisation, not private"] < private < errors["one constant"]


def test_it_is_stored_with_what_it_shows_so_that_it_can_be_read_without_running(cells):
    """`make notebook` stores it; noise is fresh every time, so figures are not compared."""
    shown = json.dumps([cell["outputs"] for cell in cells if cell["cell_type"] == "code"])
    assert "private: epsilon = 1 per rating" in shown
    assert "image/png" in shown
    assert "<table>" in shown
    assert "dpsr: done in" in shown, "progress in a notebook"
    assert "Traceback" not in shown
    assert not re.search(r"/(?:home|work|Users|tmp)/", NOTEBOOK.read_text("utf-8"))


def test_it_is_read_as_much_as_it_is_run(cells):
    kinds = [cell["cell_type"] for cell in cells]
    assert kinds[0] == "markdown"
    assert kinds.count("markdown") >= kinds.count("code") - 2

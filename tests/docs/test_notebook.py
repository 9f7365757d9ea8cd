"""The notebook runs from top to bottom as it is stored, and holds nothing but its own text and code."""

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


def test_no_outputs_counts_or_paths_are_stored(cells):
    for cell in cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
    assert not re.search(r"/(?:home|work|Users|tmp)/", NOTEBOOK.read_text("utf-8"))


def test_it_is_read_as_much_as_it_is_run(cells):
    kinds = [cell["cell_type"] for cell in cells]
    assert kinds[0] == "markdown"
    assert kinds.count("markdown") >= kinds.count("code") - 2

"""Run a notebook from top to bottom and store what it shows: `python tests/helpers/run_notebook.py NOTEBOOK`."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbclient
import nbformat


def run(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as place:
        nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": place}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when and how long: another every time
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    nbformat.write(notebook, path)


if __name__ == "__main__":
    run(Path(sys.argv[1]))

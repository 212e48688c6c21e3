"""Runs a notebook, cell by cell, and says on standard output what happens: one JSON object a line.

    execute.py FOLDER TIMEOUT [NOTEBOOK RESULT]

FOLDER is where the kernel starts, TIMEOUT the seconds that a cell may take. The notebook with its new
outputs is written to RESULT, also when a cell fails. Without a notebook, only the kernel is started.
"""

import json
import sys
import time

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError


def say(**event):
    print(json.dumps(event), flush=True)


def main():
    folder, timeout, *files = sys.argv[1:]
    notebook = nbformat.read(files[0], 4) if files else nbformat.v4.new_notebook()
    client = NotebookClient(
        notebook,
        kernel_name="quadrivium",
        timeout=int(timeout),
        startup_timeout=1800,  # it builds crates
        coalesce_streams=True,
        record_timing=False,
        resources={"metadata": {"path": folder}},
    )
    cells = [i for i, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    began = time.monotonic()
    with client.setup_kernel():
        say(kernel=time.monotonic() - began)
        for i in cells:
            began = time.monotonic()
            why = None
            try:
                client.execute_cell(notebook.cells[i], i)
            except CellExecutionError:
                why = "failed"  # the error is among its outputs
            except CellTimeoutError:
                why = f"took longer than {timeout} s"
            except DeadKernelError:
                why = "ended the kernel"
            say(cell=i, seconds=time.monotonic() - began, why=why)
            if why:
                break
    if files:
        nbformat.write(notebook, files[1])


main()

"""Runs a notebook, cell by cell, and says on standard output what happens: one JSON object a line.

    execute.py FOLDER TIMEOUT NOTEBOOK RESULT

FOLDER is where the kernel starts, TIMEOUT the seconds that a cell may take. The notebook with its new
outputs is written to RESULT, also when a cell fails.
"""

import json
import queue
import sys
import time
from contextlib import ExitStack

import nbformat
from jupyter_core.utils import run_sync
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

# The kernel says that a cell has ended, and may only then hand on the last lines that it printed. So much
# longer, in seconds, its words are waited for.
LATE = 0.2


def say(**event):
    print(json.dumps(event), flush=True)


class Client(NotebookClient):
    """Runs cells, and does not lose what arrives late."""

    async def hear_late_words(self, cell, i, request):
        while True:
            try:
                message = await self.kc.get_iopub_msg(timeout=LATE)
            except queue.Empty:
                return
            if message["parent_header"].get("msg_id") == request:
                self.process_message(message, cell, i)

    def execute(self, cell, i):
        request = []

        def note(execute_reply, **_):
            request.append(execute_reply["parent_header"]["msg_id"])

        self.on_cell_executed = note
        try:
            self.execute_cell(cell, i)
        finally:
            if request:
                run_sync(self.hear_late_words)(cell, i, request[0])


def start(client, running):
    """Starts the kernel, which runs as long as `running`.

    Jupyter looks for free ports, and the kernel takes them only once it has built its crates. If another
    program has one by then, the kernel ends: it gets new ports, once, and has little left to build.
    """
    try:
        running.enter_context(client.setup_kernel())
    except RuntimeError:
        running.enter_context(client.setup_kernel())


def main():
    folder, timeout, file, result = sys.argv[1:]
    notebook = nbformat.read(file, 4)
    client = Client(
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
    with ExitStack() as running:
        start(client, running)
        say(kernel=time.monotonic() - began)
        for i in cells:
            began = time.monotonic()
            why = None
            try:
                client.execute(notebook.cells[i], i)
            except CellExecutionError:
                why = "failed"  # the error is among its outputs
            except CellTimeoutError:
                why = f"took longer than {timeout} s"
            except DeadKernelError:
                why = "ended the kernel"
            say(cell=i, seconds=time.monotonic() - began, why=why)
            if why:
                break
    nbformat.write(notebook, result)


main()

"""How the cost of a pass over rows on a dask cluster divides, and what a large cluster would cost.

    python benchmarks/dask_cost.py [--rows 400000] [--columns 200] [--chunk 10000]

Rows lie in the memory of local workers, processes with one thread each. A pass adds up X'X less
the mean, as the fit of PPCA does. dask itself tells how long its tasks computed and how long they
waited for results of others; what the process of client and scheduler computed is measured there.
By that, a pass of 100 workers over a billion rows is: their share of the products, the results that
each fetches for the tree, and the work of the scheduler for every task, which no worker shares.
That work is told by passes with ten times as many chunks.
"""

import argparse
import time
from statistics import median

import distributed
import numpy as np
from dask import array as da

from gnomon.linalg.distributed import JOINED, from_dask

import measure

WORKERS, PASSES = (1, 2, 4), 5
# Chunks so many times smaller show what a task costs the scheduler.
FINER = 10
MANY_WORKERS, MANY_ROWS, MANY_CHUNK = 100, 10**9, 10**5


def made(block_info=None):
    """A chunk of rows, made where it is kept."""
    shape, (k, _) = block_info[None]["chunk-shape"], block_info[None]["chunk-location"]
    return np.random.default_rng(k).normal(size=shape)


def seconds(stream, action):
    """Seconds that tasks spent on an action, all workers together, and how often."""
    spans = [s for task in stream.data for s in task["startstops"] if s["action"] == action]
    return sum(s["stop"] - s["start"] for s in spans), len(spans)


def one_pass(client, data):
    """Wall, compute, transfer and client seconds of a pass, tasks and transfers."""
    with distributed.get_task_stream(client) as stream:
        wall, cpu = time.perf_counter(), time.process_time()
        data.gram()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    (compute, tasks), (transfer, moved) = (seconds(stream, a) for a in ("compute", "transfer"))
    return wall, compute, transfer, cpu, tasks, moved


def measured(n_workers, args, chunk):
    """The median of some passes with so many workers, the first left out."""
    with (
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        chunks = (chunk,) * (args.rows // chunk), (args.columns,)
        X = da.map_blocks(made, chunks=chunks, dtype=float, meta=np.empty((0, 0))).persist()
        distributed.wait(X)
        data = from_dask(X)
        data = data.less_mean(data.column_means())
        passes = [one_pass(client, data) for _ in range(PASSES + 1)][1:]
    return [median(values) for values in zip(*passes, strict=True)]


def predicted(found, fine, args):
    """Parts of a pass of many workers; ``fine`` is measured with more tasks on two workers."""
    chunks = MANY_ROWS / MANY_CHUNK
    # Workers that outnumber the cores of this machine wait for these.
    compute = found[0][1]
    waited, moved = (sum(row[k] for row in found) for k in (2, 5))
    coarse = found[WORKERS.index(2)]
    per_task = (fine[3] - coarse[3]) / (fine[4] - coarse[4])
    products = compute / args.rows * MANY_ROWS / MANY_WORKERS
    network = chunks / MANY_WORKERS * waited / moved
    client = coarse[3] + per_task * chunks * (1 + 1 / (JOINED - 1))
    return [max(products + network, client), products, network, client]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--columns", type=int, default=200)
    parser.add_argument("--chunk", type=int, default=10_000)
    args = parser.parse_args()
    found = [measured(n, args, args.chunk) for n in WORKERS]
    table = []
    for n, (wall, compute, transfer, cpu, _, _) in zip(WORKERS, found, strict=True):
        parts = wall, compute / n, transfer / n, cpu
        table.append([f"{n}", f"{args.rows:,}", *(f"{part:.3f}" for part in parts)])
    whole = predicted(found, measured(2, args, args.chunk // FINER), args)
    table.append(
        [f"{MANY_WORKERS}, by the model", f"{MANY_ROWS:,}", *(f"{part:.3g}" for part in whole)]
    )
    title = f"A pass over rows of {args.columns} columns on a dask cluster, in seconds"
    header = ["workers", "rows", "pass", "products, a worker", "network, a worker", "client"]
    size = args.columns**2 * 8 / 2**10
    notes = [
        f"Chunks of {args.chunk:,} rows; a result is {size:,.0f} KiB, whatever the rows, and one "
        "of them comes to the client. Network is the time that tasks waited for results of other "
        "workers, here of the same machine; client is the computing time of client and scheduler, "
        "which share a process here. The last line has chunks of "
        f"{MANY_CHUNK:,} rows: products and network of a worker follow one another, beside the "
        "work of the scheduler for every task, and the longer of the two is the pass.",
    ]
    measure.write("dask_cost", title, header, table, notes)


if __name__ == "__main__":
    main()

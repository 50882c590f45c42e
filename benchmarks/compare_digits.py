"""gnomon.compare on digits: all models, three sizes, five splits, two processes.

python benchmarks/compare_digits.py
"""

import json
import os
import time
from pathlib import Path

from sklearn.datasets import load_digits

import gnomon

RESULT = Path(__file__).parent / "results" / "compare_digits"


def main():
    X, y = load_digits(return_X_y=True)
    start = time.perf_counter()
    result = gnomon.compare(X, y, n_components=(2, 5, 10), cv=5, n_jobs=2, progress=True)
    seconds = time.perf_counter() - start
    load = f"{os.getloadavg()[0]:.1f}"
    record = {
        "seconds": round(seconds, 1),
        "load average at the end": load,
        "cores": os.cpu_count(),
    }
    record |= {"models": len({r.model for r in result.rows}), "stopped": result.stopped}
    record["table"] = [row._asdict() for row in result.rows]
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    head = f"# compare on digits\n\n{seconds:.0f} s on {os.cpu_count()} cores with 2 processes "
    head += f"(load average {load}: above 2 others were at work).\n\n```text\n"
    RESULT.with_suffix(".md").write_text(head + str(result) + "\n```\n")
    print(result, f"\n{seconds:.1f} s")


if __name__ == "__main__":
    main()

"""What a result must say of the machine it was made on."""

import os
import platform
from datetime import UTC, datetime

import numpy
import scipy
import sklearn


def describe():
    """Date, cores, Python and the versions that matter, in one line."""
    versions = f"numpy {numpy.__version__}, scipy {scipy.__version__}"
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "all")
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, {os.cpu_count()} cores, "
        f"BLAS threads: {threads}, Python {platform.python_version()}, {versions}, "
        f"scikit-learn {sklearn.__version__}"
    )

"""Shared by every measurement: one thread, peers at their best, the machine's name."""

import importlib.metadata
import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
)
RESTARTED = "MNEMIC_BENCH_RESTARTED"
DISTRIBUTIONS = ("mnemic", "numpy", "faiss-cpu", "usearch", "hnswlib")


def restart_at_their_best():
    """Start this program again with one thread and the OpenBLAS kernels that are fastest here.

    Libraries read these variables when they are loaded, and numpy is loaded by then. OpenBLAS
    recognises AVX2 processors by itself; faiss's copy has an old default kernel on AVX-512 ones.
    """
    if RESTARTED in os.environ:
        return
    environment = {**os.environ, RESTARTED: "1", **dict.fromkeys(THREADS, "1")}
    environment.pop("OPENBLAS_L2_SIZE", None)
    environment.pop("OPENBLAS_CORETYPE", None)
    if "avx512f" in cpu_fact("flags").split():
        environment["OPENBLAS_CORETYPE"] = "SkylakeX"
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)  # noqa: S606 - this program


def cpu_fact(name):
    """Return a line of /proc/cpuinfo, or nothing if there is no such file."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def machine():
    """Describe the machine and the versions of a measurement."""
    from mnemic.vectors import simd_kernel  # noqa: PLC0415 - programs that restart have not loaded it yet

    return {
        "date": datetime.now(UTC).date().isoformat(),
        "command": f"python -m {module()} {' '.join(sys.argv[1:])}".strip(),
        "processor": cpu_fact("model name") or platform.machine(),
        "cores": os.cpu_count(),
        "kernel": simd_kernel(),
        "python": platform.python_version(),
        "versions": dict(filter(None, map(version, DISTRIBUTIONS))),
    }


def module():
    specification = sys.modules["__main__"].__spec__
    return specification.name.removesuffix(".__main__") if specification else sys.argv[0]


def version(distribution):
    try:
        return distribution, importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def title(facts):
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    return (
        f"{facts['date']}, {facts['processor']}, {facts['cores']} cores, kernel {facts['kernel']}, "
        f"Python {facts['python']}, {versions}"
    )


def write_record(path, record):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

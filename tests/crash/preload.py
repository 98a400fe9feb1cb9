"""Libraries in C that stand between a process and the system, made when a test asks for them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


def compiled(name: str, folder: Path) -> Path:
    """Make the library of this name, or skip the test where that cannot be done."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip(f"{name} cannot be made here: there is no C compiler")
    library = folder / f"{name}.so"
    options = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror"]
    subprocess.run([compiler, *options, "-o", str(library), str(FOLDER / f"{name}.c")], check=True)
    return library


def under(library: Path, **added: str) -> dict[str, str]:
    """Give the environment of a process that is started under a library."""
    root = str(FOLDER.parents[1])
    return os.environ | {"LD_PRELOAD": str(library), "PYTHONPATH": root} | added

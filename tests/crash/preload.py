"""Libraries in C that stand between a process and the system, made when a test asks for them."""

import os
import shutil
import subprocess
from pathlib import Path

FOLDER = Path(__file__).parent


def compiled(name: str, folder: Path) -> Path:
    """Make the library of this name; FileNotFoundError where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise FileNotFoundError(f"{name}.c cannot be compiled: there is no cc")
    library = folder / f"{name}.so"
    options = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror"]
    subprocess.run([compiler, *options, "-o", str(library), str(FOLDER / f"{name}.c")], check=True)
    return library


def under(library: Path, **added: str) -> dict[str, str]:
    """Give the environment of a process that is started under a library."""
    root = str(FOLDER.parents[1])
    return os.environ | {"LD_PRELOAD": str(library), "PYTHONPATH": root} | added

"""Starts the worker in whatever interpreter runs this file.

Only the package numtrace is made importable, not the folder it lies in: that may be the site-packages of
another environment, whose torch and IREE must not be taken for those of this interpreter.
"""

from __future__ import annotations

import sys
from importlib import util
from pathlib import Path


def _load_package() -> None:
    sys.path.pop(0)  # this folder, whose file names would hide top-level modules
    package = Path(__file__).resolve().parent.parent
    spec = util.spec_from_file_location(
        "numtrace", package / "__init__.py", submodule_search_locations=[str(package)]
    )
    assert spec is not None and spec.loader is not None
    module = sys.modules["numtrace"] = util.module_from_spec(spec)
    spec.loader.exec_module(module)


if __name__ == "__main__":
    _load_package()
    if sys.argv[1:] == ["job"]:
        from numtrace.worker.job import run_and_exit

        run_and_exit()
    from numtrace.worker.forks import serve

    serve()

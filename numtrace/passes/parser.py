"""IREE's own pipeline parser, and a script that asks it from a child process.

A child, because the parser may abort the process ("LLVM ERROR: Can't add pass … restricted to …") and
writes part of its messages straight to stderr. This file needs nothing but iree, and runs in whatever
interpreter has it: it reads a JSON list of pipelines from stdin, writes one JSON line about the compiler,
then one per pipeline, and ends what each wrote to stderr with ``SEPARATOR``.
"""

from __future__ import annotations

import json
import os
import sys

SEPARATOR = "\x1e"


def parse_error(text: str) -> str | None:
    """The parser's message about a complete ``builtin.module(…)``, or None when it parses."""
    from iree.compiler import ir, passmanager

    try:
        with ir.Context() as context:
            passmanager.PassManager.parse(text, context)
    except ValueError as error:
        return str(error)
    return None


def compiler_path() -> str:
    """The ``iree-compile`` that belongs to this interpreter's IREE."""
    from iree.compiler.tools import binaries

    return binaries.find_tool("iree-compile")


def _say(document: dict[str, str | None]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def main() -> None:
    try:
        _say({"compiler": compiler_path()})
    except Exception as error:  # whatever a broken installation raises, the parent tells the user
        _say({"missing": f"{type(error).__name__}: {error}"})
        return
    for text in json.load(sys.stdin):
        _say({"error": parse_error(text)})
        os.write(2, SEPARATOR.encode())


if __name__ == "__main__":
    sys.path.pop(0)  # this folder, whose file names would hide top-level modules
    main()
    os._exit(0)  # nanobind writes leak warnings when the interpreter ends in the usual way

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from numtrace.dumps.files import append_bytes, output_errors, write_bytes
from numtrace.errors import ExitCode, OutputError


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_write_replaces_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "a" / "b.txt"
    write_bytes(path, b"one")
    write_bytes(path, b"two")
    assert path.read_bytes() == b"two"
    assert names_in(path.parent) == ["b.txt"]


def test_append(tmp_path):
    append_bytes(tmp_path / "x", b"1\n")
    append_bytes(tmp_path / "x", b"2\n")
    assert (tmp_path / "x").read_bytes() == b"1\n2\n"


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "the disk is full: free space, or give another --out"),
        (errno.EACCES, "permission denied"),
        (errno.EROFS, "read-only"),
        (errno.EIO, "give another --out"),
    ],
)
def test_errors_say_what_to_do(number, advice):
    with (
        pytest.raises(OutputError, match=f"cannot write some/file: .*{advice}") as caught,
        output_errors(Path("some/file")),
    ):
        raise OSError(number, os.strerror(number))
    assert caught.value.exit_code == ExitCode.USAGE


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="cannot write"):
        write_bytes(tmp_path / "file" / "report.json", b"x")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_device_when_appending(tmp_path):
    (tmp_path / "sites.jsonl").symlink_to("/dev/full")
    with pytest.raises(OutputError, match="the disk is full"):
        append_bytes(tmp_path / "sites.jsonl", b"x\n")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on file sizes")
def test_a_write_that_fails_half_way_keeps_the_old_file(tmp_path):
    path = tmp_path / "report.json"
    path.write_bytes(b"old")
    # A real short write: the kernel refuses more than 4096 bytes in this child.
    program = (
        "import resource, signal, sys; from pathlib import Path;"
        "from numtrace.dumps.files import write_bytes; from numtrace.errors import OutputError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n    write_bytes(Path(sys.argv[1]), b'x' * 10000)\n"
        "except OutputError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert "larger than is allowed" in done.stdout
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["report.json"]

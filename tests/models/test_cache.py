"""Generated files are whole or made again; nobody sees a half-written one."""

import multiprocessing
import os
import time
from pathlib import Path

import pytest

from numtrace.errors import InputError, OutputError
from numtrace.models.cache import cache_directory, fingerprint, obtain


def maker(content, calls, notices=()):
    def make(path):
        calls.append(path)
        path.write_text(content)
        return notices

    return make


def test_made_once_and_notices_are_kept(tmp_path):
    calls = []
    first = obtain(tmp_path, "a.mlir", maker("text", calls, ["said once"]))
    second = obtain(tmp_path, "a.mlir", maker("text", calls, ["not asked"]))
    assert first == second
    assert first.path == tmp_path / "a.mlir"
    assert first.path.read_text() == "text"
    assert first.notices == ("said once",)
    assert len(calls) == 1
    assert calls[0] != first.path
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.mlir", "a.mlir.json"]


@pytest.mark.parametrize(
    "damage", ["truncated", "flipped", "no sidecar", "half a sidecar", "odd sidecar", "gone"]
)
def test_a_damaged_file_is_made_again(tmp_path, damage):
    calls = []
    path = obtain(tmp_path, "a.bin", maker("0123456789", calls)).path
    sidecar = tmp_path / "a.bin.json"
    match damage:
        case "truncated":
            path.write_text("01234")
        case "flipped":
            path.write_text("0123456780")
        case "no sidecar":
            sidecar.unlink()
        case "half a sidecar":
            sidecar.write_text(sidecar.read_text()[:20])
        case "odd sidecar":
            sidecar.write_text("[]")
        case "gone":
            path.unlink()
    assert obtain(tmp_path, "a.bin", maker("0123456789", calls)).path.read_text() == "0123456789"
    assert len(calls) == 2
    obtain(tmp_path, "a.bin", maker("0123456789", calls))
    assert len(calls) == 2


def test_a_failed_making_leaves_nothing(tmp_path):
    def make(path):
        path.write_text("half")
        raise InputError("does not fit")

    with pytest.raises(InputError, match="does not fit"):
        obtain(tmp_path, "a.mlir", make)
    assert list(tmp_path.iterdir()) == []


def test_full_disk_names_the_file_and_the_way_out(tmp_path):
    def make(path):
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match=r"cannot write .*a\.mlir: No space left.*NUMTRACE_CACHE_DIR"):
        obtain(tmp_path, "a.mlir", make)


def test_a_directory_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="NUMTRACE_CACHE_DIR"):
        obtain(tmp_path / "file", "a.mlir", maker("text", []))


def test_leftovers_of_killed_processes_go_after_a_day(tmp_path):
    old, young = tmp_path / ".making-old", tmp_path / ".making-young"
    for making in (old, young):
        making.mkdir()
        (making / "weights.safetensors").write_text("half")
    os.utime(old, (time.time() - 2 * 86400,) * 2)
    obtain(tmp_path, "a.mlir", maker("text", []))
    assert not old.exists()
    assert young.exists()


def slow_make(path):
    with path.open("w") as file:
        for _ in range(50):
            file.write("x" * 100)
            file.flush()
            time.sleep(0.002)
    return ["slow"]


def obtain_and_read(directory):
    entry = obtain(Path(directory), "a.bin", slow_make)
    return entry.path.stat().st_size, entry.notices


def test_two_processes_at_once(tmp_path):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        results = pool.map(obtain_and_read, [str(tmp_path)] * 2, chunksize=1)
    assert results == [(5000, ("slow",))] * 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.bin", "a.bin.json"]


def test_directory_by_argument_environment_or_platform(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMTRACE_CACHE_DIR", str(tmp_path / "env"))
    assert cache_directory(tmp_path / "given") == tmp_path / "given"
    assert cache_directory() == tmp_path / "env"
    monkeypatch.delenv("NUMTRACE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory().name == "numtrace"


def test_fingerprint_separates_its_parts():
    assert fingerprint("ab", "c") != fingerprint("a", "bc")
    assert fingerprint(1, (2, 3)) == fingerprint(1, (2, 3))
    assert len(fingerprint()) == 16

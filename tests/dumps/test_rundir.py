import json
import os
import sys
from datetime import datetime
from pathlib import Path

import pytest

from numtrace.dumps.rundir import _LOCKS, MARKER, RunDirectory, default_path, is_run, load
from numtrace.dumps.schema import (
    Environment,
    Model,
    Reference,
    Report,
    Site,
    Target,
    Term,
    Tool,
    Variant,
)
from numtrace.errors import OutputError, UsageError


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def make_report(*names: str) -> Report:
    return Report(
        tool=Tool(name="numtrace", version="0"),
        environment=Environment(
            iree_compiler="1", iree_runtime="1", torch="2", cpu="c", flush_denormals=None, threads=2
        ),
        model=Model(path="m", sha256="", function="main", inputs=[]),
        target=Target(backend="llvm-cpu", device="local-task"),
        reference=Reference(kind="torch", dtype="f64"),
        tolerance=None,
        notices=[],
        planned=2,
        variants=[Variant(name=n, passes=[], pipeline=None, flags=[], status="ran") for n in names],
    )


def make_site(id: str, **more) -> Site:
    return Site(
        id=id,
        dispatch="d",
        op="mul",
        ops=["mul"],
        module="",
        location="",
        dtype="f32",
        shape=[],
        match="verified",
        **more,
    )


def test_report_after_each_variant(tmp_path):
    run = RunDirectory.create(tmp_path / "deep" / "run")
    assert is_run(run.path)
    run.write_report(make_report("baseline"))
    assert [v.name for v in load(run.path).variants] == ["baseline"]
    run.write_report(make_report("baseline", "winograd"))
    assert [v.name for v in load(run.path / "report.json").variants] == ["baseline", "winograd"]


def test_sites_are_kept_while_running_and_a_cut_line_is_left_out(tmp_path):
    folder = RunDirectory.create(tmp_path / "run").variant("winograd")
    assert folder.read_sites() == []
    folder.append_site(make_site("main/0.0"))
    folder.append_site(make_site("main/1.0", total=Term(max_abs=0.5)))
    with (folder.path / "sites.jsonl").open("ab") as stream:
        stream.write(b'{"id": "main/2.0", "disp')  # what kill -9 leaves
    assert [site.id for site in folder.read_sites()] == ["main/0.0", "main/1.0"]
    with pytest.raises(ValueError, match=r"total\.max_abs is nan"):
        folder.append_site(make_site("main/3.0", total=Term(max_abs=float("nan"))))


def test_variant_names_are_data(tmp_path):
    run = RunDirectory.create(tmp_path / "run")
    names = [
        "baseline",
        "../../evil",
        "/evil",
        "a" * 500,
        "A",
        "a",
        "builtin.module(util.func(x{y=1},z))",
        "",
    ]
    folders = [run.variant(name) for name in names]
    assert folders[0].relative == "variants/baseline"
    for folder in folders:
        assert folder.path.resolve().parent == (run.path / "variants").resolve()
        assert folder.write_text("flow.mlir", folder.name) == folder.path / "flow.mlir"
    assert len({str(folder.path).lower() for folder in folders}) == len(names)
    assert [(f.path / "flow.mlir").read_text() for f in folders] == names
    assert names_in(tmp_path) == ["run"]


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", "", "a\\..\\x", "c:x"])
def test_paths_stay_inside(tmp_path, path):
    run = RunDirectory.create(tmp_path / "run")
    with pytest.raises(ValueError, match="no path inside"):
        run.write_text(path, "x")


def test_a_directory_with_other_things_is_not_touched(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    (tmp_path / "variants").mkdir()
    with pytest.raises(OutputError, match="not empty and not a numtrace run"):
        RunDirectory.create(tmp_path)
    assert names_in(tmp_path) == ["thesis.tex", "variants"]


def test_an_earlier_run_is_overwritten_but_not_what_the_user_put_there(tmp_path):
    run = RunDirectory.create(tmp_path / "run")
    run.write_report(make_report("baseline"))
    run.variant("old").write_text("flow.mlir", "x")
    run.write_text("model/source.mlir", "x")
    (run.path / "notes.txt").write_text("mine")
    RunDirectory.create(run.path)
    assert names_in(run.path) == ["notes.txt", MARKER, "variants"]
    assert names_in(run.path / "variants") == []


def test_a_symbolic_link_in_an_earlier_run_is_not_followed(tmp_path):
    run = RunDirectory.create(tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("precious")
    (run.path / "model").symlink_to(tmp_path / "elsewhere")
    RunDirectory.create(run.path)
    assert (tmp_path / "elsewhere" / "file").read_text() == "precious"
    assert not (run.path / "model").exists()


def test_output_path_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OutputError, match="give another --out"):
            RunDirectory.create(path)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write anywhere")
def test_output_path_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="permission denied"):
        RunDirectory.create(tmp_path / "run")


def test_default_path_is_free(tmp_path):
    now = datetime(2026, 3, 4, 5, 6, 7)
    first = default_path("models/sdxl-vae-tiny.mlir", now, tmp_path)
    assert first.name == "numtrace-run-sdxl-vae-tiny-20260304-050607"
    first.mkdir()
    assert default_path("sdxl-vae-tiny", now, tmp_path).name == first.name + "-2"


def test_load_says_what_is_wrong(tmp_path):
    with pytest.raises(UsageError, match=r"gone does not exist: give the directory of a numtrace run"):
        load(tmp_path / "gone")
    with pytest.raises(UsageError, match=r"is not a numtrace run, it has no report\.json"):
        load(tmp_path)
    run = RunDirectory.create(tmp_path / "run")
    with pytest.raises(UsageError, match="ended before its first variant was done"):
        load(run.path)
    search = RunDirectory.create(tmp_path / "search", "bisect")
    with pytest.raises(UsageError, match="search is of a numtrace bisect that ended before it had found"):
        load(search.path)
    path = run.write_report(make_report("baseline"))
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(UsageError, match=r"report\.json is not complete JSON"):
        load(run.path)
    path.write_text(json.dumps({"format": "polygraphy"}))
    with pytest.raises(UsageError, match="is not a numtrace report"):
        load(run.path)
    path.unlink()
    path.mkdir()
    with pytest.raises(UsageError, match=r"cannot read .*report\.json"):
        load(run.path)


def test_a_directory_that_another_process_writes_to_is_left_alone(tmp_path):
    run = RunDirectory.create(tmp_path / "run")
    (run.path / "report.json").write_text("theirs")
    _LOCKS.pop(run.path.resolve())  # the lock of another description, as a process has that began before
    with pytest.raises(OutputError, match="another numtrace is writing"):
        RunDirectory.create(tmp_path / "run")
    assert (run.path / "report.json").read_text() == "theirs"


def test_one_process_may_write_again(tmp_path):
    RunDirectory.create(tmp_path / "run").write_text("report.json", "old")
    again = RunDirectory.create(tmp_path / "run")
    assert not (again.path / "report.json").exists()

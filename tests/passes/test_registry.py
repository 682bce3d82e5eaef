import sys

import pytest

from numtrace.errors import PassError
from numtrace.passes import registry
from numtrace.passes.model import Pass

WINOGRAD = "iree-linalg-ext-convert-conv2d-to-winograd{replace-all-convs=true}"


def test_the_passes_of_the_issue_are_registered():
    wanted = (
        "demote-bf16 demote-f16 demote-bf16-conv demote-bf16-matmul winograd img2col conv-channels-last "
        "generalize data-tiling ukernels"
    )
    assert set(wanted.split()) <= set(registry.registered().passes)


def test_get_by_name():
    assert registry.get("winograd").pipelines == (WINOGRAD,)
    assert registry.get("data-tiling").flags == ("--iree-opt-data-tiling",)


def test_unknown_pass_names_the_nearest():
    with pytest.raises(PassError, match=r"no pass is named 'winograt'.*did you mean winograd"):
        registry.get("winograt")
    with pytest.raises(PassError, match=r"did you mean iree-linalg-ext-convert-conv2d-to-winograd"):
        registry.get("iree-linalg-ext-convert-conv2d-to-winogard")
    with pytest.raises(PassError, match=r"demote-bf16, .*ukernels"):
        registry.get("zzzzzz")


def test_a_list_in_one_word_says_how_to_give_several():
    with pytest.raises(PassError, match="give --pass once for each of winograd, img2col"):
        registry.get("winograd,img2col")


@pytest.mark.parametrize(
    ("text", "name", "candidates"),
    [
        (WINOGRAD, "iree-linalg-ext-convert-conv2d-to-winograd", (WINOGRAD, f"builtin.module({WINOGRAD})")),
        ("util.func(canonicalize,cse)", "canonicalize,cse", ("util.func(canonicalize,cse)",)),
        ("builtin.module(symbol-dce)", "symbol-dce", ("builtin.module(symbol-dce)",)),
        ("canonicalize", "canonicalize", ("canonicalize", "builtin.module(canonicalize)")),
        (
            "iree-preprocessing-pad-to-intrinsics",  # for modules only
            "iree-preprocessing-pad-to-intrinsics",
            ("iree-preprocessing-pad-to-intrinsics", "builtin.module(iree-preprocessing-pad-to-intrinsics)"),
        ),
    ],
)
def test_raw_text(text, name, candidates):
    p = registry.get(text)
    assert (p.name, p.pipelines, p.flags) == (name, candidates, ())


def test_raw_text_that_is_no_pipeline():
    with pytest.raises(PassError, match="is missing"):
        registry.get("util.func(canonicalize")
    with pytest.raises(PassError, match="holds no pass"):
        registry.get("builtin.module()")


def test_two_raw_passes_of_one_name_are_told_apart_by_options():
    a, b, c = registry.get_all(["x{k=1 l=1}", "x{k=2}", "y{}"])
    assert (a.name, b.name, c.name) == ("x{k=1,l=1}", "x{k=2}", "y")
    a, b = registry.get_all(["util.func(x)", "func.func(x)"])
    assert (a.name, b.name) == ("x", "x#2")
    assert b.pipelines == ("func.func(x)",)


def test_identical_passes_come_once():
    assert [p.name for p in registry.get_all(["winograd", f"util.func({WINOGRAD})", "img2col"])] == [
        "winograd",
        "img2col",
    ]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (WINOGRAD, "winograd"),
        (f"builtin.module(util.func({WINOGRAD}))", "winograd"),
        ("iree-global-opt-demote-contraction-inputs{operation=all type=bf16}", "demote-bf16"),
        ("iree-global-opt-demote-contraction-inputs{type=bf16 operation=conv}", "demote-bf16-conv"),
        ("iree-global-opt-demote-contraction-inputs-to-bf16", "demote-bf16"),
        ("iree-linalg-ext-convert-conv2d-to-winograd", "iree-linalg-ext-convert-conv2d-to-winograd"),
        ("func.func(cse)", "cse"),
    ],
)
def test_named(text, name):
    assert registry.named(text).name == name


# plugins, installed the way pip leaves them: a module and its dist-info with entry points


@pytest.fixture
def install(tmp_path, monkeypatch):
    def write(package, body, entries):
        (tmp_path / f"{package}.py").write_text("from numtrace.passes.model import Pass\n" + body)
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[numtrace.passes]\n{entries}\n")
        monkeypatch.delitem(sys.modules, package, raising=False)
        registry.registered.cache_clear()

    monkeypatch.syspath_prepend(str(tmp_path))
    yield write
    registry.registered.cache_clear()


def test_plugin_with_one_pass_and_with_several(install):
    install("plug_one", "P = Pass('mine', 's', 'conv', ('cse',))", "one = plug_one:P")
    install(
        "plug_two",
        "PS = [Pass('p1', '', '', ('cse',)), Pass('p2', '', '', flags=('--f',))]",
        "two = plug_two:PS",
    )
    assert registry.get("mine") == Pass("mine", "s", "conv", ("cse",))
    assert registry.get("p2").flags == ("--f",)
    assert registry.registered().notices == ()


def test_broken_plugins_are_notices(install):
    install("plug_raises", "raise RuntimeError('boom')", "bad = plug_raises:P")
    install("plug_wrong", "P = [42]", "wrong = plug_wrong:P")
    install("plug_good", "P = Pass('good', '', '', ('cse',))", "good = plug_good:P")
    found = registry.registered()
    assert "good" in found.passes
    assert found.notices == (
        "plugin 'bad' (plug_raises:P) was not loaded: RuntimeError: boom",
        "plugin 'wrong' (plug_wrong:P) was not loaded: TypeError: expected a "
        "numtrace.passes.model.Pass or a list of them, found 42",
    )


def test_a_name_taken_twice_names_both(install):
    install("plug_dup", "P = Pass('winograd', '', '', ('cse',))", "dup = plug_dup:P")
    with pytest.raises(PassError, match="'winograd': one of numtrace itself, one of plugin 'dup'"):
        registry.registered()

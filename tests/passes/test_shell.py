import pytest

from numtrace.errors import UsageError
from numtrace.passes.shell import commands


def words(text):
    (command,) = commands(text, "iree-compile")
    return list(command.words)


def test_continuations_of_three_shells():
    assert words("iree-compile \\\n  --a \\\n  x.mlir") == ["--a", "x.mlir"]
    assert words("iree-compile `\n  --a `\n  x.mlir") == ["--a", "x.mlir"]
    assert words("iree-compile ^\r\n  --a ^\r\n  x.mlir\r\n") == ["--a", "x.mlir"]


def test_spaces_after_a_continuation_and_one_at_the_end_are_forgiven():
    assert words("iree-compile --a \\  \n --b \\") == ["--a", "--b"]


def test_a_continuation_inside_a_word():
    assert words('iree-compile --a=\\\n"x y" --b\\\n--c') == ["--a=x y", "--b", "--c"]


def test_the_command_ends_with_its_line():
    assert words("text\niree-compile --a x.mlir\nThat's all, isn't it") == ["--a", "x.mlir"]


@pytest.mark.parametrize(
    "tail", ["&& iree-run-module --x", "| tee log", "; ls", "> log", "2>&1", "# why not"]
)
def test_operators_and_comments_end_the_command(tail):
    assert words(f"iree-compile --a x.mlir {tail}") == ["--a", "x.mlir"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("--p='a b'", ["--p=a b"]),
        ('--p="a(b{x=1},c)"', ["--p=a(b{x=1},c)"]),
        ('"--p=a b" --q', ["--p=a b", "--q"]),
        (r'--p="say \"hi\""', ['--p=say "hi"']),
        (r"--p a\ b", ["--p", "a b"]),
        (r"--p .\dir\_x\1.mlir", ["--p", r".\dir\_x\1.mlir"]),
        (r"--p C:\models\vae.mlir", ["--p", r"C:\models\vae.mlir"]),
        ("--p='' x", ["--p=", "x"]),
        ("--p=a`$b", ["--p=a$b"]),
        ("--p=a#b", ["--p=a#b"]),
    ],
)
def test_quotes_and_backslashes(given, expected):
    assert words(f"iree-compile {given}") == expected


@pytest.mark.parametrize(
    "before",
    [
        "❯ ", "$ ", "  $ ", "% ", "PS C:\\Users\\me> ", "C:\\iree> ", "me@host:~/iree$ ",
        "(venv) me@host:~$ ",
        "(venv) $ ", "time ", "A=1 B=x ", "$ A=1 ", "./build/tools/", "..\\tools\\", "$ ../tools/",
        "cd x && ",
    ],
)  # fmt: skip
def test_what_may_stand_before(before):
    assert words(f"{before}iree-compile --a") == ["--a"]
    assert words(f"{before}iree-compile.exe --a") == ["--a"]


def test_a_mention_is_no_command():
    text = "iree-compile is slow\nI ran iree-compile --a and my-iree-compile --b\n$ iree-compile-x --c"
    assert commands(text, "iree-compile") == []


def test_several_commands_in_order():
    found = commands(
        "iree-compile --a && iree-run-module --b\n$ iree-compile --c", "iree-compile", "iree-run-module"
    )
    assert [(c.program, c.words) for c in found] == [
        ("iree-compile", ("--a",)),
        ("iree-run-module", ("--b",)),
        ("iree-compile", ("--c",)),
    ]


def test_an_open_quote():
    with pytest.raises(UsageError, match='the iree-compile command has a " that is not closed'):
        commands('iree-compile --p="a', "iree-compile")

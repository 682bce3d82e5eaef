"""What iree-compile prints when it fails, and what is made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from numtrace.errors import CompileError, OutputError, UsageError
from numtrace.instrument.failure import compile_failure, name_ops

TABLE = [
    {"kind": "builtin.module", "name": "module", "module": "", "location": ""},
    {"kind": "func.func", "name": "func", "module": "", "location": "m.mlir:1:1"},
    {"kind": "linalg.matmul", "name": "matmul_0", "module": "block.fc", "location": '"matmul_0"("block.fc")'},
    {"kind": "linalg.generic", "name": "generic", "module": "", "location": "m.mlir:7:8"},
]
TARGET = Path("out", "flow.mlir")


def failure(printed, code=1):
    return compile_failure(code, printed, "flow", TARGET)


def named(printed, code=1):
    error = failure(printed, code)
    assert isinstance(error, CompileError)
    return name_ops(error, TABLE)


def test_stamps_become_the_op_and_its_module():
    error = named(
        '<unknown>:0: error: loc(callsite("numtrace.2" at "numtrace.1")): '
        "'linalg.matmul' op does not fit (really)\n"
        '<unknown>:0: note: loc("numtrace.1"): called from\n'
    )
    assert str(error) == "'linalg.matmul' op does not fit (really)"
    assert error.location == "matmul_0 (block.fc)"
    assert error.kind == "compiler-error"


def test_without_a_name_the_place_in_the_model_is_shown():
    error = named('<unknown>:0: error: loc("numtrace.3"): no\n')
    assert error.location == "generic (m.mlir:7:8)"


def test_a_function_is_named_only_when_there_is_nothing_else():
    fused = (
        '<unknown>:0: error: loc(fused["numtrace.1", callsite("numtrace.3" at "a) ("), "numtrace.2"]): no\n'
    )
    assert named(fused).location == "generic (m.mlir:7:8)"
    assert named('<unknown>:0: error: loc("numtrace.1"): no\n').location == "func (m.mlir:1:1)"
    assert named('<unknown>:0: error: loc("elsewhere"): no\n').location is None


def test_the_op_comes_from_the_first_error_that_has_one():
    error = named(
        "iree-lld: error: undefined symbol: fmaxf\n>>> referenced by a.c\n"
        "Linking failed; escaped command line returned exit code 256:\n"
        '<unknown>:0: error: loc("numtrace.2"): failed to serialize executables\n'
    )
    assert str(error) == "iree-lld: undefined symbol: fmaxf"
    assert error.location == "matmul_0 (block.fc)"


def test_stamps_inside_a_message_are_named_too():
    error = named('<unknown>:0: error: loc("numtrace.2"): see loc("numtrace.3") and loc("numtrace.99")\n')
    assert str(error) == 'see loc("generic") and loc("(compiler)")'


CRASH = """<unknown>:0: warning: loc("numtrace.2"): reads uninitialized values
Please report issues to https://github.com/iree-org/iree/issues and include the crash backtrace.
Stack dump:
0.\tProgram arguments: iree-compile a.mlir
 #0 0x00007fd4c4f5a0ab llvm::sys::PrintStackTrace(llvm::raw_ostream&, int) Signals.cpp:0:0
 #1 0x00007fd4c6e11f9a mlir::iree_compiler::IREE::Flow::AnnotateDispatchesPass::runOnOperation() A.cpp:0:0
 #2 0x00007fd4c509d3e0 mlir::iree_compiler::ConstEval::(anonymous namespace)::JitGlobalsPass::runOnOperation()
"""


def test_a_crash_names_the_signal_and_the_pass():
    error = named(CRASH, code=-8)
    assert str(error) == "iree-compile crashed with SIGFPE on the way to flow, in AnnotateDispatchesPass"
    assert error.kind == "compiler-crash"
    assert error.location is None, "a warning before it proves nothing"


def test_a_crash_with_a_message_says_it():
    error = failure("LLVM ERROR: Cannot select: t12\n" + CRASH, code=-6)
    assert (
        str(error) == "iree-compile crashed with SIGABRT on the way to flow: LLVM ERROR: Cannot select: t12"
    )


def test_no_message_at_all():
    assert str(failure("", code=3)) == "iree-compile failed with exit code 3: it printed nothing"
    assert str(failure("a\nb\n", code=3)) == "iree-compile failed with exit code 3: b"


@pytest.mark.parametrize(
    ("printed", "code"),
    [("", -25), ("LLVM ERROR: IO failure on output stream: No space left on device\n", 1)],
)
def test_a_full_disk_is_no_fault_of_the_compiler(printed, code):
    error = failure(printed, code)
    assert isinstance(error, OutputError)
    assert str(TARGET) in str(error)


def test_a_flag_that_does_not_exist():
    error = failure("iree-compile: Unknown command line argument '--iree-foo'.  Try: 'iree-compile --help'\n")
    assert isinstance(error, UsageError)

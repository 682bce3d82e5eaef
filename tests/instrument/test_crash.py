from numtrace.instrument.crash import last_stamps

DUMP = "// -----// IR Dump Before {name}: {name} //----- //\n"
CRASH = "Please report issues\nStack dump:\n 0. numtrace\n"


def dump(name: str, *stamps: int) -> str:
    ops = "".join(f'  %{n} = arith.addf %a, %b : f32 loc("numtrace.{n}")\n' for n in stamps)
    return DUMP.format(name=name) + "func.func @main() {\n" + ops + '} loc("numtrace.1")\n'


def test_the_last_dump_names_its_ops_and_not_what_holds_them() -> None:
    assert last_stamps((dump("first", 2, 3) + dump("last", 7, 7) + CRASH).splitlines(True)) == (7,)


def test_many_ops_name_none() -> None:
    assert last_stamps((dump("last", 2, 3, 4, 5) + CRASH).splitlines(True)) == ()


def test_a_compiler_that_did_not_crash_again_names_none() -> None:
    assert last_stamps(dump("last", 7).splitlines(True)) == ()
    assert last_stamps([]) == ()

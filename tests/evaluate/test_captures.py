"""What an op reads from outside of itself."""

from __future__ import annotations

from numtrace.evaluate.op import captures
from numtrace.evaluate.program import Program

LOOP = """
func.func @main(%x: f32, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> f32 {
    %next = arith.addf %sum, %x : f32
    scf.yield %next : f32
  }
  return %r : f32
}
"""


def test_a_loop_reads_what_its_body_does() -> None:
    """Its bounds, step and start, and %x; neither its own counter and sum nor what the body makes."""
    main = Program.parse(LOOP).functions["main"]
    (body,) = main.regions
    x, n = body.arguments
    *constants, loop, _ = body.ops
    assert captures(loop) == {x, n, *(slot for op in constants for slot in op.results)}

"""The least difference of exact values that is changed mathematics. Read without torch: the command judges by it."""

#: Relative to the largest element of the value (design, section 2): far above what two orders of a float64
#: summation differ by, far below any rounding of a 32-bit program.
SEMANTIC_FLOOR = 1e-11

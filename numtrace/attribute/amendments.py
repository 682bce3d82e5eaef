"""Why a site that differs in exact arithmetic is no fault after all. Read without torch."""

#: What is made of it is found to be right.
REWRITTEN = "rewritten: the value is not the source op's own, what is made of it is right"
#: Float64 cannot tell it from what it should be.
UNDECIDED = "undecided: it differs by no more than noise of the size of float64's rounding moves the outputs"

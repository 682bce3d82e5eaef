"""Programs with a planted fault, and correct ones with large errors: what numtrace says of each."""

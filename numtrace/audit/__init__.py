"""``numtrace passes --audit``: every preprocessing pass of an IREE over a corpus of small programs.

``program`` is what one is and how its text is made, ``convolutions``, ``matmuls``, ``windows``, ``composites`` and
``moves`` are the corpus, ``audit`` runs it, ``document`` is the result. What the worker does is in ``worker/audit.py``.
"""

"""Plants faults at random and prints how many numtrace finds, by kind.

    python bench/faults.py --draws 500 --seed 1

A draw is a few ops of a program: wrong in the compiled code, wrong by a pass, or correct with a large error. Every
program is really compiled and run, in this process. What is off stays in ``--out``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(
    0, str(Path(__file__).parents[1] / "tests")
)  # before this file's own folder: it has the same name

from faults.draws import play_all


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="the folder for what is off; a temporary one by default")
    args = parser.parse_args()
    folder = args.out or Path(tempfile.mkdtemp(prefix="faults-"))
    started = time.perf_counter()
    score = play_all(args.draws, args.seed, folder, lambda line: print(line, file=sys.stderr, flush=True))
    print(f"seed {args.seed}, {score.draws} draws, {time.perf_counter() - started:.0f} s; kept in {folder}\n")
    print(score.table())
    return 1 if score.off else 0


if __name__ == "__main__":
    sys.exit(main())

"""``bench/attribution.py`` stands in front of functions of the product by name: only a run shows that it works."""

import subprocess
import sys

from scripts import BENCH


def test_every_site_is_judged_where_the_cost_is_measured():
    # That every element of every site was judged is asserted by the script itself.
    command = [sys.executable, str(BENCH / "attribution.py"), "sdxl-vae-tiny"]
    result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    rows = dict(line.rsplit(maxsplit=1) for line in result.stdout.splitlines() if line.startswith("sites"))
    assert rows == {"sites": "131"}

import io
import os
import subprocess
import sys
from pathlib import Path

from numtrace.dumps.schema import decode, encode
from numtrace.report.document import write_document

GOLDEN = Path(__file__).parent / "golden" / "report.json"


def test_document_is_the_golden_one_and_reads_back(report):
    stream = io.BytesIO()
    write_document(report, stream)
    if os.environ.get("NUMTRACE_REGENERATE"):
        GOLDEN.write_bytes(stream.getvalue())
    golden = GOLDEN.read_bytes()
    assert stream.getvalue() == golden
    assert decode(golden) == report
    assert encode(decode(golden)) == golden


def test_a_reader_that_stops_early_is_no_error():
    program = (
        "import sys; from pathlib import Path; from numtrace.dumps.schema import decode;"
        "from numtrace.report.document import write_document;"
        f"report = decode(Path({str(GOLDEN)!r}).read_bytes()); sys.stdin.read();"
        "write_document(report, sys.stdout.buffer)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    child.stdout.close()
    child.stdin.close()  # only now does the child write
    assert child.wait(timeout=60) == 0
    assert child.stderr.read() == b""
    child.stderr.close()

"""The file of known findings: there and back, and every way in which it can be broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from numtrace.dumps.known import Entry, Size, read, write
from numtrace.errors import UsageError

ENTRY = Entry(
    kind="codegen", op="mm", passes=["demote-bf16"], certainty="suspect", note="issue 7",
    size=Size(max_abs=0.5, rel_l2=None, bound_ratio=2.5),
)  # fmt: skip


def test_there_and_back(tmp_path: Path) -> None:
    write(tmp_path / "known.json", [ENTRY])
    assert read(tmp_path / "known.json").entries == [ENTRY]
    assert (tmp_path / "known.json").read_text().endswith("}\n")


def test_what_a_person_writes_by_hand(tmp_path: Path) -> None:
    (tmp_path / "known.json").write_text(
        '{"format": "numtrace.known", "version": 1, "findings": ['
        '{"kind": "codegen", "op": "mm", "passes": [], "size": {"max_abs": null, "rel_l2": null}}]}'
    )
    (entry,) = read(tmp_path / "known.json").entries
    assert (entry.module, entry.note, entry.certainty) == ("", "", "proven")


HEAD = '{"format": "numtrace.known", "version": 1'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        (HEAD + ', "findings": [NaN]}', "is not JSON"),
        ("[]", 'its "format" should be "numtrace.known"'),
        ('{"format": "numtrace.report", "version": 1}', 'its "format" should be "numtrace.known"'),
        ('{"format": "numtrace.known", "version": 2, "findings": []}', "has version 2"),
        (HEAD + "}", "findings"),
        (HEAD + ', "findings": [{"kind": "codegen"}]}', "findings[0]"),
        (
            HEAD + ', "findings": [{"kind": "taste", "op": "mm", "passes": [], "size": {}}]}',
            "findings[0].kind",
        ),
        (
            HEAD + ', "findings": [{"kind": "codegen", "op": "mm", "pases": [], "size": {"max_abs": 1}}]}',
            "pases",
        ),
    ],
)
def test_what_cannot_be_used_says_why(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "known.json").write_text(text)
    with pytest.raises(UsageError) as error:
        read(tmp_path / "known.json")
    assert words in str(error.value) and "known.json" in str(error.value)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        read(tmp_path / "none.json")
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(UsageError, match="is not JSON"):
        read(tmp_path / "binary")

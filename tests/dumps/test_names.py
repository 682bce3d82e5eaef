import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtrace.dumps.names import MAX_LENGTH, file_name


@pytest.mark.parametrize("name", ["baseline", "winograd+demote-bf16", "sdxl-vae-tiny", "a.b_c=1"])
def test_plain_names_stay(name):
    assert file_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../../etc/passwd",
        "/abs",
        "a\\b",
        "c:x",
        "con",
        "nul.txt",
        "com1",
        "-",
        "a\0b",
        " ",
    ],
)
def test_dangerous_names_change(name):
    safe = file_name(name)
    assert safe != name
    assert safe.strip(".") == safe and not set(safe) & set('/\\:*?"<>|\0 ')
    assert safe.split(".")[0] not in {"con", "nul", "com1"}


def test_case_is_not_all_that_tells_two_names_apart():
    assert len({file_name(name).lower() for name in ("Pass", "pass", "PASS")}) == 3


@given(st.text(), st.text())
def test_different_names_get_different_files(a, b):
    one, two = file_name(a), file_name(b)
    assert len(one) <= MAX_LENGTH
    assert one.isascii() and one == one.lower()
    assert (one == two) == (a == b)

from numtrace.report.layout import Column, heading, labelled, paragraph, table


def columns():
    name, value = Column("name", shrinks=True), Column("value", right=True)
    for cell, number in (("a" * 30, "1.00e-05"), ("b", "0")):
        name.add(cell)
        value.add(number)
    return [name, value]


def test_table_aligns():
    head, rows = table(columns(), 80)
    assert head.plain == "name" + " " * 26 + "  " + "   value"
    assert [row.plain for row in rows] == ["a" * 30 + "  1.00e-05", "b" + " " * 29 + "  " + " " * 7 + "0"]


def test_names_give_way_before_the_gap_and_numbers_never():
    _, rows = table(columns(), 36)  # 24 + 2 + 8 = 34 is readable: two cells remain
    assert rows[0].plain == "a" * 12 + "…" + "a" * 13 + "  1.00e-05"
    _, rows = table(columns(), 33)  # 24 + 1 + 8
    assert rows[0].plain == "a" * 11 + "…" + "a" * 12 + " 1.00e-05"
    _, rows = table(columns(), 10)  # nothing helps: the name keeps six cells
    assert rows[0].plain == "aa…aaa 1.00e-05"


def test_labelled_wraps_under_itself():
    lines = [line.plain for line in labelled("sites", "one two three four five six", 36)]
    assert lines == ["  sites      one two three four five", "             six"]
    assert labelled("sites", "", 80) == []


def test_paragraph_keeps_line_breaks_and_breaks_long_words():
    assert [line.plain for line in paragraph("a\nb", 80, indent=2)] == ["  a", "  b"]
    assert [len(line.plain) for line in paragraph("x" * 50, 40)] == [40, 10]


def test_heading_fills_the_width():
    assert heading("winograd: ok", 24).plain == "── winograd: ok ────────"

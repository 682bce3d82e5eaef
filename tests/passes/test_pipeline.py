import pytest

from numtrace.errors import PassError
from numtrace.passes import pipeline


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["a"], "builtin.module(util.func(a))"),
        (["a{x=1}", "b"], "builtin.module(util.func(a{x=1},b))"),
        (["builtin.module(util.func(a,b))", "c"], "builtin.module(util.func(a,b,c))"),
        (["a", "builtin.module(symbol-dce)", "b"], "builtin.module(util.func(a),symbol-dce,util.func(b))"),
        (["func.func(a)", "b"], "builtin.module(func.func(a),util.func(b))"),
        (["builtin.module(a,util.func(b))"], "builtin.module(a,util.func(b))"),
        (["any(a)"], "builtin.module(any(a))"),
        (["a,b{x=1 y=2}"], "builtin.module(util.func(a,b{x=1 y=2}))"),
        ([" builtin.module( util.func( a , b ) ) "], "builtin.module(util.func(a,b))"),
        ([], ""),
    ],
)
def test_wrap(texts, expected):
    assert pipeline.wrap(texts) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("builtin.module(util.func(a{x=1 y={2,3}},b))", ("a{x=1 y={2,3}}", "b")),
        ("builtin.module(util.func(a),func.func(b,c),d)",
         ("a", "func.func(b)", "func.func(c)", "builtin.module(d)")),
        ("util.func(a,b)", ("a", "b")),
        ("a", ("a",)),
        ("", ()),
        ("builtin.module()", ()),
    ],
)  # fmt: skip
def test_elements(text, expected):
    assert pipeline.elements(text) == expected


def test_elements_joined_again_are_the_pipeline():
    text = "builtin.module(util.func(a{x=1},b),func.func(c),d,util.func(e))"
    assert pipeline.wrap(pipeline.elements(text)) == text


def test_commas_and_spaces_in_quotes_and_brackets_do_not_split():
    (element,) = pipeline.parse("""a{x="1, 2" y=[3, 4] z=#t<5, 6>}""")
    assert element.options == ('x="1, 2"', "y=[3, 4]", "z=#t<5, 6>")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("builtin.module(util.func(a)", "')' is missing"),
        ("a{x=1", "'}' is missing"),
        ("a)", "')' without its opening bracket"),
        ("a(b)(c)", "')' without its opening bracket"),
        ("a,,b", "expected a pass name"),
        ("(a)", "expected a pass name"),
        ("a{x=1}b", "what follows the brackets of a"),
        ("two words", "expected a pass name"),
    ],
)
def test_text_that_is_no_pipeline(text, said):
    with pytest.raises(PassError) as caught:
        pipeline.parse(text)
    assert repr(text) in str(caught.value)
    assert said in str(caught.value)


def test_canonical_ignores_the_order_of_options_and_the_default_nesting():
    assert pipeline.canonical("a{y=2 x=1}") == pipeline.canonical("builtin.module(util.func( a{x=1  y=2} ))")
    assert pipeline.canonical("a{x=1}") != pipeline.canonical("a")
    assert pipeline.canonical("a") != pipeline.canonical("builtin.module(a)")


def test_short_name():
    text = "builtin.module(util.func(iree-a{x=1 y=2},iree-b))"
    assert pipeline.short_name(text) == "iree-a,iree-b"
    assert pipeline.short_name(text, options=True) == "iree-a{x=1,y=2},iree-b"

"""Reading iree-opt's own list of passes, and what is tried of their options."""

from __future__ import annotations

import pytest

from numtrace.errors import PassError
from numtrace.passes import listing

#: As iree-opt 3.13 prints it, shortened.
HELP = """\
OPTIONS:
  --some-flag                                                              - Not a pass.
Compiler passes to run
  Passes:
      --affine-expand-index-ops                                            -   Lower affine operations
      --iree-global-opt-demote                                             -   Demotes inputs from f32.
        --operation=<value>                                                - Select the ops.
    =all                                                             -   Demote all.
    =conv                                                            -   Only convolutions.
        --type=<value>                                                     - Select the type.
    =f16                                                             -   Demote to f16.
    =bf16                                                            -   Demote to bf16.
      --iree-preprocessing-a-name-that-is-too-long-for-its-column-and-goes-on-pass-   Glued to its summary.
        --aggressive                                                       - More of it.
        --test-only                                                        - For lit tests.
        --pad-size=<int>                                                   - The size.
        --file=<string>                                                    - A file.
      --iree-linalg-ext-test-fusion                                        -   Tests fusion.
        --more                                                             - An option of a test.
  Pass Pipelines:
      --iree-preprocessing-pipeline                                        -   Runs passes.
"""


def test_passes_with_their_options():
    found = {one.name: one for one in listing.read(HELP)}
    assert list(found) == [
        "affine-expand-index-ops",
        "iree-global-opt-demote",
        "iree-preprocessing-a-name-that-is-too-long-for-its-column-and-goes-on-pass",
        "iree-preprocessing-pipeline",
    ]
    assert found["iree-global-opt-demote"].summary == "Demotes inputs from f32."
    assert [(o.name, o.kind, o.choices) for o in found["iree-global-opt-demote"].options] == [
        ("operation", "value", ("all", "conv")),
        ("type", "value", ("f16", "bf16")),
    ]


def test_choices_are_combined_and_the_rest_is_tried_alone():
    demote, long = listing.read(HELP)[1:3]
    assert list(demote.spellings()) == [
        "iree-global-opt-demote",
        "iree-global-opt-demote{type=f16}",
        "iree-global-opt-demote{type=bf16}",
        "iree-global-opt-demote{operation=all}",
        "iree-global-opt-demote{operation=all type=f16}",
        "iree-global-opt-demote{operation=all type=bf16}",
        "iree-global-opt-demote{operation=conv}",
        "iree-global-opt-demote{operation=conv type=f16}",
        "iree-global-opt-demote{operation=conv type=bf16}",
    ]
    assert [text.removeprefix(long.name) for text in long.spellings()] == [
        "",
        "{aggressive=true}",
        "{aggressive=false}",
        "{pad-size=4}",
    ]


def test_the_installed_iree_has_winograd_with_its_option():
    (winograd,) = listing.chosen(["iree-linalg-ext-convert-conv2d-to-winograd"])
    assert [option.name for option in winograd.options] == ["replace-all-convs"]


def test_a_pattern_that_matches_nothing_is_an_error():
    with pytest.raises(PassError, match="iree-opt lists no pass winograd"):
        listing.chosen(["winograd"])


def test_a_pass_on_modules_is_told_from_one_on_functions():
    """The one aborts the parser when it is nested on a function."""
    names = [
        "iree-global-opt-generalize-linalg-named-ops",
        "iree-global-optimization-hoist-constant-expressions",
        "no-such",
    ]
    whole, refused = listing.runnable(names)
    assert whole == {
        names[0]: f"builtin.module(util.func({names[0]}))",
        names[1]: f"builtin.module({names[1]})",
    }
    assert list(refused) == ["no-such"]


def test_the_decomposing_pipeline_parses():
    text = listing.decomposing()
    assert "iree-linalg-ext-decompose-im2col" in text
    whole, refused = listing.runnable([text])
    assert list(whole) == [text] and not refused

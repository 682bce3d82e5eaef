import io
import os
from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len

from numtrace.errors import UsageError
from numtrace.report.terminal import (
    find_site,
    make_console,
    part_of,
    print_report,
    print_site,
    report_lines,
    site_lines,
)

GOLDEN = Path(__file__).parent / "golden"
BOLD_RED = "[bold red]x[/bold red]"


def compare(name: str, text: str) -> None:
    """Against the stored text; ``NUMTRACE_REGENERATE=1`` writes it, to be read by a person."""
    path = GOLDEN / name
    if os.environ.get("NUMTRACE_REGENERATE"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def printed(print_it, width: int) -> str:
    stream = io.StringIO()
    print_it(make_console(stream, width))
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 140])
def test_report_is_the_golden_text(report, width):
    compare(f"report_{width}.txt", printed(lambda c: print_report(report, c), width))


@pytest.mark.parametrize("width", [80, 140])
def test_site_is_the_golden_text(report, width):
    compare(f"site_{width}.txt", printed(lambda c: print_site(report, c, "baseline", "convolution_2"), width))


@pytest.mark.parametrize("width", [80, 100, 119, 120, 140, 160, 200])
def test_no_line_is_wider_than_the_console(report, width):
    assert max(cell_len(line.plain) for line in report_lines(report, width)) <= width


def test_verdicts_and_reasons_are_on_the_first_screen_of_a_wide_terminal(report):
    screen = "\n".join(line.plain for line in report_lines(report, 200)[:32])
    for variant in report.variants:
        assert variant.name in screen
        if variant.verdict != "ok":
            assert variant.verdict in screen
            assert (variant.reason or "exceeded stack allocation limit") in screen


def test_piped_output_is_160_wide_and_keeps_module_paths_whole(report):
    stream = io.StringIO()
    console = make_console(stream)
    print_report(report, console)
    assert console.width == 160
    assert "decoder.mid_block.resnets.0.conv1" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_names_are_data_not_markup_nor_control_codes(report):
    evil = msgspec.structs.replace(report.variants[4], name=f"\x1b[2J\n{BOLD_RED}\u202e")
    report = msgspec.structs.replace(report, variants=[evil])
    text = printed(lambda c: print_report(report, c), 200)
    assert BOLD_RED in text
    assert "\\x1b[2J\\n" in text
    assert "\x1b" not in text and "\u202e" not in text


def test_columns_of_images_only_where_an_output_is_an_image(report):
    baseline = report.variants[0]
    plain = msgspec.structs.replace(
        baseline, output=msgspec.structs.replace(baseline.output, psnr_db=None, u8_max=None)
    )
    text = printed(lambda c: print_report(msgspec.structs.replace(report, variants=[plain]), c), 140)
    assert "PSNR" not in text and "8-bit" not in text
    assert "PSNR" in printed(lambda c: print_report(report, c), 140)


def test_worst_sites_are_sorted_and_limited(report):
    lines = [line.plain for line in report_lines(report, 140, top=1, variant="winograd")]
    start = lines.index("  worst by semantic error, max abs (1 of 2)")
    assert "main/31.0" in lines[start + 2]
    assert not any("main/4.0" in line for line in lines)


def test_semantic_noise_under_the_floor_is_one_line(report):
    noisy = report.variants[0].sites[0]
    noisy = msgspec.structs.replace(
        noisy, semantic=msgspec.structs.replace(noisy.semantic, max_abs=3e-15, rel_l2=9e-12)
    )
    variant = msgspec.structs.replace(report.variants[0], sites=[noisy])
    text = "\n".join(
        line.plain for line in report_lines(msgspec.structs.replace(report, variants=[variant]), 140)
    )
    assert "semantic   none" in text
    over = msgspec.structs.replace(
        noisy, semantic=msgspec.structs.replace(noisy.semantic, max_abs=3e-15, rel_l2=1.1e-11)
    )
    variant = msgspec.structs.replace(variant, sites=[over])
    text = "\n".join(
        line.plain for line in report_lines(msgspec.structs.replace(report, variants=[variant]), 140)
    )
    assert "worst by semantic error" in text


def test_a_site_of_zero_reference_counts_by_its_size(report):
    # rel_l2 is None where the reference is all zero: no small difference may hide there.
    site = report.variants[0].sites[0]
    site = msgspec.structs.replace(
        site, semantic=msgspec.structs.replace(site.semantic, max_abs=0.5, rel_l2=None)
    )
    variant = msgspec.structs.replace(report.variants[0], sites=[site])
    lines = report_lines(msgspec.structs.replace(report, variants=[variant]), 140)
    assert any("worst by semantic error" in line.plain for line in lines)


def test_report_without_variants(report):
    lines = [line.plain for line in report_lines(msgspec.structs.replace(report, variants=[]), 80)]
    assert "0 of 7 variants finished, the run was cut short" in lines


def test_unknown_variant_lists_what_there_is(report):
    with pytest.raises(UsageError, match=r"no variant 'winograt' .* baseline, demote-bf16, winograd"):
        report_lines(report, 80, variant="winograt")


def test_find_site(report):
    winograd = report.variants[2]
    assert find_site(winograd, "main/4.0").op == "convolution"
    assert find_site(winograd, "convolution_9").id == "main/31.0"
    with pytest.raises(UsageError, match=r"no site 'main/41\.0' among the 3 .*near it: main/4"):
        find_site(winograd, "main/41.0")
    twice = msgspec.structs.replace(winograd, sites=[*winograd.sites, winograd.sites[0]])
    with pytest.raises(UsageError, match="'convolution' has 2 sites"):
        find_site(twice, "convolution")


def test_a_part_of_the_document_is_what_was_asked_for(report):
    assert part_of(report, "", "") is report
    one = part_of(report, "winograd", "")
    assert [variant.name for variant in one.variants] == ["winograd"]
    assert one.model == report.model
    named = report.variants[0]
    site = named.sites[1]
    (found,) = part_of(report, named.name, site.id).variants
    assert found.sites == [site]


def test_what_was_interrupted_is_not_finished(report):
    first = msgspec.structs.replace(report.variants[0], status="interrupted")
    lines = report_lines(msgspec.structs.replace(report, variants=[first, *report.variants[1:3]]), 80)
    assert "2 of 7 variants finished, the run was cut short" in [line.plain for line in lines]


def test_site_view_of_an_uncovered_site_says_why(report):
    text = "\n".join(line.plain for line in site_lines(report, "winograd+demote-bf16", "main/5.0", 80))
    assert "no evaluation of iree_linalg_ext.attention" in text
    assert "first made here" in text
    assert "none were computed" in text

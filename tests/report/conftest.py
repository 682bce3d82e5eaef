"""A small report, written by hand: every verdict that this stage knows, and names that try to be markup."""

import pytest

from numtrace.dumps.schema import (
    Constant,
    Coverage,
    Environment,
    Failure,
    Input,
    Model,
    Origin,
    Output,
    Reference,
    Report,
    SemanticSplit,
    Site,
    Split,
    Spread,
    Target,
    Term,
    Timings,
    Tool,
    TorchError,
    Variant,
)

PIPELINE = "builtin.module(util.func(iree-global-opt-demote-contraction-inputs{operation=all type=bf16}))"


def site(id, op, module, shape, terms, match="verified", **more):
    inherited, introduced, semantic = (Term(max_abs=value, rel_l2=value) for value in terms)
    return Site(
        id=id,
        dispatch=f"main$async_dispatch_{id.split('/')[1].split('.')[0]}",
        op=op,
        ops=more.pop("ops", [op]),
        module=module,
        location=f'"{op}"("{module}")',
        dtype=more.pop("dtype", "f32"),
        shape=shape,
        match=match,
        inherited=inherited,
        introduced=introduced,
        semantic=semantic,
        total=Term(
            max_abs=sum(terms), at=[0, 3, 7], mean_abs=1e-6, rel_l2=2e-6, cosine=0.999999, max_ulp=12.5
        ),
        additivity=1.5,
        **more,
    )


BASELINE = Variant(
    name="baseline",
    passes=[],
    pipeline=None,
    flags=[],
    status="ran",
    verdict="ok",
    reason="no fault found",
    ops_changed=None,
    output=Output(max_abs=1.02e-5, mean_abs=1.3e-6, rel_l2=2.71e-6, max_ulp=171.0, psnr_db=114.62, u8_max=0),
    torch_same_dtype=TorchError(dtype="f32", max_abs=8.9e-6),
    constants=[Constant(op="mul", source=0.13025, stored=0.130249992, rel=6.14e-8, beyond_half_ulp=True)],
    split=Split(
        semantic=SemanticSplit(max_abs=8e-8, pass_=0.0, lowering=8e-8, constant=8e-8),
        execution_max_abs=1.01e-5,
    ),
    coverage=Coverage(sites=3, evaluated=3, verified=3),
    traced_equal=True,
    timings=Timings(compile_s=12.34, run_s=1.25, traced_s=1.31, total_s=15.0),
    directory="variants/baseline",
    files={"flow": "variants/baseline/flow.mlir", "global-optimization": "variants/baseline/opt.mlir"},
    sites=[
        site("main/0.0", "mul", "", [1, 4, 16, 16], (0.0, 5.96e-8, 0.0)),
        site(
            "main/12.0",
            "convolution_2",
            "decoder.mid_block.resnets.0.conv1",
            [64, 16, 16],
            (1.2e-6, 3.4e-6, 0.0),
            ops=["add_1", "convolution_2"],
        ),
        site("main/40.0", "clamp", "decoder", [1, 3, 128, 128], (1.02e-5, 0.0, 0.0)),
    ],
)

BF16 = Variant(
    name="demote-bf16",
    passes=["demote-bf16"],
    pipeline=PIPELINE,
    flags=[],
    status="ran",
    verdict="ok",
    reason="the error is rounding",
    ops_changed=37,
    output=Output(max_abs=1.2e-2, mean_abs=1.1e-3, rel_l2=2.3e-3, psnr_db=57.3, u8_max=3),
    torch_same_dtype=TorchError(dtype="bf16", max_abs=1.48e-2),
    spread=Spread(seeds=[0, 1, 2], max_abs=[0.0093, 0.012, 0.0101]),
    coverage=Coverage(sites=2, evaluated=2, verified=1, unmatched=1),
    directory="variants/demote-bf16",
    sites=[
        site(
            "main/3.0",
            "convert",
            "decoder.conv_in",
            [4, 16, 16],
            (0.0, 1.9e-3, 0.0),
            "unmatched",
            dtype="bf16",
        ),
        site("main/4.0", "convolution", "decoder.conv_in", [64, 16, 16], (1.8e-3, 4.4e-7, 0.0)),
    ],
)

LONG = "decoder.up_blocks.2.upsamplers.0.some_very_long_submodule_name.another_one.resnets.11.conv_shortcut"
WINOGRAD = Variant(
    name="winograd",
    passes=["winograd"],
    pipeline="builtin.module(util.func(iree-linalg-ext-convert-conv2d-to-winograd{replace-all-convs=true}))",
    flags=[],
    status="ran",
    verdict="pass-bug",
    reason="the pass changes what the program computes: 2 ops differ from the reference when evaluated "
    "exactly, first convolution (decoder.conv_in), and the output moves by 2.20e-01",
    ops_changed=30,
    output=Output(max_abs=0.22, mean_abs=0.081, rel_l2=0.19, psnr_db=18.2, u8_max=56),
    torch_same_dtype=TorchError(dtype="f32", max_abs=8.9e-6),
    split=Split(
        semantic=SemanticSplit(max_abs=0.22, pass_=0.22, lowering=8e-8, constant=8e-8),
        execution_max_abs=1.4e-5,
    ),
    coverage=Coverage(sites=3, evaluated=3, differs=2, verified=1),
    directory="variants/winograd",
    sites=[
        site("main/4.0", "convolution", "decoder.conv_in", [64, 16, 16], (0.0, 2.1e-6, 0.05), "differs"),
        site("main/31.0", "convolution_9", LONG, [1, 64, 128, 128], (0.011, 9.9e-6, 0.31), "differs"),
        site("main/40.0", "clamp", "decoder", [1, 3, 128, 128], (0.22, 0.0, 0.0)),
    ],
)

BOTH = Variant(
    name="winograd+demote-bf16",
    passes=["winograd", "demote-bf16"],
    pipeline=None,
    flags=[],
    status="ran",
    verdict="inconclusive",
    reason="1 site is uncovered and 1 after it is tainted",
    ops_changed=67,
    output=Output(max_abs=0.28, mean_abs=0.09, rel_l2=0.21, psnr_db=16.9, u8_max=71, nonfinite=4),
    torch_same_dtype=TorchError(dtype="bf16", max_abs=1.48e-2),
    coverage=Coverage(sites=2, evaluated=1, unmatched=1, uncovered=1, tainted=1),
    traced_equal=False,
    nonfinite_origin=Origin(site="main/5.0", op="softmax_1"),
    sites=[
        Site(
            id="main/5.0",
            dispatch="d5",
            op="softmax_1",
            ops=["softmax_1"],
            module="decoder.mid_block.attentions.0",
            location="unknown",
            dtype="f32",
            shape=[256, 256],
            match="uncovered",
            reason="no evaluation of iree_linalg_ext.attention",
            nonfinite_first=True,
        ),
        site(
            "main/6.0",
            "bmm_1",
            "decoder.mid_block.attentions.0",
            [256, 64],
            (0.0, 0.002, 0.0),
            "unmatched",
            tainted=True,
        ),
    ],
)

BROKEN = Variant(
    name="iree-preprocessing[bold red]x[/bold red]",
    passes=["iree-preprocessing[bold red]x[/bold red]"],
    pipeline="[bold red]x[/bold red]",
    flags=[],
    status="compile-failed",
    verdict="compile-failed",
    error=Failure(
        kind="compiler-error",
        message="'func.func' op exceeded stack allocation limit\n  see %12 = linalg.conv",
        location="convolution_4",
    ),
)

SAME = Variant(
    name="generalize",
    passes=["generalize"],
    pipeline="p",
    flags=["--flag"],
    status="same-as",
    same_as="baseline",
    verdict="no-effect",
    reason="the pass changed nothing",
    ops_changed=0,
    output=BASELINE.output,
)


@pytest.fixture
def report() -> Report:
    return Report(
        tool=Tool(name="numtrace", version="0.1.0"),
        environment=Environment(
            iree_compiler="3.13.0",
            iree_runtime="3.13.0",
            torch="2.13.0",
            cpu="AMD EPYC 7B13",
            flush_denormals=True,
            threads=2,
        ),
        model=Model(
            path="sdxl-vae-tiny",
            sha256="0" * 64,
            function="main",
            inputs=[Input(shape=[1, 4, 16, 16], dtype="f32", source="seed 0")],
        ),
        target=Target(
            backend="llvm-cpu", device="local-task", cpu="host", flags=["--iree-opt-const-eval=false"]
        ),
        reference=Reference(kind="torch", dtype="f64", golden_max_abs=1.99e-5),
        tolerance=None,
        notices=["--iree-flow-collapse-reduction-dims is unknown to IREE 3.13.0 and was dropped"],
        planned=7,
        variants=[BASELINE, BF16, WINOGRAD, BOTH, BROKEN, SAME],
    )

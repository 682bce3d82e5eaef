import json

import msgspec
import numpy as np
import pytest

from numtrace.dumps.schema import (
    Environment,
    Model,
    Output,
    Reference,
    Report,
    SemanticSplit,
    Site,
    Split,
    Target,
    Term,
    Tool,
    Variant,
    decode,
    encode,
    encode_line,
    finite,
    json_schema,
)
from numtrace.errors import UsageError

NAN, INF = float("nan"), float("inf")


def make_site(**more):
    fields = {
        "id": "main/0.0",
        "dispatch": "d",
        "op": "mul",
        "ops": ["mul"],
        "module": "m",
        "location": "l",
        "dtype": "f32",
        "shape": [2],
        "match": "verified",
    }
    return Site(**{**fields, **more})


def make_report(sites=(), **variant):
    fields = {"name": "v", "passes": [], "pipeline": None, "flags": [], "status": "ran"}
    return Report(
        tool=Tool(name="numtrace", version="0"),
        environment=Environment(
            iree_compiler="1", iree_runtime="1", torch="2", cpu="c", flush_denormals=None, threads=None
        ),
        model=Model(path="m", sha256="", function="main", inputs=[]),
        target=Target(backend="llvm-cpu", device="local-task"),
        reference=Reference(kind="torch", dtype="f64"),
        tolerance=None,
        notices=[],
        planned=1,
        variants=[Variant(**{**fields, "sites": list(sites), **variant})],
    )


def test_keys_of_the_design_document():
    split = Split(semantic=SemanticSplit(max_abs=1.0, pass_=0.5))
    data = json.loads(encode(make_report([make_site()], output=Output(max_abs=0.25), split=split)))
    assert list(data)[:2] == ["format", "version"]
    assert (data["format"], data["version"]) == ("numtrace.report", 1)
    assert set(data) >= {"tool", "environment", "model", "reference", "tolerance", "variants"}
    variant = data["variants"][0]
    assert variant["split"]["semantic"] == {"max_abs": 1.0, "pass": 0.5, "lowering": None, "constant": None}
    assert variant["output"]["max_abs"] == 0.25
    assert variant["output"]["psnr_db"] is None


def test_parts_of_later_work_are_absent_until_set():
    data = json.loads(encode(make_report([make_site()])))
    variant, site = data["variants"][0], data["variants"][0]["sites"][0]
    assert "budget" not in variant
    assert "share" not in site
    assert site["total"] is None and site["codegen"] is None  # a part that was not computed is null
    assert json.loads(encode_line(make_site(share=0.5)))["share"] == 0.5


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_nan_and_inf_never_get_in(value):
    report = make_report([make_site(), make_site(total=Term(max_abs=value))])
    with pytest.raises(ValueError, match=r"variants\[0\]\.sites\[1\]\.total\.max_abs is"):
        encode(report)
    with pytest.raises(ValueError, match=r"output\.psnr_db is"):
        encode(make_report(output=Output(max_abs=0.0, psnr_db=value)))
    with pytest.raises(ValueError, match="additivity is"):
        encode_line(make_site(additivity=value))


def test_finite():
    assert [finite(v) for v in (1.5, NAN, INF, None, 0)] == [1.5, None, None, None, 0.0]
    assert type(finite(np.float32(0.5))) is float


def test_values_of_a_wrong_type_are_refused_when_written():
    with pytest.raises(TypeError):
        encode(make_report(output=Output(max_abs=np.float64(1.0))))
    with pytest.raises(msgspec.ValidationError, match="match"):
        encode(make_report([make_site(match="certain")]))


def test_round_trip_and_determinism():
    report = make_report([make_site(total=Term(max_abs=1e-5, at=[1]))], files={"b": "2", "a": "1"})
    data = encode(report)
    assert decode(data) == report
    other = make_report([make_site(total=Term(max_abs=1e-5, at=[1]))], files={"a": "1", "b": "2"})
    assert encode(other) == data
    assert data.endswith(b"}\n")
    assert data.startswith(b'{\n  "format": "numtrace.report",\n  "version": 1,\n')


def test_a_float_survives_exactly():
    for value in (0.1, 5e-324, 1.7976931348623157e308, 1 / 3):
        assert decode(encode(make_report(output=Output(max_abs=value)))).variants[0].output.max_abs == value


def test_a_line_is_one_line():
    assert encode_line(make_site(location="a\nb")).count(b"\n") == 1


def test_file_names_that_are_not_utf8_do_not_stop_the_report():
    name = b"caf\xe9.mlir".decode("utf-8", "surrogateescape")
    report = msgspec.structs.replace(make_report(), notices=[name])
    assert decode(encode(report)).notices == ["caf\\udce9.mlir"]


def test_unknown_keys_are_ignored():
    data = json.loads(encode(make_report()))
    data["later"] = {"x": 1}
    assert decode(json.dumps(data).encode()) == make_report()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "r.json is not complete JSON"),
        (encode(make_report())[:-20], "r.json is not complete JSON"),
        (b"\xff\xfe", "r.json is not complete JSON"),
        (b"[]", "not a numtrace report"),
        (b'{"format": "other", "version": 1}', "not a numtrace report"),
        (b'{"format": "numtrace.report", "version": 2}', "version 2 .* reads version 1"),
        (
            b'{"format": "numtrace.report", "version": 1}',
            "does not follow the schema.*missing required",
        ),
    ],
)
def test_decode_says_what_is_wrong(data, message):
    with pytest.raises(UsageError, match=message):
        decode(data, "r.json")


def test_json_schema_describes_the_document():
    schema = json_schema()
    assert schema["$ref"] == "#/$defs/Report"
    site = schema["$defs"]["Site"]
    assert "match" in site["required"] and "rounding" not in site["required"]
    json.dumps(schema)

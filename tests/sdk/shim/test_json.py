"""The library's reader of JSON finds what the C SDK's finds, which is cJSON."""
import json
import random
import subprocess

import pytest

from conftest import ROOT

VALID = ["{}", "[]", "null", "true", "false", "0", "-1.5e3", "1E5", '""', '"a"', ' [ 1 , 2 ,[3]] ', '{"a":{"b":[1,{"c":null}]},"d":"\\u00e9\\ud83d\\ude00\\n\\\\\\"\\/"}',
         '{"a":1,"a":2}', "18446744073709551615", '"18446744073709551615"', '"18446744073709551616"', "9007199254740992", "9007199254740993", '"12a"', '"\u00e9"', "[" * 60 + "]" * 60,
         *(path.read_text() for path in sorted((ROOT / "openapi" / "examples").glob("*.json")))]
INVALID = ["", " ", "{", "[1,]", '{"a"}', '{"a":}', "{1:2}", '"', '"\\x"', '"\\ud800"', '"\\udc00"', "tru", "nul", "1 2", "[1]]", "{,}", "'a'", "[" * 100000, '{"a":' * 100000]


@pytest.fixture
def read(build):
    def run(reader, data):
        program = build / "tests" / "sdk" / "shim" / "programs" / f"json_{reader}"
        done = subprocess.run([program], input=data, capture_output=True, timeout=120)
        assert done.returncode == 0 and not done.stderr, done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize("text", VALID)
def test_both_find_the_same(read, text):
    found = read("sdk_shim_src", text.encode())
    assert found.startswith(b"valid") and found == read("sdk_c_src_base", text.encode())


@pytest.mark.parametrize("text", INVALID)
def test_invalid_texts_are_refused(read, text):
    assert read("sdk_shim_src", text.encode()) == b"invalid\n"


def test_damaged_texts_do_no_harm(read):
    """Cut and changed anywhere: it is refused, or read without touching what is not its own, which a build with sanitizers finds."""
    text, rng = json.dumps(json.loads((ROOT / "openapi" / "examples" / "devices_list.200.json").read_text())).encode(), random.Random(7)
    for _ in range(150):
        damaged = bytearray(text[: rng.randrange(len(text))] if rng.random() < 0.5 else text)
        for _ in range(rng.randrange(4)):
            damaged[rng.randrange(len(damaged))] = rng.choice(b'{}[]",:\\u0\0\xff')
        assert read("sdk_shim_src", bytes(damaged)).split(b"\n")[0] in (b"valid", b"invalid")

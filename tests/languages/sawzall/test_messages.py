"""Types from files of protocol buffers."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from millstream.errors import MillstreamError
from tests.languages.sawzall.programs import printed, run_text

HITS = """
// Hits of a server.
syntax = "proto2";
package logs.v1;
import "place.proto";
option java_package = "x.y";
message Hit {
  enum Kind { option allow_alias = true; GET = 0; POST = 1; PUT = 0x2; }
  message Part {
    optional string name = 1; repeated sint32 steps = 2 [packed=true]; repeated Part parts = 3;
  }
  required int64 time_usec = 1;
  optional Kind kind = 2 [default = POST];
  repeated Part part = 3;
  optional string host = 4 [default = "lo\\"cal", deprecated = true];
  optional float ratio = 5; optional fixed32 ip = 6;
  optional logs.v1.Place place = 7;
  oneof who { string user = 8; bytes key = 9; }
  map<string, int32> counts = 10;
  optional bool ok = 11 [default = true];
  reserved 20 to 30; reserved "old"; extensions 100 to 199;
}
service S { rpc Ask(Hit) returns (Hit) { option (a) = "b"; } }
"""
PLACE = "message Place { optional double lat = 1; optional double lon = 2; }"
PROGRAM = """
proto "hits.proto"
kinds: table sum[kind: int] of int;
h: Hit = bytes(string(input), "hex");
emit kinds[h.kind] <- 1;
if (h.kind == Hit.PUT)
  emit stdout <- h.host + format(" %g %d %g %s", h.ratio, int(h.ip), h.place.lat, h.user);
when (i: each int; def(h.part[i]))
  emit stdout <- h.part[i].name + string(h.part[i].steps) + string(len(h.part[i].parts));
emit stdout <- string(inproto(h.host)) + string(h.ok) + string(h.counts) + string(h.time_usec);
p: Hit.Part = {"n", {1}, {}};
"""


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_messages_of_a_file_are_types(tmp_path: Path, engine: str) -> None:
    (tmp_path / "hits.proto").write_text(HITS)
    (tmp_path / "place.proto").write_text(PLACE)
    full = b"\x08\x05\x10\x02\x1a\x0b\x0a\x03abc\x12\x02\x01\x04\x1a\x00"
    full += b"\x2d" + struct.pack("<f", 1.5) + b"\x35" + struct.pack("<I", 7)
    full += b"\x3a\x09\x09" + struct.pack("<d", 2.25) + b"\x42\x02me\x52\x05\x0a\x01k\x10\x05"
    expected = (
        'lo"cal 1.5 7 2.25 me\nabc{ -1, 2 }1\nfalsetrue{ { "k", 5 } }5\nfalsetrue{}0\n'
        "kinds[1] = 1\nkinds[2] = 1\n"
    )
    assert expected == printed(run_text(tmp_path, PROGRAM, [full.hex(), ""], engine=engine))


def test_all_that_is_wrong_with_a_file_is_told_at_once(tmp_path: Path) -> None:
    text = (
        "message A { optional Nothing n = 1; optional A a = 2; int32 x 3; optional int32 y = 4; }"
    )
    (tmp_path / "bad.proto").write_text(text)
    with pytest.raises(MillstreamError) as caught:
        run_text(tmp_path, 'proto "bad.proto"\na: A;\nemit stdout <- a.y;')
    told = str(caught.value)
    for reason in ('unknown type "Nothing"', 'a "A" that contains itself', "expected `=`, got `3`"):
        assert reason in told
    assert "of type string, got int" in told


@pytest.mark.parametrize("name", ["../up.proto", "none.proto"])
def test_file_that_cannot_be_had_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path.parent / "up.proto").write_text(PLACE)
    with pytest.raises(MillstreamError, match=r"outside of the project|there is no file"):
        run_text(tmp_path, f'proto "{name}"\nemit stdout <- "a";')


def test_fields_travel_as_they_are_declared(tmp_path: Path) -> None:
    text = """
        type T = {a: int @ 1: sint64, b: uint @ 2: fixed32, c: float @ 3: float,
                  d: array of int @ 4: sfixed64};
        t: T = {-2, 5u, 0.5, {-1}};
        emit stdout <- string(bytes(t), "hex");
        back: T = bytes(t);
        assert(back == t);
    """
    expected = "08031505000000" + "1d0000003f" + "21" + "ff" * 8
    assert f"{expected}\n" == printed(run_text(tmp_path, text))


def test_unknown_way_to_travel_is_refused(tmp_path: Path) -> None:
    for wire, said in (("sint23", "unknown encoding"), ("float", "does not travel as float")):
        with pytest.raises(MillstreamError, match=said):
            run_text(tmp_path, f"type T = {{a: int @ 1: {wire}}}; assert(true);")

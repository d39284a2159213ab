"""Reading object files: the committed ones, and whatever else somebody may put in their place."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import bpf, bpf_elf, bpf_layout, bpf_object
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.bpf import BpfError

BUILT = ROOT / "files" / "bpf" / "built"
CONTENT = {path.stem: path.read_bytes() for path in sorted(BUILT.glob("*.o"))}
VARIANTS = sorted(CONTENT)
# Map -> what its values are.
VALUES = {
    "by_cgroup": "member",
    "by_classid": "member",
    "by_device": "member",
    "by_prefix4": "member",
    "by_prefix6": "member",
    "class_configs": "class_config",
    "class_states": "class_state",
    "class_stats": "stats",
    "devices": "device",
    "events": "event",
    "meta": "meta",
    "pool_configs": "pool_config",
    "pool_states": "pool_state",
}


def parsed(variant: str) -> tuple[bpf_elf.ObjectFile, bpf_layout.Layout]:
    parts = bpf_elf.parse(CONTENT[variant])
    return parts, bpf_layout.parse(parts.layout)


@pytest.mark.parametrize("variant", VARIANTS)
def test_maps_hold_the_structures_that_the_object_describes(variant: str) -> None:
    parts, layout = parsed(variant)
    sizes = {item.name: item.value_size for item in parts.maps}
    assert {name: layout[structure].size for name, structure in VALUES.items()} == {
        name: sizes[name] for name in VALUES
    }
    assert sizes["pool_shards"] == layout["shard"].size * layout.constant("SHARDS")
    assert sizes["sockets"] == 8
    assert set(sizes) == {*VALUES, "pool_shards", "sockets"}


@pytest.mark.parametrize("variant", VARIANTS)
def test_fields_neither_overlap_nor_leave_gaps(variant: str) -> None:
    for structure in parsed(variant)[1].structures.values():
        end = 0
        for field in sorted(structure.fields.values(), key=lambda item: item.offset):
            assert field.offset == end, structure.name
            end += field.size * field.count
        assert end == structure.size, structure.name


def test_states_of_two_cpus_never_share_a_cache_line() -> None:
    layout = parsed("atomic")[1]
    assert layout["class_state"].size == 64
    assert layout["shard"].size % 64 == 0
    assert layout["pool_state"].fields["window_start"].offset == 64


def test_variants_differ_in_code_only() -> None:
    assert VARIANTS == ["atomic", "spin"]
    (first, layout), (second, other) = parsed("atomic"), parsed("spin")
    assert layout == other
    assert first.maps == second.maps
    assert (
        [item.name for item in first.programs]
        == [item.name for item in second.programs]
        == ["shape", "police", "stamp", "learn", "divert"]
    )
    assert first.license == "GPL"


def test_maps_stay_below_two_mebibytes() -> None:
    parts = parsed("atomic")[0]
    fixed = sum(item.value_size * item.max_entries for item in parts.maps if item.type in (bpf.ARRAY, bpf.PERCPU_ARRAY))
    assert fixed < 512 * 1024


@given(st.binary(max_size=300))
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(BpfError, match="is not a BPF object of this collection"):
        bpf_elf.parse(data)


@given(st.integers(0, len(CONTENT["atomic"]) - 1), st.integers(0, 255))
def test_a_damaged_object_is_refused_or_still_whole(place: int, value: int) -> None:
    data = bytearray(CONTENT["atomic"])
    data[place] = value
    try:
        found = bpf_elf.parse(bytes(data))
        bpf_layout.parse(found.layout)
    except BpfError:
        return
    assert found.programs


@given(st.integers(0, len(CONTENT["atomic"]) - 1))
def test_an_object_that_is_cut_short_is_refused(size: int) -> None:
    with pytest.raises(BpfError):
        bpf_elf.parse(CONTENT["atomic"][:size])


def test_an_object_of_another_layout_is_refused() -> None:
    parts, layout = parsed("atomic")
    assert layout.constant("LAYOUT_VERSION") == bpf_layout.VERSION
    place = parts.layout.index(b"=LAYOUT_VERSION\0") + 40
    other = parts.layout[:place] + struct.pack("<I", 99) + parts.layout[place + 4 :]
    wanted = f"BPF object: is of layout 99, but this code works with {bpf_layout.VERSION}; install"
    with pytest.raises(BpfError, match=wanted):
        bpf_layout.parse(other)


def test_a_layout_that_is_cut_short_or_leads_outside_is_refused() -> None:
    data = parsed("atomic")[0].layout
    with pytest.raises(BpfError, match="is cut short"):
        bpf_layout.parse(data[:-1])
    place = data.index(b"meta.generation\0") + 40
    with pytest.raises(BpfError, match=r"meta\.generation lies outside"):
        bpf_layout.parse(data[:place] + struct.pack("<I", 4096) + data[place + 4 :])


@given(st.data())
def test_values_survive_packing(data: st.DataObject) -> None:
    for structure in parsed("atomic")[1].structures.values():
        values = {}
        for name, field in structure.fields.items():
            numbers = st.integers(0, 256**field.size - 1)
            values[name] = data.draw(
                numbers if field.count == 1 else st.lists(numbers, min_size=field.count, max_size=field.count)
            )
        assert structure.unpack(structure.pack(values)) == values


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"limit": -1}, r"class_config\.limit: -1 does not fit into 8 bytes"),
        ({"level": 256}, r"class_config\.level: 256 does not fit into 1 bytes"),
        ({"nothing": 1}, r"class_config\.nothing: is not a field with 1 numbers"),
        ({"limit": [1, 2]}, r"class_config\.limit: is not a field with 2 numbers"),
    ],
)
def test_values_that_do_not_fit_are_refused(values: dict[str, int], text: str) -> None:
    with pytest.raises(BpfError, match=text):
        parsed("atomic")[1]["class_config"].pack(values)


def test_unknown_names_and_short_values_are_refused() -> None:
    layout = parsed("atomic")[1]
    for call in (lambda: layout["nothing"], lambda: layout.constant("NOTHING"), lambda: layout["meta"].unpack(b"")):
        with pytest.raises(BpfError):
            call()
    with pytest.raises(BpfError, match=r"meta\.order: is an array"):
        layout["meta"].number(b"\0" * layout["meta"].size, "order")


def test_calls_of_a_helper_are_replaced_by_zero() -> None:
    code = next(item.instructions for item in parsed("atomic")[0].programs if item.name == "shape")
    assert 151 in bpf_object.calls(code)
    without = bpf_object.without_calls(code, [151])
    assert bpf_object.calls(code) - bpf_object.calls(without) == {151}
    changed = [
        pair
        for pair in zip(bpf_object.instructions(code), bpf_object.instructions(without), strict=True)
        if pair[0] != pair[1]
    ]
    assert changed
    assert {after for _, after in changed} == {(0xB7, 0, 0, 0)}


def test_a_map_that_is_missing_is_named() -> None:
    program = next(item for item in parsed("atomic")[0].programs if item.name == "stamp")
    with pytest.raises(BpfError, match="program stamp: does not load map"):
        bpf_object.with_maps(program, {})


def test_an_instance_of_another_layout_is_not_reused() -> None:
    maps = {"meta": bpf.Map("meta", -1, bpf.ARRAY, 4, 8, 1)}
    with pytest.raises(BpfError, match="map meta: exists with another layout; remove the bandwidth instance"):
        bpf_object.load(CONTENT["atomic"], reused=maps, probe=lambda code: True)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_helper_beyond_the_oldest_kernel_is_optional(variant: str) -> None:
    """Numbers grow with time: 98 is the last of Linux 5.1, the oldest kernel that one of the variants is for."""
    called = {number for item in parsed(variant)[0].programs for number in bpf_object.calls(item.instructions)}
    optional = {number for item in bpf_object.OPTIONAL for number in item.helpers} | set(bpf_object.MAP_HELPERS)
    newer = {number for number in called if number > 98}
    assert newer
    assert newer <= optional


def test_no_variant_at_all_is_an_error() -> None:
    with pytest.raises(BpfError, match="no variant"):
        bpf_object.load_first([])


def test_type_information_of_a_lock_has_the_kernels_form() -> None:
    data = bpf.lock_btf(64, 0)
    magic, version, _flags, header, _start, types, strings_start, strings = struct.unpack_from("<HBBIIIII", data)
    assert (magic, version, header, types) == (0xEB9F, 1, 24, strings_start)
    assert len(data) == header + types + strings


def test_committed_objects_name_no_place_on_a_machine() -> None:
    for path in sorted(Path(BUILT).glob("*.o")):
        assert str(ROOT).encode() not in path.read_bytes()
        assert b"/usr/" not in path.read_bytes()

"""A file comes back bit for bit or not at all, runs no code, and replaces another only when it is complete."""

from __future__ import annotations

import hashlib
import io as memory
import json
import os
import pickle
import zipfile
from typing import Any

import numpy as np
import pytest

import rflvm
from rflvm.files import npz
from rflvm.files.npz import FileError

HEADER: dict[str, Any] = {"kind": "model", "names": ["a", "b"], "scale": 0.1, "nothing": None}


def some_arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "double": rng.normal(size=(4, 3)),
        "single": rng.normal(size=(2, 3, 2)).astype(np.float32),
        "int": rng.integers(0, 9, size=7).astype(np.int32),
        "bool": rng.random((3, 3)) > 0.5,
        "number": np.asarray(1.5),
        "empty": np.zeros((0, 3)),
        "columns": np.asfortranarray(rng.normal(size=(4, 3))),
        "every other": rng.normal(size=(2, 6))[:, ::2],
        "not finite": np.asarray([np.nan, np.inf, -0.0]),
    }


def assert_same(header, arrays):
    assert header == HEADER
    expected = some_arrays()
    assert arrays.keys() == expected.keys()
    for name, array in arrays.items():
        assert (array.dtype, array.shape) == (expected[name].dtype, expected[name].shape)
        assert array.tobytes() == expected[name].tobytes()


@pytest.fixture
def path(tmp_path):
    """A file as it should be."""
    path = tmp_path / "some.npz"
    npz.write(path, HEADER, some_arrays())
    return path


def members(path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path, content: dict[str, bytes], compression=zipfile.ZIP_STORED):
    """A zip that is sound, whatever is in it."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def with_header(content: dict[str, bytes], **changes: Any) -> dict[str, bytes]:
    """Another header, with the digest to match: what a forger would do."""
    text = json.dumps(json.loads(content["header.json"]) | changes).encode()
    return content | {"header.json": text, "digest": hashlib.sha256(text).hexdigest().encode()}


def test_everything_comes_back(path):
    header, arrays = npz.read(path, "model")
    assert_same(header, arrays)
    assert arrays["columns"].flags.f_contiguous
    assert all(array.flags.writeable for array in arrays.values())


def test_numpy_reads_it_too(path):
    with np.load(path, allow_pickle=False) as file:
        for name, array in some_arrays().items():
            np.testing.assert_array_equal(file[name], array)


def test_the_header_says_who_wrote_it_and_what_it_is(path):
    about = json.loads(members(path)["header.json"])
    assert (about["format"], about["rflvm"], about["kind"]) == (npz.FORMAT, rflvm.__version__, "model")


def test_the_same_content_makes_the_same_file(path, tmp_path):
    npz.write(tmp_path / "other.npz", HEADER, some_arrays())
    assert (tmp_path / "other.npz").read_bytes() == path.read_bytes()


def corrupted(rng, original: bytes, path) -> None:
    """One of four kinds of damage."""
    data = bytearray(original)
    at = int(rng.integers(len(data)))
    kind = rng.integers(4)
    if kind == 0:
        data = data[:at]
    elif kind == 1:
        data[at] ^= 1 << int(rng.integers(8))
    elif kind == 2:
        n = int(rng.integers(1, 64))
        data[at : at + n] = rng.bytes(n)
    path.write_bytes(data)
    if kind == 3:
        path.write_bytes(original)
        content = members(path)
        a, b = rng.choice(list(content), 2, replace=False)
        content[a], content[b] = content[b], content[a]
        rewrite(path, content)


def test_a_damaged_file_is_refused_or_comes_back_bit_for_bit(path):
    original = path.read_bytes()
    rng = np.random.default_rng(1)
    messages = []
    for _ in range(100):
        corrupted(rng, original, path)
        try:
            header, arrays = npz.read(path, "model")
        except FileError as error:
            messages.append(str(error))
        else:
            assert_same(header, arrays)
    assert len(messages) > 80
    assert all("some.npz" in message and "\n" not in message for message in messages)


def test_every_bit_of_the_numbers_is_watched(path):
    """Also where the checksums of the zip were made to match."""
    content = members(path)
    for name in some_arrays():
        member = bytearray(content[f"{name}.npy"])
        if name != "empty":
            member[-1] ^= 1
            rewrite(path, content | {f"{name}.npy": bytes(member)})
            with pytest.raises(FileError, match="does not match its digest"):
                npz.read(path, "model")


def test_rows_are_not_taken_for_columns(path):
    content = members(path)
    turned = content["double.npy"].replace(b"'fortran_order': False", b"'fortran_order': True ")
    assert turned != content["double.npy"]
    rewrite(path, content | {"double.npy": turned})
    with pytest.raises(FileError, match="double does not match"):
        npz.read(path, "model")


class Marker:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def pickled(payload) -> bytes:
    """An array of objects as NumPy writes it."""
    buffer = memory.BytesIO()
    np.lib.format.write_array(buffer, np.asarray([payload], object), allow_pickle=True)
    return buffer.getvalue()


def test_a_pickled_array_is_not_unpickled(path, tmp_path):
    mark = tmp_path / "mark"
    hostile = pickled(Marker(mark))
    content = members(path)
    about = json.loads(content["header.json"])
    entry = {"dtype": "|O", "shape": [1], "order": "C", "sha256": ""}
    forged = with_header(content, arrays=about["arrays"] | {"double": entry})
    for files in (content | {"double.npy": hostile}, forged | {"double.npy": hostile}):
        rewrite(path, files)
        with pytest.raises(FileError, match="dtype object"):
            npz.read(path, "model")
    rewrite(path, content | {"header.json": pickle.dumps(Marker(mark))})
    with pytest.raises(FileError):
        npz.read(path, "model")
    assert not mark.exists()


def test_objects_are_not_written(tmp_path):
    with pytest.raises(TypeError, match="words must be an array of numbers"):
        npz.write(tmp_path / "x.npz", HEADER, {"words": np.asarray(["a", None], object)})
    assert not list(tmp_path.iterdir())


def test_another_version_is_named(path):
    rewrite(path, with_header(members(path), format=3, rflvm="9.9"))
    with pytest.raises(FileError, match=rf"format 3, written by .* 9.9; .* up to format {npz.FORMAT}: upgrade"):
        npz.read(path, "model")


def test_another_kind_is_named(path):
    with pytest.raises(FileError, match=r"some\.npz holds a model, not a checkpoint"):
        npz.read(path, "checkpoint")


def test_compressed_members_are_refused(path):
    content = members(path)
    rewrite(path, content | {"double.npy": content["double.npy"] + bytes(10**7)}, zipfile.ZIP_DEFLATED)
    with pytest.raises(FileError, match="compressed"):
        npz.read(path, "model")


def test_members_that_are_missing_or_not_listed_are_refused(path):
    content = members(path)
    for files in (content | {"more.npy": b""}, {name: content[name] for name in content if name != "int.npy"}):
        rewrite(path, files)
        with pytest.raises(FileError, match="members are not those"):
            npz.read(path, "model")
    rewrite(path, content)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("int.npy", content["int.npy"])
    with pytest.raises(FileError, match="members are not those"):
        npz.read(path, "model")


def test_a_shape_that_asks_for_more_than_there_is_is_refused(path):
    content = members(path)
    huge = content["double.npy"].replace(b"(4, 3), }           ", b"(4000000, 3000000), }")[
        : len(content["double.npy"])
    ]
    about = json.loads(content["header.json"])
    entry = about["arrays"]["double"] | {"shape": [4_000_000, 3_000_000]}
    rewrite(path, with_header(content | {"double.npy": huge}, arrays=about["arrays"] | {"double": entry}))
    with pytest.raises(FileError, match="not as long as its shape"):
        npz.read(path, "model")


@pytest.mark.parametrize("header", [b"[]", b"{}", b"[" * 100_000, b"\xff", b'{"format": 1, "kind": "model"}'])
def test_a_header_that_is_something_else_is_refused(path, header):
    rewrite(path, {"header.json": header, "digest": hashlib.sha256(header).hexdigest().encode()})
    with pytest.raises(FileError):
        npz.read(path, "model")


def test_what_is_not_a_file_of_ours_is_refused(path):
    for content in (b"", b"a,b\n1,2\n", bytes(1000)):
        path.write_bytes(content)
        with pytest.raises(FileError, match="not written by rflvm"):
            npz.read(path, "model")


def test_a_missing_file_is_just_that(tmp_path):
    with pytest.raises(FileNotFoundError):
        npz.read(tmp_path / "none.npz", "model")


@pytest.mark.parametrize("name", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_nothing_else(path, monkeypatch, name, error):
    def fail(*arguments):
        raise error("no space left")

    monkeypatch.setattr(os, name, fail)
    with pytest.raises(error):
        npz.write(path, {"kind": "model"}, {"x": np.zeros(3)})
    assert_same(*npz.read(path, "model"))
    assert list(path.parent.iterdir()) == [path]


def test_a_failure_within_an_array_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    def fail(member, array, allow_pickle):
        member.write(b"half of ")
        raise OSError("no space left")

    monkeypatch.setattr(npz.npy, "write_array", fail)
    with pytest.raises(OSError, match="no space left"):
        npz.write(path, {"kind": "model"}, {"x": np.zeros(3)})
    assert_same(*npz.read(path, "model"))
    assert list(path.parent.iterdir()) == [path]

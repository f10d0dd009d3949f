"""One file that holds arrays and a JSON header: an uncompressed ``.npz`` which ``numpy.load`` reads too.

Next to the arrays it has ``header.json``, with dtype, shape, order and SHA-256 of each of them, and ``digest``, the
SHA-256 of that header. A file is written whole or not at all, and reading one runs no code and believes no size.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import secrets
import zipfile
from collections.abc import Iterator
from importlib.metadata import version
from io import BufferedReader, BufferedWriter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

# What is written, and what can be read. In format 2 a model may have units, without which it must not be read.
FORMAT, FORMATS = 2, (1, 2)
TEMPORARY = ".tmp"
_NUMBERS = "biuf"  # kinds of dtype: bool, integers, floats
_LONGEST_NPY_HEADER = 1000


class FileError(ValueError):
    """A file that is damaged, hostile, of another kind or from a later version; the message says what to do."""


def write(path: str | os.PathLike, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a file, replacing the one at ``path`` only when all of the new one is on disk.

    Parameters
    ----------
    path : str or PathLike
        Where to, suffix included.
    header : dict
        What JSON can hold; ``header["kind"]`` says what the file is and is asked for by ``read``.
    arrays : dict
        Arrays of numbers by name.
    """
    path = Path(path)
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in arrays.items():
        if array.dtype.kind not in _NUMBERS:
            raise TypeError(f"{name} must be an array of numbers to be written to {path}, got {array.dtype}")
    about = {"format": FORMAT, "rflvm": version("rflvm"), "kind": header["kind"], "header": header}
    text = json.dumps(about | {"arrays": {name: _entry(array) for name, array in arrays.items()}}).encode()
    with _replaced(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in (("header.json", text), ("digest", _sha256(text).encode())):
            with archive.open(name, "w") as member:
                member.write(content)
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, array, allow_pickle=False)


def write_text(path: str | os.PathLike, text: str) -> None:
    """Write a text file in UTF-8, replacing the one at ``path`` only when all of the new one is on disk."""
    with _replaced(Path(path)) as file:
        file.write(text.encode())


@contextlib.contextmanager
def _replaced(path: Path) -> Iterator[BufferedWriter]:
    """A file beside ``path`` that takes its place at the end, or is removed if the end is not reached."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read(path: str | os.PathLike, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays that ``write`` was given.

    Raises
    ------
    FileError
        When the content is not, to the last bit, what was written, or not of this kind.
    """
    with Path(path).open("rb") as file:
        try:
            return _read(file, str(path), kind)
        except (FileError, MemoryError):
            raise
        except Exception as error:  # zipfile, json and numpy have a dozen ways to stumble over a damaged file
            why = " ".join(str(error).split()) or type(error).__name__
            raise FileError(
                f"{path} is damaged or was not written by rflvm ({why}): take another copy of it or make it again"
            ) from error


def digest(array: np.ndarray) -> str:
    """SHA-256 of the numbers of an array, row by row."""
    return _sha256(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _sha256(content: bytes | memoryview) -> str:
    return hashlib.sha256(content).hexdigest()


def _entry(array: np.ndarray) -> dict[str, Any]:
    """What the header says of an array."""
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    return {"dtype": array.dtype.str, "shape": list(array.shape), "order": order, "sha256": digest(array)}


def _read(file: BufferedReader, path: str, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    size = os.fstat(file.fileno()).st_size
    with zipfile.ZipFile(file) as archive:
        with _stored(archive, "header.json", size) as member:
            text = member.read()
        with _stored(archive, "digest", size) as member:
            if member.read() != _sha256(text).encode():
                raise ValueError("the header does not match its digest")
        about = json.loads(text)
        if about["format"] not in FORMATS:
            raise FileError(
                f"{path} has format {about['format']}, written by rflvm {about.get('rflvm')}; rflvm "
                f"{version('rflvm')} reads up to format {FORMAT}: upgrade rflvm"
            )
        if about["kind"] != kind:
            raise FileError(f"{path} holds a {about['kind']}, not a {kind}: give the path of a {kind}")
        expected = sorted(["header.json", "digest", *(f"{name}.npy" for name in about["arrays"])])
        if sorted(archive.namelist()) != expected:
            raise ValueError("its members are not those that the header lists")
        # Members that overlap could add up to more than there is.
        if sum(info.file_size for info in archive.infolist()) > size:
            raise ValueError("its members are larger than the file")
        arrays = {}
        for name, entry in about["arrays"].items():
            with _stored(archive, f"{name}.npy", size) as member:
                arrays[name] = _read_array(member, archive.getinfo(f"{name}.npy").file_size, entry)
            if _entry(arrays[name]) != entry:
                raise ValueError(f"{name} does not match its digest")
    return about["header"], arrays


def _stored(archive: zipfile.ZipFile, name: str, size: int) -> zipfile.ZipExtFile:
    """A member, if it is as large as it says: not compressed, and no larger than the file."""
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size or info.file_size > size:
        raise ValueError(f"{name} is compressed")
    return archive.open(info)  # pyright: ignore[reportReturnType]


def _read_array(member: zipfile.ZipExtFile, size: int, entry: dict[str, Any]) -> np.ndarray:
    if npy.read_magic(member) != (1, 0):
        raise ValueError("an array has another version of the npy format")
    shape, _, dtype = npy.read_array_header_1_0(member, max_header_size=_LONGEST_NPY_HEADER)
    if dtype.kind not in _NUMBERS or dtype.str != entry["dtype"]:
        raise ValueError(f"an array of dtype {dtype} where the header has {entry['dtype']}")
    if math.prod(shape) * dtype.itemsize != size - member.tell():  # before any memory is asked for
        raise ValueError("an array is not as long as its shape")
    member.seek(0)
    return npy.read_array(member, allow_pickle=False, max_header_size=_LONGEST_NPY_HEADER)

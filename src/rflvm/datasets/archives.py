"""Archives read in memory. Nothing is ever written, so a member's name cannot lead anywhere; sizes are bounded."""

from __future__ import annotations

import gzip
import hashlib
import tarfile
import zipfile
import zlib
from io import BytesIO

from ..files.npz import FileError

LARGEST = 2**26  # bytes that one archive may unpack to; the largest in use, MNIST, has 47 million


def unzip(content: bytes) -> dict[str, bytes]:
    """Files of a zip archive by name."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        infos = [info for info in archive.infolist() if not info.is_dir()]
        _check_size(sum(info.file_size for info in infos))
        _check_names([info.filename for info in infos])
        return {info.filename: archive.read(info) for info in infos}


def gunzip(content: bytes) -> bytes:
    """Content of a gzip file."""
    with gzip.open(BytesIO(content)) as file:
        unpacked = file.read(LARGEST + 1)
    _check_size(len(unpacked))
    return unpacked


def untar(content: bytes) -> dict[str, bytes]:
    """Files of a ``.tar.gz`` by name. Links, devices and sparse files, whose size is only declared, are refused."""
    unpacked = gunzip(content)
    files = []
    with tarfile.open(fileobj=BytesIO(unpacked), mode="r:") as archive:
        for member in archive:
            if member.isdir():
                continue
            if not member.isreg() or member.issparse():
                raise FileError(f"member {member.name!r} of an archive is not a plain file: take another copy of it")
            file = archive.extractfile(member)
            assert file is not None
            _check_size(member.size)
            files.append((member.name, file.read()))
    _check_names([name for name, _ in files])
    return dict(files)


def digest(name: str, content: bytes) -> str | None:
    """SHA-256 of what is inside of an archive, or None if it cannot be read.

    Of a ``.gz``: of the unpacked bytes. Of a ``.tar.gz``: of the lines that ``sha256sum`` prints for its files in the
    order of their names, so that the order of members, their owners and their dates do not matter.
    """
    try:
        if not name.endswith(".tar.gz"):
            return hashlib.sha256(gunzip(content)).hexdigest()
        lines = [f"{hashlib.sha256(file).hexdigest()}  {name}\n" for name, file in sorted(untar(content).items())]
        return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    except (FileError, OSError, EOFError, zlib.error, tarfile.TarError):
        return None


def _check_size(n_bytes: int) -> None:
    if n_bytes > LARGEST:
        raise FileError(f"an archive unpacks to more than {LARGEST} bytes: it is damaged or hostile, take another copy")


def _check_names(names: list[str]) -> None:
    if len(set(names)) < len(names):
        raise FileError("an archive has two members of one name: it is damaged or hostile, take another copy")

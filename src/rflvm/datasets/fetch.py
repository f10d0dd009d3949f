"""How a file is found: in a folder that the user names, or else downloaded once; checked by its digest either way."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ..files.npz import FileError
from . import archives
from .registry import SOURCES, File

FOLDER = "RFLVM_DATA"
LARGEST = 2**26  # bytes of a file before unpacking


def read(dataset: str, name: str, data_home: str | os.PathLike | None) -> bytes:
    """The content of a file, exactly as the registry has it.

    Parameters
    ----------
    dataset, name : str
        As in the registry.
    data_home : str, PathLike or None
        Folder with one subfolder per data set. None: the one that the environment variable RFLVM_DATA names, or
        else the file is downloaded to the user's cache.

    Raises
    ------
    FileNotFoundError
        When the folder does not have it, or it is not one that is downloaded; the message says where to get it.
    ConnectionError
        When it cannot be downloaded.
    FileError
        When it has another content.
    """
    file = SOURCES[dataset].files[name]
    folder = _folder(data_home)
    if folder is not None:
        path = Path(folder, dataset, name)
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not there: {_advice(dataset, name, named=True)}")
    elif file.url is not None:
        path = _download(dataset, name, file.url, file.sha256)
    else:
        raise FileNotFoundError(f"{name} is not downloaded: {_advice(dataset, name, named=False)}")
    n_bytes = path.stat().st_size
    content = path.read_bytes() if n_bytes <= LARGEST else None
    _check(path, content, n_bytes, file)
    assert content is not None
    return content


def locate(dataset: str, name: str) -> Path:
    """The path of a file that is in the folder which RFLVM_DATA names, or that was downloaded before.

    Raises
    ------
    FileNotFoundError
        When it is not there; the message says how to get it.
    """
    url, folder = SOURCES[dataset].files[name].url, _folder(None)
    if folder is not None:
        path, advice = Path(folder, dataset, name), _advice(dataset, name, named=True)
    elif url is None:
        raise FileNotFoundError(f"{name} is not downloaded: {_advice(dataset, name, named=False)}")
    else:
        _require_pooch(dataset, name, url)
        path, advice = _cache(dataset) / name, f"rflvm.datasets.load_{dataset}() downloads it from {url}"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there: {advice}")
    return path


def _folder(data_home: str | os.PathLike | None) -> str | os.PathLike | None:
    return data_home if data_home is not None else os.environ.get(FOLDER) or None


def _check(path: Path, content: bytes | None, n_bytes: int, file: File) -> None:
    """Raise unless the content is that of the registry."""
    sha256 = "not computed" if content is None else hashlib.sha256(content).hexdigest()
    if sha256 == file.sha256:
        return
    if content is not None and file.inside is not None and archives.digest(path.name, content) == file.inside:
        return
    raise FileError(
        f"{path} is not the file that it should be: expected SHA-256 {file.sha256} ({file.n_bytes} bytes), found "
        f"{sha256} ({n_bytes} bytes): replace it" + (f" by {file.url}" if file.url is not None else "")
    )


def _advice(dataset: str, name: str, named: bool) -> str:
    """What to do about a missing file."""
    source = SOURCES[dataset]
    url = source.files[name].url
    if url is not None:
        return f"put {url} there, or have it downloaded by naming no folder (data_home=None and no {FOLDER})"
    where = "there" if named else f"at <folder>/{dataset}/{name} and name the folder by data_home= or {FOLDER}"
    return f"{source.obtain}; put it {where}. Terms of use: {source.terms}"


def _download(dataset: str, name: str, url: str, sha256: str) -> Path:
    """The path of a file in the cache of the user, downloaded if it is not there."""
    _require_pooch(dataset, name, url)
    import pooch

    try:
        return Path(pooch.retrieve(url, known_hash=f"sha256:{sha256}", fname=name, path=_cache(dataset)))
    except OSError as error:  # what requests raises is one
        raise ConnectionError(
            f"{name} could not be downloaded ({type(error).__name__}): put {url} at <folder>/{dataset}/{name} and name "
            f"the folder by data_home= or {FOLDER}"
        ) from error


def _require_pooch(dataset: str, name: str, url: str) -> None:
    try:
        import pooch  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"downloading {name} needs pooch: pip install 'rflvm[datasets]', or put {url} at "
            f"<folder>/{dataset}/{name} and name the folder by data_home= or {FOLDER}"
        ) from error


def _cache(dataset: str) -> Path:
    """Where downloads go."""
    import pooch

    return Path(pooch.os_cache("rflvm")) / dataset

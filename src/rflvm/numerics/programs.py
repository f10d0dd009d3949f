"""Compiled programs kept on disk: what one process has compiled, the next one reads.

JAX has a cache for this, which takes a folder at its word. Here every process gives it a folder of its own, inside the
one that is kept, with links to the programs that are whole. What JAX adds to it is published at the end of the process:
written aside, then moved into place under a name that ends in its SHA-256, by which the next process knows it. So no
process sees a part of a program that another one is writing, and a damaged one is deleted and compiled anew. Programs
are kept apart by the versions of rflvm, jax and jaxlib and by the processor with its features, for machine code of one
may end another in an illegal instruction. What is kept is machine code that will run: the folder is the user's alone.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import platform
import shutil
import sys
import tempfile
import time
import zlib
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

MOST_BYTES = 2**28  # kept for one version and processor
OLDEST = 90 * 86_400.0  # seconds after which other versions and processors are forgotten
ABANDONED = 7 * 86_400.0  # seconds after which the folder of a process that was killed is removed
TEMPORARY = "process-"
DIGITS = 16  # of the name of the folder for a version and processor
ZSTANDARD = b"\x28\xb5\x2f\xfd"  # with which its frames begin


def keep_programs(folder: str | os.PathLike | None = None, most_bytes: int = MOST_BYTES) -> Path | None:
    """Keep compiled programs on disk from now on, for this process and later ones.

    It sets JAX's own configuration, also for programs of the user's own, so importing rflvm does not do it; the command
    line does. Call it before the first fit. If JAX has such a folder already, nothing is changed.

    Parameters
    ----------
    folder : path, optional
        Where to. By default ``rflvm/programs`` in the user's folder for caches: XDG_CACHE_HOME, or what the system has.
    most_bytes : int
        When more than this is kept for one version and processor, the oldest programs are deleted.

    Returns
    -------
    Path or None
        The folder for this version and processor; None where JAX has a folder of its own, or none can be written.

    Examples
    --------
    >>> import rflvm
    >>> kept = rflvm.keep_programs()
    """
    import jax

    if getattr(jax.config, "jax_compilation_cache_dir", None) is not None:
        return None
    try:
        root = user_cache() / "rflvm" / "programs" if folder is None else Path(folder)
        kept = root / fingerprint()
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "getuid") and kept.stat().st_uid != os.getuid():
            return None  # somebody else could put machine code there
        _forget(root, kept)
        own = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=kept))
    except (OSError, RuntimeError):  # no folder that can be written, or no home at all
        return None
    links = _link(kept, own, most_bytes)
    atexit.register(_publish, own, kept, links, os.getpid())
    jax.config.update("jax_compilation_cache_dir", str(own))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    jax.config.update("jax_persistent_cache_enable_xla_caches", "none")  # they would make the folder a part of the key
    return kept


def user_cache() -> Path:
    """The folder for caches of the user."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(named):
        return Path(named)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")


def fingerprint() -> str:
    """What machine code depends on: versions and the processor."""
    versions = [f"{name} {version(name)}" for name in ("rflvm", "jax", "jaxlib")]
    return hashlib.sha256("\n".join([*versions, *processor()]).encode()).hexdigest()[:DIGITS]


def processor() -> list[str]:
    """Model and features of the processor, as far as the system says."""
    about = [platform.system(), platform.machine(), platform.processor()]
    with suppress(OSError):
        told = ("vendor_id", "model name", "cpu family", "model", "flags", "Features", "CPU implementer", "CPU part")
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
        about += sorted({line for line in lines if line.split(":")[0].strip() in told})
    return about


def _link(kept: Path, own: Path, most_bytes: int) -> set[str]:
    """Links in a process's own folder to the newest programs that are whole; the others are deleted. Their names."""
    entries = []
    for path in kept.iterdir():
        with suppress(OSError):
            if path.is_file():
                entries.append((path.stat().st_mtime, path.stat().st_size, path))
    names, total = set(), 0
    for _, size, path in sorted(entries, reverse=True):
        name, _, digest = path.name.rpartition(".")
        total += size
        with suppress(OSError):  # another process may delete it as well
            if total > most_bytes or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
                path.unlink()
            elif name not in names:
                _hard_link_or_copy(path, own / name)
                names.add(name)
    return names


def _hard_link_or_copy(path: Path, target: Path) -> None:
    try:
        os.link(path, target)
    except OSError:  # not every file system has links
        shutil.copyfile(path, target)


def _publish(own: Path, kept: Path, links: set[str], process: int) -> None:
    """What JAX has added goes to the folder that is kept, whole or not at all; the process's own is removed."""
    if os.getpid() != process:  # a fork
        return
    with suppress(OSError):
        for path in own.iterdir():
            if path.name not in links and path.is_file() and _whole(content := path.read_bytes()):
                os.replace(path, kept / f"{path.name}.{hashlib.sha256(content).hexdigest()}")
    shutil.rmtree(own, ignore_errors=True)


def _whole(content: bytes) -> bool:
    """Whether a program was written to its end, which an interrupt may have prevented: JAX has compressed it."""
    try:
        if content.startswith(ZSTANDARD):
            import_module("zstandard").ZstdDecompressor().decompress(content)
        else:
            zlib.decompress(content)
    except Exception:  # zlib and zstandard have classes of errors of their own
        return False
    return True


def _forget(root: Path, kept: Path) -> None:
    """Remove folders of processes that were killed, and those of versions and processors not used for long."""
    os.utime(kept)
    for folder, pattern, seconds in ((kept, f"{TEMPORARY}*", ABANDONED), (root, "[0-9a-f]" * DIGITS, OLDEST)):
        for path in folder.glob(pattern):
            with suppress(OSError):
                if path.is_dir() and time.time() - path.stat().st_mtime > seconds:
                    shutil.rmtree(path, ignore_errors=True)

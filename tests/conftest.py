"""Shapes in annotations are checked while the tests run, and `x64` runs a test in double precision."""

import os
import signal
from importlib.util import find_spec
from pathlib import Path

import jax
import pytest
from jaxtyping import install_import_hook

# The joint tests run thousands of small problems under vmap, which makes many batched LAPACK calls at once.
# jaxlib's calls wait for the thread pool they run on, and as many at once as there are threads would wait
# forever; the sampler itself never makes two at once. NPROC is the size of that pool.
os.environ.setdefault("NPROC", "32")

# OpenMP's threads spin while they wait for each other, and beside other processes t-SNE then takes fifty times the
# processor time that it takes with one.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The suite spends most of its time compiling; simple machine code that is not optimised is ready in half the time.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")

# Programs that several modules, both workers or the processes that tests start compile are compiled once and kept in
# output/, with a lock on the folder. A later run has those that have not changed.
PROGRAMS = {
    "jax_compilation_cache_dir": str(Path(__file__).parents[1] / "output" / "programs"),
    "jax_compilation_cache_max_size": 2**30,
    "jax_persistent_cache_min_compile_time_secs": 0.1,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}
for _name, _value in PROGRAMS.items():
    os.environ[_name.upper()] = str(_value)
    jax.config.update(_name, _value)

# Where the suite runs in the background of a shell, interrupts are ignored, and so they would be by the processes that
# tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A mean over the wrong axis or a table in the wrong precision must not pass for want of an error.
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# Modules a user enters by: they check their own arguments, with better messages, and the tests of
# those messages must get past the annotations.
DOORS = {
    "rflvm.estimator",
    "rflvm.fitting",
    "rflvm.likelihoods.custom",
    "rflvm.maximum.maximise",
    "rflvm.sampling.run",
    "rflvm.streaming.stream",
}

_spec = find_spec("rflvm")
assert _spec is not None
assert _spec.origin is not None
_package = Path(_spec.origin).parent
_modules = {
    ".".join(path.relative_to(_package.parent).with_suffix("").parts)
    for path in _package.rglob("*.py")
    if path.stem != "__init__"
}
install_import_hook(sorted(_modules - DOORS), "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")

from rflvm.fitted import prediction  # noqa: E402  (after the hook)

# Rows under a fit are computed in blocks of one size, which for the small tables of the tests would be 512 rows, nearly
# all of them padding. Blocks of 16 or 32 do the same, and tables of a few dozen rows have several.
prediction.BLOCK_CELLS = 256


@pytest.fixture(scope="module", autouse=True)
def _drop_programs():
    """Compiled programs of one module are not kept for the next: see ``rflvm.numerics.memory_maps``."""
    yield
    jax.clear_caches()


@pytest.fixture
def x64():
    """Double precision."""
    with jax.enable_x64(True):
        yield

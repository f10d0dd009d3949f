"""A table that would not fit into memory is refused before memory is asked for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from rflvm.data import memory, tables


def test_the_free_memory_is_known_on_linux_and_unknown_elsewhere(tmp_path, monkeypatch):
    meminfo = tmp_path / "meminfo"
    monkeypatch.setattr(memory, "_MEMINFO", meminfo)
    monkeypatch.setattr(memory.cgroups, "available", lambda: None)
    assert memory.available() is None
    meminfo.write_text("MemTotal:       9 kB\nMemAvailable:   2000 kB\n")
    assert memory.available() == 2_048_000
    monkeypatch.setattr(memory.cgroups, "available", lambda: 2000)
    assert memory.available() == 2000
    monkeypatch.setattr(memory.cgroups, "available", lambda: None)
    meminfo.write_text("MemTotal:       9 kB\n")
    assert memory.available() is None


def test_a_table_may_take_half_of_what_is_free(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1000)
    memory.check("Y", 500, "")
    with pytest.raises(ValueError, match=r"^Y needs 5.01e-07 GB of memory somehow, and 1e-06 GB are free, .* 50%"):
        memory.check("Y", 501, "somehow")
    monkeypatch.setattr(memory, "available", lambda: None)
    memory.check("Y", 10**30, "")


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dok", "lil", "dia", "bsr"])
def test_a_sparse_table_states_the_size_it_would_have(form, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 8 * 10**9)
    table = sparse.coo_array((np.ones(1), ([3], [4])), shape=(50_000, 20_000)).asformat(form)
    with pytest.raises(
        ValueError, match=r"^Y needs 8 GB of memory as a dense table of shape 50000 x 20000.* keep fewer columns"
    ):
        tables.read(table)


def test_sizes_beyond_64_bits_are_refused_too():
    table = sparse.coo_array((2**62, 2**62))
    with pytest.raises(ValueError, match=r"^Y needs 1\.7e\+29 GB of memory"):
        tables.read(table)

"""Blocks are encoded like whole tables, and what is wrong is named by its row in the table."""

from __future__ import annotations

import numpy as np
import pytest

from rflvm import likelihoods
from rflvm.data import checks
from rflvm.data.blocks.encoding import Encoder, block_size
from rflvm.data.blocks.sources import open_table
from rflvm.numerics.errors import InputError

rng = np.random.default_rng(0)
COUNTS = rng.poisson(3.0, (40, 5))
GAPS = np.where(rng.random((40, 5)) < 0.2, np.nan, COUNTS)
TRIALS = COUNTS + rng.integers(0, 4, COUNTS.shape)
CASES = [
    ("poisson", COUNTS.astype(np.uint8)),
    ("poisson", GAPS),
    ("multinomial", COUNTS.astype(np.int32)),
    ("multinomial", GAPS),
    ("gaussian", GAPS.astype(np.float32)),
    ("student_t", COUNTS),
    (likelihoods.Binomial(trials=TRIALS), COUNTS),
    ("bernoulli", COUNTS > 2),
]


@pytest.mark.parametrize(("family", "values"), CASES)
def test_blocks_are_encoded_like_the_table(family, values):
    family = likelihoods.get(family)
    offset = rng.normal(size=40)
    table = checks.check_table(values.astype(float), family, None, offset, 2)
    data = checks.to_device(table, "float32")
    encoder = Encoder(family, table.units, offset, None, "float32")
    blocks = list(encoder.blocks(open_table(values), 16))
    assert [block.n for block in blocks] == [16, 16, 8]
    for block in blocks:
        here = slice(block.start, block.start + block.n)
        np.testing.assert_allclose(block.Y[: block.n], data.Y[here], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(block.offset[: block.n], data.offset[here], rtol=1e-6)
        mask = np.ones(block.Y.shape, bool) if block.mask is None else block.mask
        np.testing.assert_array_equal(mask[: block.n], True if data.mask is None else data.mask[here])
        if data.trials is not None:
            assert block.trials is not None
            np.testing.assert_array_equal(block.trials[: block.n], data.trials[here])
        assert len(block.Y) == 16
        assert not block.Y[block.n :].any()
    some = np.array([3, 4, 39])
    np.testing.assert_array_equal(encoder.of_rows(some, values[some], 4).Y[2], blocks[2].Y[7])


def test_the_type_of_the_table_is_kept():
    encoder = Encoder(likelihoods.Poisson(), None, None, None, "float32")
    assert encoder(0, COUNTS.astype(np.uint8), 64).Y.dtype == np.uint8
    assert encoder(0, COUNTS.astype(np.int64), 64).Y.dtype == np.float32


def test_totals_as_exposures():
    usual = checks.usual_counts(COUNTS.astype(float))
    encoder = Encoder(likelihoods.Poisson(), None, None, usual, "float32")
    expected = checks.log_totals(COUNTS.astype(float), COUNTS.astype(float))
    np.testing.assert_allclose(encoder(0, COUNTS.astype(np.uint8), 40).offset, expected, rtol=1e-6)


def test_errors_name_the_row_of_the_table():
    encoder = Encoder(likelihoods.Poisson(), None, None, None, "float32")
    Y = COUNTS.astype(float)
    Y[37, 2] = -1
    with pytest.raises(InputError, match=r"poisson needs counts >= 0, got Y\[37, 2\] = -1") as caught:
        list(encoder.blocks(open_table(Y), 16))
    assert (caught.value.row, caught.value.column) == (37, 2)
    Y[37, 2] = np.inf
    with pytest.raises(InputError, match=r"Y\[37, 2\] is infinite"):
        list(encoder.blocks(open_table(Y), 16))
    Y[20] = np.nan
    with pytest.raises(InputError, match=r"row 20 of Y has no observed cell"):
        list(encoder.blocks(open_table(Y), 16))
    assert len(list(encoder.blocks(open_table(Y), 16, checked=True))) == 3
    totals = Encoder(likelihoods.Poisson(), None, None, np.ones(5), "float32")
    Y[33] = 0
    with pytest.raises(InputError, match=r"row 33 of Y has no counts"):
        list(totals.blocks(open_table(np.nan_to_num(Y, nan=1.0, posinf=1.0)), 16))


def test_sizes_of_blocks():
    assert block_size(10**6, 50) == 8192
    assert block_size(10**6, 2000) == 512
    assert block_size(60, 20) == 64

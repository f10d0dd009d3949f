"""Entries are complete, and files that may not be handed on have no address."""

import re

import pytest

from rflvm import datasets
from rflvm.datasets.registry import SOURCES

FILES = [(dataset, name) for dataset, source in SOURCES.items() for name in source.files]


def test_every_loader_has_a_source():
    assert {f"load_{dataset}" for dataset in SOURCES} | {"make_s_curve"} == set(datasets.__all__)


@pytest.mark.parametrize(("dataset", "name"), FILES)
def test_entries_are_complete(dataset, name):
    source, file = SOURCES[dataset], SOURCES[dataset].files[name]
    assert re.fullmatch("[0-9a-f]{64}", file.sha256)
    assert file.inside is None or re.fullmatch("[0-9a-f]{64}", file.inside)
    assert file.n_bytes > 0
    assert source.origin
    assert source.terms
    assert source.citation
    assert file.url or source.obtain


@pytest.mark.parametrize(("dataset", "name"), FILES)
def test_addresses_can_be_asked_for_as_they_are(dataset, name):
    url = SOURCES[dataset].files[name].url
    assert url is None or re.fullmatch(r"https://[A-Za-z0-9./_%~-]+", url)


def test_restricted_files_are_not_downloaded():
    for dataset in ("yale", "hippocampus"):
        assert "Restricted" in SOURCES[dataset].terms
        assert all(file.url is None for file in SOURCES[dataset].files.values())

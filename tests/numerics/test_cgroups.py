"""Limits of control groups, of version 1 and 2, in folders that look like those of Linux."""

import pytest

from rflvm.numerics import cgroups

V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
V2 = ("memory.max", "memory.current", "inactive_file")


@pytest.fixture
def system(tmp_path, monkeypatch):
    monkeypatch.setattr(cgroups, "_MOUNT", tmp_path / "mount")
    monkeypatch.setattr(cgroups, "_MEMBERSHIP", tmp_path / "cgroup")
    return tmp_path


def group(folder, names, limit, used, cache=0):
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in zip(names, (limit, used), strict=False):
        (folder / name).write_text(f"{value}\n")
    (folder / "memory.stat").write_text(f"anon 1\n{names[2]} {cache}\n")


def test_without_groups_nothing_is_known(system):
    assert cgroups.available() is None
    (system / "cgroup").write_text("0::/\n")
    assert cgroups.available() is None


def test_the_nearest_limit_counts_and_cache_can_be_reclaimed(system):
    (system / "cgroup").write_text("0::/user/job\n")
    group(system / "mount/user/job", V2, "max", 10)
    assert cgroups.available() is None
    group(system / "mount/user", V2, 1000, 400, cache=100)
    assert cgroups.available() == 700
    group(system / "mount/user/job", V2, 500, 450)
    assert cgroups.available() == 50
    group(system / "mount/user/job", V2, 500, 600)
    assert cgroups.available() == 0


def test_version_1_and_a_path_that_cannot_be_seen_within_the_container(system):
    (system / "cgroup").write_text("5:cpu:/x\n4:memory,hugetlb:/docker/0123\n0::/\n")
    group(system / "mount/memory", V1, 2000, 500, cache=7)
    assert cgroups.available() == 1507

"""Digits, photographs and faces."""

import gzip
import io
import json
import sys
import tarfile

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from rflvm.datasets import images, load_cifar10, load_mnist, load_yale


def test_mnist(real):
    digits = real(load_mnist)
    assert digits.data.shape == (1000, 784)
    assert digits.data.sum() == 25_961_697
    assert set(digits.target) == set(range(10))
    assert len(set(digits.row_names)) == 1000
    first = real(load_mnist, n_samples=10, random_state=None)
    assert first.target.tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert first.row_names.tolist() == [str(i) for i in range(10)]


@pytest.fixture
def digits(plant):
    """Three digits of one grey level each."""
    pixels = np.repeat(np.arange(3, dtype=np.uint8), 784).tobytes()
    return plant("mnist", {
        "train-images-idx3-ubyte.gz": gzip.compress(bytes(16) + pixels),
        "train-labels-idx1-ubyte.gz": gzip.compress(bytes(8) + bytes([7, 8, 9])),
    })  # fmt: skip


def test_digits_are_chosen_with_their_labels(digits):
    for seed in range(5):
        chosen = load_mnist(data_home=digits, n_samples=2, random_state=seed)
        assert chosen.data.shape == (2, 784)
        assert np.array_equal(chosen.data[:, 0] + 7, chosen.target)
        assert chosen.data[:, 0].astype(int).astype(str).tolist() == chosen.row_names.tolist()
        again = load_mnist(data_home=digits, n_samples=2, random_state=seed)
        np.testing.assert_array_equal(again.data, chosen.data)
    assert load_mnist(data_home=digits, n_samples=2, random_state=None).target.tolist() == [7, 8]
    with pytest.raises(ValueError, match="n_samples must be at most 3, the number of training images, got 4"):
        load_mnist(data_home=digits, n_samples=4)


def test_cifar10(real):
    photographs = real(load_cifar10)
    assert photographs.data.shape == (2000, 400)
    assert photographs.data.sum() == 98_055_017
    assert photographs.images_shape == (20, 20)
    assert np.bincount(photographs.target).tolist() == [400] * 5
    first = real(load_cifar10, n_per_class=1, random_state=None)
    assert first.target_names[first.target].tolist() == ["deer", "automobile", "bird", "cat", "airplane"]
    assert first.row_names.tolist() == ["train 3", "train 4", "train 6", "train 9", "train 29"]


def test_grey_levels_and_places_of_photographs(plant):
    labels = np.full(51_000, 9)
    labels[[5, 1001, 2002, 3003, 50_004]] = [0, 1, 2, 3, 4]
    sheets = {}
    for sheet in (0, 1, 2, 3, 50):
        pixels = np.zeros((1000, 32 * 32, 3), np.uint8)
        pixels[5], pixels[1, :, 0], pixels[2, :, 1], pixels[3, :, 2], pixels[4] = 255, 255, 255, 255, 100
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "PNG")
        sheets[f"cifar10_batch_{sheet}.png"] = buffer.getvalue()
    script = f"var labels={json.dumps(labels.tolist())};".encode()
    home = plant("cifar10", {"cifar10_labels.js": script, **sheets})
    photographs = load_cifar10(data_home=home, n_per_class=1)
    assert photographs.target.tolist() == [0, 1, 2, 3, 4]
    assert photographs.row_names.tolist() == ["train 5", "train 1001", "train 2002", "train 3003", "test 4"]
    assert photographs.data.shape == (5, 400)
    assert photographs.data[:, 0].tolist() == [255, 76, 150, 29, 100]  # white, red, green, blue, grey
    assert np.ptp(photographs.data, axis=1).max() == 0
    with pytest.raises(ValueError, match="n_per_class must be at most 1, the number of airplane images, got 2"):
        load_cifar10(data_home=home, n_per_class=2)


def test_without_pillow_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"needs pillow: pip install 'rflvm\[datasets\]'"):
        load_cifar10()


def test_a_smaller_image_has_means_of_areas():
    image = np.array([[[0.0, 3, 6], [9, 12, 15], [18, 21, 24]]])
    # One and a half pixels by one and a half: weights 4, 2, 2, 1 of 9.
    expected = (4 * 0 + 2 * 3 + 2 * 9 + 12) / 9
    small = images._shrink(image, (2, 2))
    assert small.shape == (1, 2, 2)
    assert small[0, 0, 0] == pytest.approx(expected)
    assert small.mean() == pytest.approx(image.mean())
    np.testing.assert_allclose(images._shrink(image, (3, 3)), image)
    assert images._shrink(image, (1, 3)).tolist() == [[[9, 12, 15]]]


def test_yale(real):
    faces = real(load_yale)
    assert faces.data.shape == (165, 1024)
    assert faces.data.sum() == 16_640_447
    assert np.bincount(faces.target).tolist() == [11] * 15


def test_whole_photographs_of_yale(real):
    faces = real(load_yale, cropped=False)
    assert faces.data.shape == (165, 1200)
    assert faces.images_shape == (30, 40)
    assert np.bincount(faces.target).tolist() == [11] * 15
    assert len(set(faces.row_names)) == 165
    assert len(np.unique(faces.data, axis=0)) == 156


def test_photographs_are_told_apart_by_their_names(plant):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name, level in (("subject02happy", 30), ("subject01sad", 200)):
            buffer = io.BytesIO()
            Image.fromarray(np.full((243, 320), level, np.uint8)).save(buffer, "GIF")
            member = tarfile.TarInfo(f"yalefaces/{name}.gif")
            member.size = len(buffer.getvalue())
            tar.addfile(member, io.BytesIO(buffer.getvalue()))
    home = plant("yale", {"yalefaces_gif.tar.gz": archive.getvalue()})
    faces = load_yale(data_home=home, cropped=False)
    assert faces.row_names.tolist() == ["subject01sad", "subject02happy"]
    assert faces.target.tolist() == [0, 1]
    assert (faces.data == [[200.0], [30.0]]).all()


def test_faces_are_upright(plant):
    face = np.arange(1024).reshape(32, 32) % 256
    buffer = io.BytesIO()
    savemat(buffer, {"fea": face.T.reshape(1, -1).astype(np.uint8), "gnd": np.array([[3]], np.uint8)})
    faces = load_yale(data_home=plant("yale", {"Yale_32x32.mat": buffer.getvalue()}))
    np.testing.assert_array_equal(faces.data.reshape(-1, *faces.images_shape)[0], face)
    assert faces.target_names[faces.target].tolist() == ["person 3"]

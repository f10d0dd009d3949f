"""Images as rows of grey levels: MNIST digits, CIFAR-10, Yale faces."""

from __future__ import annotations

import json
import math
import os
from io import BytesIO
from typing import Any

import numpy as np
from jaxtyping import Float, Num
from scipy.io import loadmat
from sklearn.utils import Bunch

from ..data.checks import check_integer
from .archives import gunzip, untar
from .fetch import read
from .registry import SOURCES

_LUMA = np.array([299, 587, 114])  # ITU-R BT.601, in thousandths: how bright red, green and blue look
_CIFAR = ("airplane", "automobile", "bird", "cat", "deer")  # labels 0 to 4


def load_mnist(
    *, data_home: str | os.PathLike | None = None, n_samples: int = 1000, random_state: int | None = 0
) -> Bunch:
    """Handwritten digits: 1000 images of 28 x 28 grey levels, labels 0 to 9.

    Parameters
    ----------
    data_home : str, PathLike or None
        Folder with ``mnist/``; None: that of the environment variable RFLVM_DATA, or else a download.
    n_samples : int
        How many of the 60,000 training images.
    random_state : int or None
        Seed of the random choice of them. None: the first ``n_samples``.

    Returns
    -------
    Bunch
        ``data``, ``target``, ``target_names``, ``feature_names``, ``row_names`` (places in the training set, from 0),
        ``images_shape`` and ``DESCR``.
    """
    labels = np.frombuffer(gunzip(read("mnist", "train-labels-idx1-ubyte.gz", data_home))[8:], np.uint8)
    rows = _choose(np.arange(len(labels)), n_samples, _generator(random_state), "n_samples", "training images")
    images = gunzip(read("mnist", "train-images-idx3-ubyte.gz", data_home))[16:]
    pixels = np.frombuffer(images, np.uint8).reshape(len(labels), 28 * 28)
    return Bunch(
        data=pixels[rows].astype(float),
        target=labels[rows].astype(int),
        target_names=np.array([str(digit) for digit in range(10)]),
        feature_names=_pixel_names((28, 28)),
        row_names=rows.astype(str),
        images_shape=(28, 28),
        DESCR=SOURCES["mnist"].describe(
            """Handwritten digits of the MNIST training set.

Rows are images, grey levels 0 to 255, 28 x 28 pixels row by row: data.reshape(-1, *images_shape). Labels (the paper's):
the digits.

The paper takes 1000 images at random and does not say which. Here they are drawn from the 60,000 training images by
NumPy's default_rng(random_state), without replacement, and kept in the order of the file; random_state=None takes the
first ones. Pixels that are dark in all of them are kept as columns of zeros."""
        ),
    )


def load_cifar10(
    *, data_home: str | os.PathLike | None = None, n_per_class: int = 400, random_state: int | None = 0
) -> Bunch:
    """Small photographs: 2000 images of 20 x 20 grey levels, 400 of each of five classes.

    Parameters
    ----------
    data_home : str, PathLike or None
        Folder with ``cifar10/``; None: that of the environment variable RFLVM_DATA, or else a download.
    n_per_class : int
        How many images of each class; there are 455 to 520.
    random_state : int or None
        Seed of the random choice of them. None: the first ones of each class.

    Returns
    -------
    Bunch
        ``data``, ``target``, ``target_names``, ``feature_names``, ``row_names`` (places in the training or test
        set, from 0), ``images_shape`` and ``DESCR``.
    """
    pillow = _pillow("CIFAR-10")
    script = read("cifar10", "cifar10_labels.js", data_home).decode("ascii")
    every_label = np.array(json.loads(script[script.index("[") : script.rindex("]") + 1]))
    sheets = (0, 1, 2, 3, 50)  # of a thousand images each; 50 is the first of the test set
    labels = np.concatenate([every_label[1000 * sheet : 1000 * (sheet + 1)] for sheet in sheets])
    rng = _generator(random_state)
    chosen = [
        _choose(np.flatnonzero(labels == label), n_per_class, rng, "n_per_class", f"{name} images")
        for label, name in enumerate(_CIFAR)
    ]
    rows = np.sort(np.concatenate(chosen))
    images = np.empty((1000 * len(sheets), 32, 32, 3), np.uint8)
    for i, sheet in enumerate(sheets):
        with pillow.open(BytesIO(read("cifar10", f"cifar10_batch_{sheet}.png", data_home))) as image:
            images[1000 * i : 1000 * (i + 1)] = np.asarray(image).reshape(1000, 32, 32, 3)
    grey = np.round(_shrink(images[rows] @ _LUMA, (20, 20)) / 1000)
    return Bunch(
        data=grey.reshape(len(rows), -1),
        target=labels[rows],
        target_names=np.array(_CIFAR),
        feature_names=_pixel_names((20, 20)),
        row_names=np.array([f"train {row}" if row < 4000 else f"test {row - 4000}" for row in rows]),
        images_shape=(20, 20),
        DESCR=SOURCES["cifar10"].describe(
            """Small photographs of airplanes, cars, birds, cats and deer, in grey.

Rows are images, grey levels 0 to 255, 20 x 20 pixels row by row: data.reshape(-1, *images_shape). Labels (the paper's):
the class, 400 images of each.

The paper takes 400 images of each of the classes 1 to 5, in grey, made 20 x 20 from 32 x 32. Here these are the first
five, airplane, automobile, bird, cat and deer, with which PCA and Isomap come closer to the accuracies that the paper
reports for them; the original files number classes from 0. Images are drawn from the first 4000 training and the first
1000 test images by NumPy's default_rng(random_state), class after class, without replacement, and kept in the order of
the files; random_state=None takes the first ones of each class. Grey is 0.299 R + 0.587 G + 0.114 B; a pixel of the
small image is the mean of the area that it covers, rounded to a whole number."""
        ),
    )


def load_yale(*, data_home: str | os.PathLike | None = None, cropped: bool = True) -> Bunch:
    """Faces of 15 persons: 165 images of grey levels, labels the person.

    Parameters
    ----------
    data_home : str, PathLike or None
        Folder with ``yale/``; None: that of the environment variable RFLVM_DATA. The files are not downloaded.
    cropped : bool
        The faces alone, 32 x 32 pixels, or the whole photographs with hair, shoulders and wall, 30 x 40.

    Returns
    -------
    Bunch
        ``data``, ``target``, ``target_names``, ``feature_names``, ``row_names`` (of whole photographs: person and
        condition), ``images_shape`` and ``DESCR``.
    """
    if cropped:
        file = loadmat(BytesIO(read("yale", "Yale_32x32.mat", data_home)))
        images = file["fea"].reshape(-1, 32, 32).transpose(0, 2, 1)  # MATLAB has them column by column
        target = file["gnd"].ravel().astype(int) - 1
        names = np.array([str(row) for row in range(len(images))])
    else:
        pillow = _pillow("the photographs of Yale")
        files = untar(read("yale", "yalefaces_gif.tar.gz", data_home))
        paths = sorted(path for path in files if path.endswith(".gif"))
        names = np.array([path.split("/")[-1].removesuffix(".gif") for path in paths])
        target = np.array([int(name[7:9]) - 1 for name in names])  # subject01happy
        photographs = np.stack([np.asarray(pillow.open(BytesIO(files[path])).convert("L")) for path in paths])
        images = np.round(_shrink(photographs, (30, 40)))
    shape = images.shape[1:]
    return Bunch(
        data=images.reshape(len(images), -1).astype(float),
        target=target,
        target_names=np.array([f"person {person}" for person in range(1, 16)]),
        feature_names=_pixel_names(shape),
        row_names=names,
        images_shape=shape,
        DESCR=SOURCES["yale"].describe(
            """Faces of 15 persons with eleven expressions or lightings each.

165 rows, grey levels 0 to 255, pixels row by row: data.reshape(-1, *images_shape). Labels (the paper's): the person,
eleven images of each.

The paper does not say how large its images are, nor whether they are cropped. The originals have 243 x 320 pixels.
cropped=True: the faces alone, aligned, 32 x 32, as they are commonly used. cropped=False: the whole photographs made
30 x 40, each pixel the mean of the area that it covers, rounded to a whole number. In two principal components a
nearest neighbour is of the same person for 0.55 of the whole photographs and for 0.2 of the cropped faces; the paper
has 0.544, so it will have had whole photographs. Nine pairs of them, each of one person, are the same image twice."""
        ),
    )


def _pillow(what: str) -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(f"reading {what} needs pillow: pip install 'rflvm[datasets]'") from error
    return Image


def _generator(random_state: int | None) -> np.random.Generator | None:
    return None if random_state is None else np.random.default_rng(random_state)


def _choose(among: np.ndarray, n: int, rng: np.random.Generator | None, option: str, what: str) -> np.ndarray:
    """n of the given rows at random, in ascending order; without a generator the first ones."""
    n = check_integer(option, n, 1)
    if n > len(among):
        raise ValueError(f"{option} must be at most {len(among)}, the number of {what}, got {n}")
    return among[:n] if rng is None else np.sort(rng.choice(among, n, replace=False))


def _shrink(images: Num[np.ndarray, "N H W"], shape: tuple[int, int]) -> Float[np.ndarray, "N h w"]:
    """Images made smaller: each new pixel is the mean of the area that it covers.

    Of whole numbers the sums are exact, so that halves are rounded in the same way on every processor.
    """
    down, across = (_overlaps(old, new) for old, new in zip(images.shape[1:], shape, strict=True))
    return down @ images @ across.T / (down[0].sum() * across[0].sum())


def _overlaps(old: int, new: int) -> Float[np.ndarray, "new old"]:
    """How much of each new pixel each old one covers, along a side, in units in which all edges are whole numbers."""
    new_width, old_width = old // math.gcd(old, new), new // math.gcd(old, new)
    edges, pixels = np.arange(new + 1.0) * new_width, np.arange(float(old)) * old_width
    overlap = np.minimum(edges[1:, None], pixels + old_width) - np.maximum(edges[:-1, None], pixels)
    return np.clip(overlap, 0, None)


def _pixel_names(shape: tuple[int, int]) -> np.ndarray:
    return np.array([f"pixel_{i}_{j}" for i in range(shape[0]) for j in range(shape[1])])

"""Word counts: phrases of the 109th Congress, posts to newsgroups, text messages."""

from __future__ import annotations

import csv
import os
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils import Bunch

from .archives import untar
from .fetch import read
from .registry import SOURCES


def load_congress109(*, data_home: str | os.PathLike | None = None) -> Bunch:
    """Phrases in the speeches of the 109th Congress: 529 members x 1000 phrases, labels the party.

    Parameters
    ----------
    data_home : str, PathLike or None
        Folder with ``congress109/``; None: that of the environment variable RFLVM_DATA, or else a download.

    Returns
    -------
    Bunch
        ``data``, ``target``, ``target_names``, ``feature_names``, ``row_names`` (members) and ``DESCR``.
    """
    heading, *rows = _csv("congress109.csv", data_home)
    party = {name: letter for name, letter, *_ in _csv("congress109members.csv", data_home)[1:]}
    letters = ("D", "I", "R")
    return Bunch(
        data=np.array([row[1:] for row in rows], float),
        target=np.array([letters.index(party[row[0]]) for row in rows]),
        target_names=np.array(["Democrat", "Independent", "Republican"]),
        feature_names=np.array(heading[1:]),
        row_names=np.array([row[0] for row in rows]),
        DESCR=SOURCES["congress109"].describe(
            """How often each member of the 109th Congress of the United States used each of 1000 phrases.

529 members x 1000 phrases, 176,160 uses in all. Labels (the paper's): 242 Democrats, 2 Independents, 285 Republicans.

Rows are in the order of the file. The published code of the paper sorts them by name and counts the two Independents
with the Democrats, as target == 2 does."""
        ),
    )


def _csv(name: str, data_home: str | os.PathLike | None) -> list[list[str]]:
    return list(csv.reader(read("congress109", name, data_home).decode("ascii").splitlines()))


def load_newsgroups(*, data_home: str | os.PathLike | None = None) -> Bunch:
    """Words in the posts of three newsgroups: 2752 posts x 183 words, labels the group.

    Parameters
    ----------
    data_home : str, PathLike or None
        Folder with ``newsgroups/``; None: that of the environment variable RFLVM_DATA. The file is not downloaded.

    Returns
    -------
    Bunch
        ``data``, ``target``, ``target_names``, ``feature_names`` (words), ``row_names`` (paths) and ``DESCR``.
    """
    posts = untar(read("newsgroups", "20news-bydate-3class.tar.gz", data_home))
    train_first = sorted(posts, key=lambda path: ("-test/" in path, path))
    data, words, has_words = _count([posts[path].decode("utf-8") for path in train_first], min_df=0.1, max_df=0.9)
    paths = np.array(train_first)[has_words]
    names, target = np.unique([path.split("/")[1] for path in paths], return_inverse=True)
    return Bunch(
        data=data,
        target=target,
        target_names=names,
        feature_names=words,
        row_names=paths,
        DESCR=SOURCES["newsgroups"].describe(
            """Words in the posts to alt.atheism, comp.sys.mac.hardware and sci.med.

2752 posts x 183 words. Labels (the paper's): the group, 799, 963 and 990 posts.

The paper limits the vocabulary to words in 10 to 90 % of the posts and leaves the rest open. Here training and test
posts are taken together, training posts first, each with its header, quotations and signature. A word is two or more
letters, digits or underscores in a row, in lower case (CountVectorizer with min_df=0.1, max_df=0.9). Posts without any
of the words would be left out; there are none. The posts differ much in length: the logarithm of a row's total is a
sensible offset."""
        ),
    )


def load_spam(*, data_home: str | os.PathLike | None = None) -> Bunch:
    """Words in text messages: 5480 messages x 214 words, labels ham and spam.

    Parameters
    ----------
    data_home : str, PathLike or None
        Folder with ``spam/``; None: that of the environment variable RFLVM_DATA, or else a download.

    Returns
    -------
    Bunch
        ``data``, ``target``, ``target_names``, ``feature_names`` (words), ``row_names`` (lines of the file, from 1) and
        ``DESCR``.
    """
    text = read("spam", "SMSSpamCollection", data_home).decode("utf-8")
    messages = [line.split("\t", 1) for line in text.split("\n") if line]
    data, words, has_words = _count([message for _, message in messages], min_df=0.01, max_df=1.0)
    return Bunch(
        data=data,
        target=np.array([label == "spam" for label, _ in messages], int)[has_words],
        target_names=np.array(["ham", "spam"]),
        feature_names=words,
        row_names=np.array([f"line {i + 1}" for i in np.flatnonzero(has_words)]),
        DESCR=SOURCES["spam"].describe(
            """Words in text messages, some of them spam.

5480 messages x 214 words. Labels (the paper's): 4736 ham and 744 spam.

The paper does not say how messages become counts. Here columns are the words in at least 1 % of the 5574 messages; a
word is two or more letters, digits or underscores in a row, in lower case (CountVectorizer with min_df=0.01). The
94 messages without any of these words are left out. Messages that occur more than once are kept."""
        ),
    )


def _count(texts: list[str], min_df: float, max_df: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts (N, J) of the words within ``min_df`` and ``max_df``, the words, and which texts have any of them."""
    make: Any = CountVectorizer
    vectorizer = make(min_df=min_df, max_df=max_df)
    counts = vectorizer.fit_transform(texts).toarray().astype(float)
    has_words = counts.sum(axis=1) > 0
    return counts[has_words], vectorizer.get_feature_names_out().astype(str), has_words

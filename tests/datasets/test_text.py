"""Words of Congress, newsgroups and text messages."""

import gzip
import io
import tarfile

import numpy as np

from rflvm.datasets import load_congress109, load_newsgroups, load_spam


def test_congress(real):
    congress = real(load_congress109)
    assert congress.data.shape == (529, 1000)
    assert congress.data.sum() == 176_160
    assert congress.data.max() == 631
    assert np.bincount(congress.target).tolist() == [242, 2, 285]
    assert congress.target_names[congress.target[congress.row_names == "Nancy Pelosi"]].tolist() == ["Democrat"]
    assert congress.feature_names[0] == "gifted.talented.student"


def test_members_are_matched_by_name(plant):
    home = plant("congress109", {
        "congress109.csv": b'"name","a.b","c.d"\n"Ann",1,2\n"Bob",3,4\n"Cy",5,6\n',
        "congress109members.csv": b'"name","party","state"\n"Cy","I","VT"\n"Bob","R","UT"\n"Ann","D","NY"\n',
    })  # fmt: skip
    congress = load_congress109(data_home=home)
    assert congress.data.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert congress.target_names[congress.target].tolist() == ["Democrat", "Republican", "Independent"]


def test_newsgroups(real):
    news = real(load_newsgroups)
    assert news.data.shape == (2752, 183)
    assert news.data.sum() == 303_288
    assert dict(zip(news.target_names, np.bincount(news.target), strict=True)) == {
        "alt.atheism": 799, "comp.sys.mac.hardware": 963, "sci.med": 990,
    }  # fmt: skip
    share = (news.data > 0).mean(axis=0)
    assert share.min() >= 0.1
    assert share.max() <= 0.9
    assert news.data.sum(axis=1).min() > 0
    assert "the" not in news.feature_names


def test_posts_are_sorted_and_empty_ones_left_out(plant):
    posts = {
        "20news-bydate-test/sci.med/1": b"common apple pear",
        "20news-bydate-train/sci.med/2": b"common pear Pear",
        "20news-bydate-train/alt.atheism/3": b"common apple \xc3\xa4pfel",
        "20news-bydate-train/alt.atheism/4": b"common",
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in posts.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    news = load_newsgroups(
        data_home=plant("newsgroups", {"20news-bydate-3class.tar.gz": gzip.compress(buffer.getvalue())})
    )
    assert news.feature_names.tolist() == ["apple", "pear", "äpfel"]
    assert [name.rsplit("/")[-1] for name in news.row_names] == ["3", "2", "1"]
    assert news.data.tolist() == [[1, 0, 1], [0, 2, 0], [1, 1, 0]]
    assert news.target_names[news.target].tolist() == ["alt.atheism", "sci.med", "sci.med"]


def test_spam(real):
    spam = real(load_spam)
    assert spam.data.shape == (5480, 214)
    assert spam.data.sum() == 45_949
    assert np.bincount(spam.target).tolist() == [4736, 744]
    assert spam.data.sum(axis=1).min() > 0
    assert (spam.data > 0).sum(axis=0).min() >= 0.01 * 5574
    assert len(spam.row_names) == 5480


def test_quotes_tabs_and_odd_line_breaks_belong_to_the_message(plant):
    lines = [b'ham\t"see you', b"spam\twin\tnow \xc2\x85 see", b"ham\t!"]
    spam = load_spam(data_home=plant("spam", {"SMSSpamCollection": b"\n".join(lines) + b"\n"}))
    assert spam.feature_names.tolist() == ["now", "see", "win", "you"]
    assert spam.data.tolist() == [[0, 1, 0, 1], [1, 1, 1, 0]]
    assert spam.target_names[spam.target].tolist() == ["ham", "spam"]
    assert spam.row_names.tolist() == ["line 1", "line 2"]

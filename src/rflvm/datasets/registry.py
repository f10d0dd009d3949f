"""Every file that the loaders read: its digest, its size, where it is published, and on what terms."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote


class File(NamedTuple):
    """A file as it was published.

    ``inside`` is for what can be packed in more than one way: the digest of a ``.gz`` unpacked, or of the members of
    a ``.tar.gz`` (see ``archives.digest``). A file with other bytes around the same content is as good.
    """

    sha256: str
    n_bytes: int
    url: str | None = None  # None: it is not downloaded
    inside: str | None = None


class Source(NamedTuple):
    """Where a data set is from, and its files by name."""

    origin: str
    terms: str
    citation: str
    files: dict[str, File]
    shape: tuple[int, int]  # rows and columns of the table that the loader makes by default
    obtain: str = ""  # how to get the files that are not downloaded

    def describe(self, about: str) -> str:
        """The DESCR of a data set."""
        return f"{about.strip()}\n\nSource: {self.origin}\n\nTerms of use: {self.terms}\n\nCite: {self.citation}\n"


def _github(repository: str, commit: str, path: str) -> str:
    return f"https://raw.githubusercontent.com/{repository}/{commit}/{quote(path)}"


_CONVNETJS = ("karpathy/convnetjs", "39afa8cd5e4cfb5771dc8a1f51bc56aa080f0b51")
_COVNETJS = ("larrabeew/covnetJS", "0d2866f3c12431c9044d3f275a588c12dc785926")
_RFLVM_2020 = ("gwgundersen/rflvm", "5ac15101")
_MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist/"

SOURCES = {
    "bridges": Source(
        shape=(214, 4),
        origin="New York City Department of Transportation, Bicycle Counts for East River Bridges, NYC Open Data "
        "gua4-p9wg, as downloaded in 2018.",
        terms="New York City Open Data Terms of Use.",
        citation="New York City Department of Transportation, https://data.cityofnewyork.us/d/gua4-p9wg.",
        files={
            "NYCDOT_Bicycle_Counts_2017-_East_River_Bridges.zip": File(
                "a8812d6a42cf8ab46c88a44cf18c4fc4707cb217e4bf66c22edabf4d56b6f003",
                216309,
                _github(
                    "tberkery/New-York-City-Biking-Behavior",
                    "15138cedbe044d426f3627daa450004b48648d5e",
                    "NYCDOT_Bicycle_Counts_2017-_East_River_Bridges.zip.zip",
                ),
            ),
        },
    ),
    "cifar10": Source(
        shape=(2000, 400),
        origin="CIFAR-10, https://www.cs.toronto.edu/~kriz/cifar.html, as the lossless PNG sheets of ConvNetJS: the "
        "first 4000 training and the first 1000 test images.",
        terms="No licence is stated; the authors ask for a citation.",
        citation="A. Krizhevsky, Learning multiple layers of features from tiny images, University of Toronto, 2009.",
        files={
            "cifar10_batch_0.png": File(
                "0614720d69293a033786d5fe2924c4e9a9b48874f19ca4627c4662a864ee9f2d",
                2318456,
                _github(*_CONVNETJS, "demo/cifar10/cifar10_batch_0.png"),
            ),
            "cifar10_batch_1.png": File(
                "2927e26ea68602e34a7424826b76b7336ce36b8f6bcc2e9fce0c05568ff6b4c1",
                2326379,
                _github(*_CONVNETJS, "demo/cifar10/cifar10_batch_1.png"),
            ),
            "cifar10_batch_2.png": File(
                "0b2759e307bb405bb1a6531f8a0f557eaec46d7546050612fdb836f0fa60eae0",
                2312906,
                _github(*_CONVNETJS, "demo/cifar10/cifar10_batch_2.png"),
            ),
            "cifar10_batch_3.png": File(
                "a4530ff15c83886058a97c352f53f38be07d191de8f410e998e91786b5900a26",
                2328590,
                _github(*_CONVNETJS, "demo/cifar10/cifar10_batch_3.png"),
            ),
            "cifar10_batch_50.png": File(
                "5cea9e8fb7933540a2236a4bb25c1ed3a8447f345c55ae659143a95a5d8dac5e",
                2315890,
                _github(*_COVNETJS, "demo/cifar10/cifar10_batch_50.png"),
            ),
            "cifar10_labels.js": File(
                "f8e4cced3cb4ac08bc842380ad30f904622d1faea630a0c7e1a18bf29e39d845",
                153012,
                _github(*_COVNETJS, "demo/cifar10/cifar10_labels.js"),
            ),
        },
    ),
    "congress109": Source(
        shape=(529, 1000),
        origin="Phrase counts of Gentzkow and Shapiro, published with the code of the RFLVM paper.",
        terms="No licence is stated; the same table comes with the R package textir.",
        citation="M. Gentzkow and J. M. Shapiro, What drives media slant? Evidence from U.S. daily newspapers, "
        "Econometrica 78, 2010.",
        files={
            "congress109.csv": File(
                "0f82e1f56cf9a5330079e26ee785e7d03def92d79c00069237333a24d09d52a1",
                1089169,
                _github(*_RFLVM_2020, "datasets/congress109.csv"),
            ),
            "congress109members.csv": File(
                "b685cc8a417310783825dbb1b41727dda32981e5229d344877e444f307b3b070",
                31424,
                _github(*_RFLVM_2020, "datasets/congress109members.csv"),
            ),
        },
    ),
    "hippocampus": Source(
        shape=(858, 30),
        origin="Recordings analysed by Wu et al. (2017), most probably CRCNS hc-6 (Karlsson, Carr and Frank), "
        "https://crcns.org/data-sets/hc/hc-6, binned.",
        terms="Restricted: whoever publishes with hc-6 is asked to list the collector of the data and Dr. Frank as "
        "authors. Do not pass the file on.",
        citation="M. Karlsson, M. Carr and L. M. Frank, Simultaneous extracellular recordings from hippocampal areas "
        "CA1 and CA3 (or MEC and CA1) from rats performing an alternation task in two W-shaped tracks, CRCNS, 2015, "
        "doi:10.6080/K0NK3BZJ; A. Wu, N. A. Roy, S. Keeley and J. W. Pillow, Gaussian process based nonlinear latent "
        "structure discovery in multivariate spike train data, NeurIPS 2017.",
        files={"hip_data.mat": File("a6254524058120cb0451e08cef4262f0cb15d52929c4dd18874b98c5c3bd7b44", 12699)},
        obtain="read the terms at https://crcns.org/data-sets/hc/hc-6, then take datasets/hip_data.mat from "
        "https://github.com/michaelzhang01/bayesian-rflvm",
    ),
    "mnist": Source(
        shape=(1000, 784),
        origin="MNIST, training set, in its original files.",
        terms="Creative Commons Attribution-ShareAlike 3.0.",
        citation="Y. LeCun, L. Bottou, Y. Bengio and P. Haffner, Gradient-based learning applied to document "
        "recognition, Proceedings of the IEEE 86, 1998.",
        files={
            "train-images-idx3-ubyte.gz": File(
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                9912422,
                _MNIST + "train-images-idx3-ubyte.gz",
                inside="ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            ),
            "train-labels-idx1-ubyte.gz": File(
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                28881,
                _MNIST + "train-labels-idx1-ubyte.gz",
                inside="65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            ),
        },
    ),
    "montreal": Source(
        shape=(319, 17),
        origin="Ville de Montréal, Comptage des vélos sur les pistes cyclables 2015, "
        "https://donnees.montreal.ca/dataset/velos-comptage.",
        terms="Creative Commons Attribution 4.0.",
        citation="Ville de Montréal, Comptage des vélos sur les pistes cyclables, 2015.",
        files={
            "comptagesvelo2015.csv": File(
                "89d92fab7b2384ff607ebd92708d9be2fdd23d23f7d42c861f6869e24061dbdf",
                31178,
                _github(
                    "tdhock/montreal-velos",
                    "0b3a9be1321943de0cfb2bba821151e421b334fd",
                    "defivelomtl/Comptages cyclistes automatiques par boucles de détection/comptagesvelo2015.csv",
                ),
            ),
        },
    ),
    "newsgroups": Source(
        shape=(2752, 183),
        origin="20 Newsgroups, version 'bydate' (K. Lang; J. Rennie, http://qwone.com/~jason/20Newsgroups/), three "
        "groups, from a copy that differs from the official archive in a few non-ASCII characters.",
        terms="Posts to public newsgroups, handed on for research; no licence is stated.",
        citation="K. Lang, NewsWeeder: learning to filter netnews, ICML 1995.",
        files={
            "20news-bydate-3class.tar.gz": File(
                "976c526c067c262d55b97dac54208689a8f21b16b420fb0aca531713be94b8a7",
                1937218,
                inside="f609f22ae5a468b6bfa666d28d1238805b2f0c3c8d79a2ebf18375c5e7d2268d",
            ),
        },
        obtain="in the folder data of https://github.com/julenminer/mlnn_P65 (commit 7393be66) run "
        "tar czf 20news-bydate-3class.tar.gz 20news-bydate-*/{alt.atheism,comp.sys.mac.hardware,sci.med}",
    ),
    "spam": Source(
        shape=(5480, 214),
        origin="SMS Spam Collection v.1, https://archive.ics.uci.edu/dataset/228/sms+spam+collection.",
        terms="Free of charge; copyright is with the authors, there is no warranty, and a citation is asked for.",
        citation="T. A. Almeida, J. M. Gómez Hidalgo and A. Yamakami, Contributions to the study of SMS spam "
        "filtering: new collection and results, DocEng 2011.",
        files={
            "SMSSpamCollection": File(
                "7d039a24a6083ed9ef0f806ebad56bbb976e3aeb8de05669173bfdc4996c239d",
                477907,
                _github("AlexandreBoult/Spam-Filter", "810a5cda5aad439b0a031f0f4eb81e99f6408358", "SMSSpamCollection"),
            ),
        },
    ),
    "yale": Source(
        shape=(165, 1024),
        origin="Yale Face Database, http://vision.ucsd.edu/content/yale-face-database, whole or in the 32 x 32 "
        "crop of D. Cai.",
        terms="Restricted: free for research, which must acknowledge the Yale Face Database and cite Belhumeur "
        "et al. (1997). Without permission from Yale its images must not become part of a larger database that is then "
        "distributed publicly.",
        citation="P. N. Belhumeur, J. P. Hespanha and D. J. Kriegman, Eigenfaces vs. Fisherfaces: recognition using "
        "class specific linear projection, IEEE Transactions on Pattern Analysis and Machine Intelligence 19, 1997.",
        files={
            "Yale_32x32.mat": File("beb3cc9f448c1ab786583c8f5429368c299843ee88263f9650ed463004ef7633", 161026),
            "yalefaces_gif.tar.gz": File(
                "99aa4e335f4063730ee09dc3ab0064f1c434bb46b6a1f90088bf9b03f97961ce",
                6022816,
                inside="94997db3b1f5d1e987f73c9ac048afd73c476778539b623664a76c352e85fd4a",
            ),
        },
        obtain="take Yale_32x32.mat from http://www.cad.zju.edu.cn/home/dengcai/Data/FaceData.html; for "
        "yalefaces_gif.tar.gz run tar czf yalefaces_gif.tar.gz yalefaces/*.gif in "
        "https://github.com/mgcy/yalefaces_PCA (commit 0a925c15)",
    ),
}

"""The paper's data: its simulation, and the real tables of its experiments."""

from .bicycles import load_bridges, load_montreal
from .images import load_cifar10, load_mnist, load_yale
from .s_curve import make_s_curve
from .spikes import load_hippocampus
from .text import load_congress109, load_newsgroups, load_spam

__all__ = [
    "load_bridges",
    "load_cifar10",
    "load_congress109",
    "load_hippocampus",
    "load_mnist",
    "load_montreal",
    "load_newsgroups",
    "load_spam",
    "load_yale",
    "make_s_curve",
]

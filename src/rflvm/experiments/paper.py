"""What the paper reports (Table 1): accuracy of one nearest neighbour, mean and standard error of five runs."""

METHODS = ("pca", "nmf", "isomap", "vae", "dla-gplvm", "gaussian-rflvm", "poisson-rflvm", "negative-binomial-rflvm")

_ROWS = {
    "bridges": "0.8469 0.0067  0.8664 0.0164  0.8375 0.0240  0.8141 0.0301  0.8578 0.0101  0.8512 0.0134  0.8440 0.0165  0.8664 0.0191",  # noqa: E501
    "cifar10": "0.2651 0.0019  0.2450 0.0028  0.2716 0.0056  0.2711 0.0083  0.2641 0.0063  0.2755 0.0132  0.2789 0.0080  0.2656 0.0048",  # noqa: E501
    "congress109": "0.5558 0.0098  0.5263 0.0108  0.5239 0.0178  0.6563 0.0314  0.7815 0.0185  0.5693 0.0107  0.7673 0.0109  0.8093 0.0154",  # noqa: E501
    "mnist": "0.3794 0.0146  0.2764 0.0197  0.4408 0.0192  0.6512 0.0228  0.3820 0.0121  0.5569 0.0503  0.6494 0.0210  0.4463 0.0313",  # noqa: E501
    "montreal": "0.6802 0.0099  0.6878 0.0207  0.7049 0.0098  0.6702 0.0325  0.2885 0.0001  0.7533 0.0165  0.8158 0.0210  0.7530 0.0478",  # noqa: E501
    "newsgroups": "0.3896 0.0043  0.3892 0.0042  0.4021 0.0098  0.3926 0.0113  0.3687 0.0077  0.4006 0.0083  0.4144 0.0029  0.4045 0.0044",  # noqa: E501
    "spam": "0.8454 0.0037  0.8237 0.0040  0.8272 0.0047  0.9028 0.0128  0.9521 0.0069  0.8616 0.0051  0.9515 0.0023  0.9443 0.0035",  # noqa: E501
    "yale": "0.5442 0.0129  0.4739 0.0135  0.5891 0.0155  0.6327 0.0209  0.4788 0.0991  0.6179 0.0092  0.6894 0.0295  0.5394 0.0117",  # noqa: E501
}


def _pairs(row: str) -> dict[str, tuple[float, float]]:
    numbers = [float(word) for word in row.split()]
    return dict(zip(METHODS, zip(numbers[::2], numbers[1::2], strict=True), strict=True))


ACCURACY = {dataset: _pairs(row) for dataset, row in _ROWS.items()}

import pytest

from rflvm import likelihoods
from rflvm.data.checks import check_choice
from rflvm.numerics.names import hint, plain


@pytest.mark.parametrize("name", ["Student-t", "student_t", " STUDENT T"])
def test_a_name_is_the_same_in_every_spelling(name):
    assert plain(name) == "student_t"
    assert likelihoods.get(name) == likelihoods.StudentT()


def test_a_family_is_known_by_its_abbreviation():
    assert likelihoods.get("NB") == likelihoods.NegativeBinomial()
    assert likelihoods.get("zinb") == likelihoods.ZeroInflatedNegativeBinomial()


def test_a_name_that_is_close_is_asked_for():
    assert hint("Possion", ["poisson", "bernoulli"]) == "; did you mean 'poisson'?"
    assert hint("umap", ["poisson", "bernoulli"]) == hint(3, ["poisson"]) == ""
    with pytest.raises(ValueError, match=r"likelihood 'possion': expected .* did you mean 'poisson'\?$"):
        likelihoods.get("possion")
    with pytest.raises(ValueError, match=r"inference must be one of .* got 'gibs'; did you mean 'gibbs'\?$"):
        check_choice("inference", "gibs", ("gibbs", "map"))

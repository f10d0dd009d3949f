"""Sentences that can be reworded in other words, and the errors that carry them."""

from __future__ import annotations

import copy
import pickle

import pytest

from rflvm.numerics.errors import InputError, InputTypeError, Sentence, reworded

NAMES = {"n_burnin": "--burnin", "more": "give --resume", "nothing": ""}


def place(row, column):
    return f"line {row + 2}" if column is None else f"line {row + 2}, column {column + 1}"


def test_a_sentence_is_text_in_the_words_of_the_library():
    sentence = Sentence("raise {n_burnin} ({n} now): {more:call more_samples(n)}{nothing:, or fit again}", n=5)
    assert sentence == "raise n_burnin (5 now): call more_samples(n), or fit again"
    assert sentence.reworded(NAMES) == "raise --burnin (5 now): give --resume"


def test_a_place_is_told_by_whoever_knows_the_table():
    sentence = Sentence("{where:Y[{row}, {column}]} is {value:g}", row=3, column=0, value=1.5)
    assert sentence == "Y[3, 0] is 1.5"
    assert sentence.reworded({}, place) == "line 5, column 1 is 1.5"
    assert Sentence("{where:row {row} of Y} is empty", row=3).reworded({}, place) == "line 5 is empty"
    assert Sentence("{where:somewhere} is empty").reworded({}, place) == "somewhere is empty"


def test_values_are_never_taken_for_fields():
    hostile = "{n_burnin} {0} {"
    sentence = Sentence("{parameter} must be 1, got {value}", parameter="n_burnin", value=hostile)
    assert sentence == f"n_burnin must be 1, got {hostile}"
    assert sentence.reworded(NAMES) == f"--burnin must be 1, got {hostile}"


def test_sentences_in_sentences_are_told_too():
    cell = Sentence("{where:Y[{row}, {column}]} = 2", row=1, column=4)
    error = InputError("poisson: {cell}; raise {n_burnin}", cell=cell)
    assert str(error) == "poisson: Y[1, 4] = 2; raise n_burnin"
    assert reworded(error, NAMES, place) == "poisson: line 3, column 5 = 2; raise --burnin"
    assert (error.row, error.column, error.parameter) == (1, 4, None)


@pytest.mark.parametrize(("kind", "builtin"), [(InputError, ValueError), (InputTypeError, TypeError)])
def test_errors_carry_their_parts_also_to_another_process(kind, builtin):
    error = kind("{parameter} must not be {value} in {where:row {row}}", parameter="n_burnin", value="{x}", row=7)
    assert isinstance(error, builtin)
    for same in (error, copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(same) is kind
        assert str(same) == "n_burnin must not be {x} in row 7"
        assert (same.parameter, same.row, same.column) == ("n_burnin", 7, None)
        assert reworded(same, NAMES, place) == "--burnin must not be {x} in line 9"


def test_what_is_no_sentence_is_told_as_it_is():
    assert reworded(KeyError("n_burnin"), NAMES) == "'n_burnin'"
    assert reworded(ValueError(), NAMES) == ""
    assert reworded("raise n_burnin", NAMES) == "raise n_burnin"

"""Tables and verdicts that read the same on every machine."""

import re

import numpy as np
import pytest
import torch

from genaudit.report import agreement, print_table


def test_a_table_lines_up(capsys):
    print_table(["t", "alpha-bar"], [["1", "0.9999"], ["1000", "0.00004"]])
    assert capsys.readouterr().out == (
        "t     alpha-bar\n----  ---------\n1        0.9999\n1000    0.00004\n"
    )


def test_wide_cells_widen_their_column_and_no_line_ends_in_blanks(capsys):
    print_table(["what", "x"], [["a longer name", ""], ["b", "12345"]])
    assert capsys.readouterr().out.splitlines() == [
        "what               x",
        "-------------  -----",
        "a longer name",
        "b              12345",
    ]


def test_a_table_may_have_no_rows(capsys):
    print_table(["a", "b"], [])
    assert capsys.readouterr().out == "a  b\n-  -\n"


def test_a_row_of_another_length_is_named():
    message = "row ['1'] has 1 cells, headers have 2: the numbers must be equal"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        print_table(["a", "b"], [["1", "2"], ["1"]])


def test_agreement_says_so_without_digits():
    close = torch.tensor([1.0, 2.0], dtype=torch.float64)
    assert agreement(close, close + 1e-13) == "agrees, difference < 1e-12"
    assert agreement(0.5, np.float64(0.5)) == "agrees, difference < 1e-12"
    assert agreement([1, 2], [1.0, 2.0], 1e-6) == "agrees, difference < 1e-06"
    assert agreement(1.0, 1.2, tolerance=0.25) == "agrees, difference < 0.25"


@pytest.mark.parametrize(
    "computed, right",
    [
        (1.0, 1.0 + 1e-11),
        (1.0 + 1e-11, 1.0),
        ([1.0, 2.0], [1.0, 2.5]),
        (float("nan"), 1.0),
        (1.0, float("nan")),
        ([1.0, float("nan")], [1.0, float("nan")]),
        (float("inf"), float("inf")),
    ],
)
def test_disagreement_is_an_error(computed, right):
    exact = torch.tensor(right, dtype=torch.float64)
    with pytest.raises(AssertionError, match="which is not below 1e-12$"):
        agreement(torch.tensor(computed, dtype=torch.float64), exact)


def test_the_tolerance_itself_is_too_far():
    with pytest.raises(AssertionError):
        agreement(torch.tensor(1.0), torch.tensor(1.5), tolerance=0.5)


def test_disagreement_shows_both_sides():
    message = "[1.0, 2.0] and [1.0, 2.5] differ by 0.5, which is not below 0.1"
    with pytest.raises(AssertionError, match=f"^{re.escape(message)}$"):
        agreement([1.0, 2.0], [1.0, 2.5], 0.1)


def test_python_numbers_are_compared_at_full_length():
    with pytest.raises(AssertionError):
        agreement(0.1, 0.1 + 1e-10)


def test_results_of_different_shapes_are_not_stretched_over_each_other():
    with pytest.raises(ValueError, match=r"computed has shape \(2, 1\), exact has"):
        agreement(torch.ones(2, 1), torch.ones(2))
    assert agreement(torch.ones(2, 3), 1.0) == "agrees, difference < 1e-12"

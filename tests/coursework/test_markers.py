"""Markers: what a student gets, and every way in which a marker can be wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

from coursework.markers import (
    BEGIN,
    END,
    public_lines,
    solution_lines,
    student_source,
)

WHERE = "gan.ipynb, cell area"
ANSWER = {"nbgrader": {"solution": True}}
FUNCTION = f'''def area(r):
    """Of a disc."""
    {BEGIN}
    square = r**2

    return 3 * square
    {END}


area(1)'''


def code(source, metadata=ANSWER):
    return new_code_cell(source, metadata=metadata)


def region(*lines):
    return "\n".join([BEGIN, *lines, END])


def test_a_function_keeps_its_head_and_gets_a_stub_in_its_body():
    assert student_source(code(FUNCTION), WHERE) == (
        'def area(r):\n    """Of a disc."""\n    # YOUR CODE HERE\n'
        "    raise NotImplementedError\n\n\narea(1)"
    )


def test_every_region_of_a_cell_is_replaced():
    source = f"a = 1\n{region('b = 2')}\nc = 3\n{region('d = 4')}"
    stub = "# YOUR CODE HERE\nraise NotImplementedError"
    assert student_source(code(source), WHERE) == f"a = 1\n{stub}\nc = 3\n{stub}"


def test_a_model_answer_becomes_a_line_for_the_students():
    cell = new_markdown_cell(region("By parts.", "", "Rubric: 1."), metadata=ANSWER)
    assert student_source(cell, WHERE) == "YOUR ANSWER HERE"


@pytest.mark.parametrize("ending", ["  ", "\t", "\r"])
def test_blanks_behind_a_marker_do_no_harm(ending):
    source = FUNCTION.replace(BEGIN, BEGIN + ending).replace(END, END + ending)
    assert student_source(code(source), WHERE) == student_source(code(FUNCTION), WHERE)


def test_a_cell_without_solution_stays():
    assert student_source(code("a = 1\n\nb = 2\n", {}), WHERE) == "a = 1\n\nb = 2\n"


@given(
    st.lists(
        st.tuples(st.booleans(), st.lists(st.sampled_from("abc"), min_size=1)),
        min_size=1,
    )
)
def test_each_line_is_either_public_or_solution(parts):
    parts = [(secret, [f"{n}{x}" for x in xs]) for n, (secret, xs) in enumerate(parts)]
    lines = [[BEGIN, *lines, END] if secret else lines for secret, lines in parts]
    source = "\n".join(line for part in lines for line in part)
    inside = [line for secret, lines in parts if secret for line in lines]
    outside = [line for secret, lines in parts if not secret for line in lines]
    assert solution_lines(source, WHERE) == inside
    assert public_lines(source, WHERE) == outside


def refused(source, cell=code):
    with pytest.raises(ValueError, match="^gan.ipynb, cell area") as error:
        student_source(cell(source), WHERE)
    return str(error.value)


def test_a_solution_in_a_solution():
    assert "line 3: ### BEGIN" in refused(region("a = 1", region("b = 2")))


def test_a_solution_without_an_end():
    assert "line 2: ### BEGIN SOLUTION without" in refused(f"a = 1\n{BEGIN}\nb = 2")


def test_an_end_without_a_solution():
    assert "line 1: ### END SOLUTION without" in refused(f"{END}\n{region('b = 2')}")


def test_an_end_twice():
    assert "line 4: ### END SOLUTION without" in refused(f"{region('b = 2')}\n{END}")


@pytest.mark.parametrize("lines", [(), ("", "   ")])
def test_an_empty_solution(lines):
    assert "line 1: the solution is empty" in refused(region(*lines))


def test_a_stub_would_stand_outside_of_its_function():
    source = FUNCTION.replace(f"    {BEGIN}", BEGIN)
    assert "line 4: must be indented as" in refused(source)


def test_a_solution_in_a_cell_that_is_no_answer():
    for metadata in ({}, {"nbgrader": {}}, {"nbgrader": {"solution": False}}):
        said = refused(region("a = 1"), lambda source, m=metadata: code(source, m))
        assert "BEGIN SOLUTION in a code cell whose nbgrader metadata" in said


def test_a_solution_in_a_raw_cell():
    cell = lambda source: new_raw_cell(source, metadata=ANSWER)  # noqa: E731
    assert "in a raw cell" in refused(region("a = 1"), cell)


def test_an_answer_without_a_solution():
    assert "no line is ### BEGIN SOLUTION" in refused("a = 1")


def one_off(marker):
    """All that a slip of one key makes of a marker."""
    for place in range(len(marker)):
        yield marker[:place] + marker[place + 1 :]
        yield marker[:place] + marker[place] + marker[place:]
        yield marker[:place] + "x" + marker[place + 1 :]
        yield marker[:place] + marker[place : place + 2][::-1] + marker[place + 2 :]


@pytest.mark.parametrize("marker", [BEGIN, END])
def test_a_slip_of_one_key(marker):
    slips = set(one_off(marker)) - {marker}
    for slip in slips | {slip.lower() for slip in slips}:
        assert "is no marker" in refused(FUNCTION.replace(marker, slip))


@pytest.mark.parametrize(
    "line",
    [
        "### begin solution",
        "### Begin Solution",
        "# BEGIN SOLUTION",
        "#BEGIN SOLUTION",
        "BEGIN SOLUTION",
        "### BEGIN  SOLUTION",
        "###\N{NO-BREAK SPACE}BEGIN SOLUTION",
        "\N{NO-BREAK SPACE}### BEGIN SOLUTION",
        "### BEGIN SOLUTION of part 2",
        "### begn solution somewhere else",
        "a = 1  # begin solution of part 2",
        "### BEGIN SOLUTION ###",
        "a = 1  ### BEGIN SOLUTION",
        "a = 1  # begin solution",
        "### \N{CYRILLIC CAPITAL LETTER VE}EGIN SOLUTION",
        "### SOLUTION BEGIN",
        "### solution end",
        "### SOLUTION",
        "### BEGIN",
        "### END",
        "### START SOLUTION",
        "### Stop solution",
        "### BEGIN ANSWER",
        "### BEGIN HIDDEN TESTS",
        "### end hidden tests",
        "### BEGIN MARK SCHEME",
        "<!-- begin solution -->",
    ],
)
def test_a_line_that_resembles_a_marker(line):
    assert f"line 2: {line.strip(' ')!r} is no marker" in refused(f"a = 1\n{line}")
    assert "line 4: " in refused(region("a = 1", "b = 2", line))


@pytest.mark.parametrize(
    "line",
    [
        "### Begin with the prior",
        "## The end",
        "# The solution by quadrature",
        "# no solution yet",
        "The solution begins with the prior, and in the end nothing is left.",
        "solution = 1  # in closed form",
        "begin, end = 0, 1",
        "# hidden units, tests below",
    ],
)
def test_a_line_that_does_not_resemble_a_marker(line):
    assert student_source(code(line, {}), WHERE) == line

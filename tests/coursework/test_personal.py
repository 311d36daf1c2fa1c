"""The course key, and the constants that it deals out."""

import hashlib
import re

import pytest

from coursework import personal
from coursework.checks import Exercise
from coursework.personal import constants_of, read_key
from tests.guards.notebook import ROOT

KEY = b"0123456789abcdef"
EXERCISE = Exercise(
    title="A coin",
    chapter="elbo",
    checks=[],
    constants={"x": [1.2, 0.9, -1.1], "word": ["up", "down"], "n": [7]},
)


def hmac_by_hand(key, message):
    """HMAC as its standard writes it, for a key of at most a block."""
    inner, outer = (
        bytes(a ^ pad for a in key.ljust(64, b"\0")) for pad in (0x36, 0x5C)
    )
    return hashlib.sha256(outer + hashlib.sha256(inner + message).digest()).digest()


@pytest.mark.parametrize("student", ["101", "Jane Doe", "a|b", "Jos\xe9"])
def test_a_value_is_picked_by_the_hmac_of_exercise_student_and_name(student):
    expected = {
        name: values[
            int.from_bytes(hmac_by_hand(KEY, f"A coin|{student}|{name}".encode()))
            % len(values)
        ]
        for name, values in EXERCISE.constants.items()
    }
    assert constants_of(EXERCISE, student, KEY) == expected
    assert list(constants_of(EXERCISE, student, KEY)) == ["x", "word", "n"]


def test_an_identity_that_is_no_proper_text_has_constants_too():
    assert constants_of(EXERCISE, "\ud800", KEY).keys() == EXERCISE.constants.keys()


def test_every_combination_is_dealt_out():
    dealt = [constants_of(EXERCISE, str(number), KEY) for number in range(200)]
    assert len({(each["x"], each["word"]) for each in dealt}) == 6


def test_another_key_deals_otherwise():
    students = [str(number) for number in range(20)]
    one, other = (
        [constants_of(EXERCISE, each, key) for each in students]
        for key in (KEY, KEY[::-1])
    )
    assert one != other


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "home/course.key"
    path.parent.mkdir()
    path.write_bytes(KEY)
    return path


def test_a_key_is_read(key_file):
    assert read_key(key_file) == KEY


def test_an_editor_may_have_ended_the_line(key_file):
    key_file.write_bytes(KEY + b"\r\n")
    assert read_key(key_file) == KEY


@pytest.mark.parametrize("content", [KEY[1:], KEY[1:] + b"\n", b""])
def test_a_short_key(key_file, content):
    key_file.write_bytes(content)
    rule = f"{len(content.strip())} bytes; a course key has 16 or more.*token_hex"
    with pytest.raises(ValueError, match=f"course.key: {rule}"):
        read_key(key_file)


def test_the_way_to_make_a_key_that_is_recommended_works(key_file, capsys):
    with pytest.raises(ValueError) as error:
        read_key(key_file.with_name("none.key"))
    (script,) = re.findall(r'python -c "(.*)" > course.key', str(error.value))
    exec(script)
    key_file.write_text(capsys.readouterr().out)
    assert len(read_key(key_file)) == 64


@pytest.mark.parametrize("mark", [".git/HEAD", ".git"])
def test_a_key_in_a_repository(key_file, mark):
    path = key_file.parents[1] / mark
    path.parent.mkdir(exist_ok=True)
    path.write_text("of a repository, or of a worktree")
    with pytest.raises(ValueError, match="the course key lies in .*keep it outside"):
        read_key(key_file)


def test_a_link_to_a_key_in_a_repository(key_file, tmp_path):
    (key_file.parent / ".git").mkdir()
    link = tmp_path / "link.key"
    link.symlink_to(key_file)
    with pytest.raises(ValueError, match="link.key: the course key lies in"):
        read_key(link)


def test_a_key_in_the_book_even_if_it_was_downloaded_without_its_history(
    key_file, monkeypatch
):
    assert personal._BOOK == ROOT
    monkeypatch.setattr(personal, "_BOOK", key_file.parent)
    with pytest.raises(ValueError, match="the course key lies in .*home, from"):
        read_key(key_file)

"""The constants of each student, drawn by a key that only the instructor has."""

import hmac
from pathlib import Path

from coursework.checks import Exercise, Given

SHORTEST = 16
_MAKE = 'python -c "import secrets; print(secrets.token_hex(32))" > course.key'
_BOOK = Path(__file__).resolve().parents[2]


def read_key(path: Path) -> bytes:
    """The course key: a file of at least 16 bytes that lies in no repository."""
    place = path.resolve()
    for folder in place.parents:
        if folder == _BOOK or (folder / ".git").exists():
            raise ValueError(
                f"{path}: the course key lies in {folder}, from where it could be "
                "published with the rest; keep it outside"
            )
    try:
        key = place.read_bytes().strip()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}; make a key by {_MAKE}") from None
    if len(key) < SHORTEST:
        raise ValueError(
            f"{path}: {len(key)} bytes; a course key has {SHORTEST} or more, make one "
            f"by {_MAKE}"
        )
    return key


def constants_of(exercise: Exercise, student_id: str, key: bytes) -> Given:
    """The constants of one student.

    They depend on the key, the student, the names of the constants and the exercise's
    title, so these must stay as they are between release and grading.
    """
    return {
        name: values[_draw(key, exercise.title, student_id, name) % len(values)]
        for name, values in exercise.constants.items()
    }


def _draw(key: bytes, *names: str) -> int:
    """A number of 256 bits that nobody without the key can tell from a random one."""
    message = "|".join(names).encode("utf8", "surrogatepass")
    return int.from_bytes(hmac.digest(key, message, "sha256"))

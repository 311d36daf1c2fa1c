"""What all tests of coursework share."""

import sys

import pytest


@pytest.fixture(scope="session", autouse=True)
def _no_folder_stays():
    """Remove what grading keeps while its process runs: a test worker ends abruptly."""
    yield
    if "coursework.grade" in sys.modules:
        sys.modules["coursework.grade"]._scratch().cleanup()

"""The stored pictures of the book are what tools/pictures.py draws."""

import numpy as np
import pytest
from PIL import Image

from tools import pictures

SIZES = {"title.webp": (1280, 320), "card.jpg": (1200, 630)}
MOST = 1.0  # mean difference of a channel, of 255; another encoder stays far below


def difference(one, other):
    arrays = [
        np.asarray(Image.open(file).convert("RGB"), float) for file in (one, other)
    ]
    return np.abs(arrays[0] - arrays[1]).mean()


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawn")
    pictures.main(folder)
    return folder


def test_symbol_is_stored_as_drawn(drawn):
    stored = (pictures.FOLDER / "symbol.svg").read_text()
    assert stored == (drawn / "symbol.svg").read_text() == pictures.symbol()


@pytest.mark.parametrize("name", SIZES)
def test_picture_is_stored_as_drawn(drawn, name):
    assert Image.open(drawn / name).size == SIZES[name]
    assert difference(drawn / name, pictures.FOLDER / name) < MOST


def test_another_walk_is_seen(drawn, tmp_path):
    picture = Image.open(drawn / "title.webp").convert("RGB")
    picture.transpose(Image.Transpose.FLIP_TOP_BOTTOM).save(tmp_path / "other.webp")
    assert (
        difference(tmp_path / "other.webp", pictures.FOLDER / "title.webp") > 5 * MOST
    )

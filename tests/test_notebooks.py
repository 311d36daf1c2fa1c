"""Every guard on every chapter; what the cells print is compared by nbval itself."""

import pytest

from tests.guards import code, markdown, outputs, prose, seeds
from tests.guards.notebook import CHAPTERS, PAGES, ROOT, Chapter

GUARDS = [
    code.narrow,
    code.prints_f_strings,
    seeds.seeded,
    code.sets_up,
    code.still,
    markdown.raw,
    outputs.checked,
    outputs.described,
    outputs.executed,
    outputs.in_one_form,
    outputs.readable,
    outputs.small,
]


def require_none(path, faults):
    lines = [f"{path.relative_to(ROOT)}, {fault}" for fault in faults]
    assert not lines, "\n".join(lines)


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.__name__)
@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapter(path, guard):
    require_none(path, guard(Chapter(path)))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_numbers_in_the_text(path):
    require_none(path, prose.bound(Chapter(path)))


def test_listed_chapters_exist():
    assert set(prose.listed()) <= {path.stem for path in PAGES}


def test_listed_reasons_belong_to_cells():
    cells = {(path.stem, cell.id) for path in CHAPTERS for cell in Chapter(path).code}
    assert set(outputs.UNCHECKED) <= cells


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("src/genaudit/**/*.py")), ids=lambda path: path.stem
)
def test_package_seeds_what_it_draws(path):
    require_none(path, seeds.unseeded_in_file(path))

"""Each guard catches the fault it is there for, planted in a notebook made here."""

import os
import re
import subprocess
import sys
from decimal import Decimal

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests.guards import code, markdown, outputs, prose, seeds
from tests.guards.notebook import CHAPTERS, ROOT, Chapter
from tests.guards.numbers import in_prose
from tests.test_notebooks import GUARDS
from tools import pins
from tools.boundary import Field
from tools.normal import WIDGET, as_text, final_state, normalise
from tools.pins import moved, run

GOOD = 'gap = 0.25 + 1 / 7\nprint(f"gap {gap:.9f} nats after {5_000:,} throws")'
PRINTS = "gap 0.392857143 nats after 5,000 throws\n"
TEXT = "The gap is $0.3929$ nats, from a quarter, $0.25$, and a seventh."


def stream(text, name="stdout"):
    return new_output("stream", name=name, text=text)


def picture(**forms):
    return new_output("display_data", data={"image/png": "aGk=", **forms})


def cell(source=GOOD, *shown, name="audit", count=1, **metadata):
    return new_code_cell(
        source,
        id=name,
        outputs=list(shown) or [stream(PRINTS)],
        execution_count=count,
        metadata=metadata,
    )


def text(source=TEXT, name="reading"):
    return new_markdown_cell(source, id=name)


@pytest.fixture
def write(tmp_path):
    """Store cells as a chapter, in the one form unless told otherwise."""

    def store(*cells, raw=False, name="page"):
        notebook = new_notebook(cells=list(cells))
        path = tmp_path / f"{name}.ipynb"
        path.write_text(
            nbformat.writes(notebook) if raw else as_text(normalise(notebook))
        )
        return Chapter(path)

    return store


# A chapter of one cell has no setup cell, so that guard has tests of its own.
ALL_BUT_SETUP = [guard for guard in [*GUARDS, prose.bound] if guard is not code.sets_up]


@pytest.mark.parametrize("guard", ALL_BUT_SETUP)
def test_a_good_chapter_has_no_faults(write, guard):
    assert list(guard(write(cell(), text()))) == []


def only_fault(guard, chapter, place="audit"):
    """Return the one fault found, which has to name its cell."""
    (fault,) = guard(chapter)
    assert fault.startswith(f"{place}: ")
    return fault


# What is stored under the cells


def test_a_cell_without_its_run(write):
    chapter = write(cell(count=None), raw=True)
    assert "was not run" in only_fault(outputs.executed, chapter)


def test_a_count_out_of_order(write):
    chapter = write(cell(count=7), raw=True)
    assert "7, not 1" in only_fault(outputs.executed, chapter)


def test_an_error_output(write):
    error = new_output("error", ename="ValueError", evalue="k > n", traceback=[])
    assert "ValueError: k > n" in only_fault(
        outputs.executed, write(cell("f()", error))
    )


def test_a_chapter_without_outputs(write):
    silent = cell("a = 1")
    silent.outputs = []
    assert "nor any other" in only_fault(outputs.executed, write(silent))


@pytest.mark.parametrize(
    "extra",
    [
        {"metadata": {"kernelspec": {"name": "my-laptop", "display_name": "Mine"}}},
        {"metadata": {"widgets": {"state": {}}}},
        {"nbformat_minor": 4},
    ],
)
def test_a_notebook_not_in_the_one_form(write, extra):
    chapter = write(cell())
    notebook = normalise(chapter.notebook)
    notebook.update(extra)
    chapter.stored = nbformat.v4.writes(notebook) + "\n"
    chapter.notebook = notebook
    assert "make pins" in only_fault(outputs.in_one_form, chapter, "the file")


def test_a_cell_not_in_the_one_form(write):
    chapter = write(cell(GOOD, stream("gap "), stream("0.39\n")), raw=True)
    assert "make pins" in only_fault(outputs.in_one_form, chapter)


@pytest.mark.parametrize(
    "tag", ["nbval-skip", "nbval-ignore-output", "raises-exception"]
)
def test_a_tag_that_skips(write, tag):
    assert tag in only_fault(outputs.checked, write(cell(tags=[tag])))


def test_a_comment_that_skips(write):
    chapter = write(cell(f"# NBVAL_IGNORE_OUTPUT\n{GOOD}"))
    assert "NBVAL_IGNORE_OUTPUT" in only_fault(outputs.checked, chapter)


def test_a_tag_with_a_listed_reason(write, monkeypatch):
    monkeypatch.setitem(outputs.UNCHECKED, ("page", "audit"), "prints the time of day")
    assert list(outputs.checked(write(cell(tags=["nbval-skip"])))) == []


@pytest.mark.parametrize(
    "shown",
    [
        stream("<object at 0x7f2c5c0b9d90>\n"),
        stream("0.3928571428571429\n"),
        stream("page.py:3: RuntimeWarning: divide by zero\n", "stderr"),
        new_output("execute_result", data={"text/plain": "tensor(0.3929)"}),
    ],
)
def test_an_output_that_cannot_be_pinned(write, shown):
    only_fault(outputs.readable, write(cell(GOOD, shown)))


def test_a_figure_without_alt_text(write):
    assert "alt" in only_fault(outputs.described, write(cell("plt.plot()", picture())))


def test_a_figure_with_alt_text(write):
    described = cell("plot()", picture(), mystnb={"image": {"alt": "a falling line"}})
    assert list(outputs.described(write(described))) == []


@pytest.mark.parametrize(("alt", "faults"), [("", 1), (' alt=" "', 1), (' alt="a"', 0)])
def test_an_explorer_needs_alt_text(write, alt, faults):
    shown = picture(**{"text/html": f'<form><img src="data:,"{alt}></form>'})
    assert len(list(outputs.described(write(cell("explore()", shown))))) == faults


@pytest.mark.parametrize("image", ["![](a.svg)", '<img src="a.svg">'])
def test_an_image_in_the_text_without_alt_text(write, image):
    only_fault(outputs.described, write(text(image)), "reading")


def test_a_large_explorer(write):
    shown = picture(**{"text/html": "x" * (outputs.EXPLORER_BYTES + 1)})
    only_fault(outputs.small, write(cell("explore()", shown)))


def test_a_large_notebook(write):
    filled = text("x" * outputs.NOTEBOOK_BYTES)
    only_fault(outputs.small, write(filled), "the file")


# What stands in the code cells


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch.randn(3)",
        "from torch import randn as draw\ndraw(3)",
        "import torch\ntorch.rand_like(x)",
        "import torch\ng = torch.Generator()\ntorch.randn(3, generator=g)",
        "import torch\ng = torch.Generator()\ng.seed()",
        "import torch\ntorch.empty(3).normal_()",
        "import torch\ntorch.distributions.Normal(0, 1).sample((3,))",
        "import torch\nmixture.sample(3, torch.Generator())",
        "from torch import nn\nnn.Linear(1, 2)",
        "from torch.utils.data import DataLoader\nDataLoader(x, shuffle=True)",
        "import numpy as np\nnp.random.normal(3)",
        "import numpy as np\nnp.random.default_rng()",
        "from numpy.random import default_rng\ndefault_rng(None)",
        "from scipy.stats import norm\nnorm.rvs(3)",
        "import random\nrandom.gauss(0, 1)",
        "import torch\nimport numpy as np\ntorch.manual_seed(1)\nnp.random.rand(2)",
    ],
)
def test_an_unseeded_generator(write, source):
    assert "without a seed" in list(seeds.seeded(write(cell(source))))[0]


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch.manual_seed(1)\ntorch.randn(3)\ntorch.nn.Linear(1, 2)",
        "import torch\ng = torch.Generator().manual_seed(1)\nx.random_(generator=g)",
        "import torch\ng = torch.Generator()\ng.manual_seed(1)\nmixture.sample(3, g)",
        "import numpy as np\nrng = np.random.default_rng(6050)\nrng.random(3)",
        "import torch\nmixture.sample(3, torch.Generator().manual_seed(1))",
        "import torch\na = torch.Generator().manual_seed(1)\nmixture.sample(3, a)",
        "import numpy as np\nnp.random.seed(1)\nnp.random.rand(3)",
        "from scipy.stats import norm\nnorm.rvs(3, random_state=1)",
        "from torch import nn\nclass Net(nn.Module):\n    layer = nn.Linear(1, 2)",
        "import random\nrandom.Random(3).gauss(0, 1)",
    ],
)
def test_a_seeded_generator(write, source):
    assert list(seeds.seeded(write(cell(source)))) == []


def test_a_seed_in_another_cell_does_not_count(write):
    seed = cell("import torch\ntorch.manual_seed(1)", name="seed")
    chapter = write(seed, cell("torch.randn(3)"))
    assert "torch.randn" in only_fault(seeds.seeded, chapter)


def test_the_package_may_not_draw_without_a_generator(tmp_path):
    module = tmp_path / "room.py"
    module.write_text(
        "import torch\n"
        "def good(generator):\n    return torch.randn(3, generator=generator)\n"
        "def bad():\n    return torch.randn(3)\n"
        "def seeded():\n    torch.manual_seed(1)\n    return torch.randn(3)\n"
    )
    (fault,) = seeds.unseeded_in_file(module)
    assert fault.startswith("room.py: line 5, torch.randn")


@pytest.mark.parametrize(
    "call",
    ["print(gap)", 'print("gap", gap)', 'print("%f" % gap)', 'print("{}".format(gap))'],
)
def test_a_print_without_an_f_string(write, call):
    assert "not an f-string" in only_fault(code.prints_f_strings, write(cell(call)))


@pytest.mark.parametrize(
    "call",
    [
        "print()",
        'print("gap")',
        'print(f"{gap:.3f}", f"{gap:.5f}", sep=" or ")',
        'print("gap " + f"{gap:.3f}")',
        'print("\\n".join(f"{gap:.3f}" for gap in gaps))',
    ],
)
def test_a_print_of_texts(write, call):
    assert list(code.prints_f_strings(write(cell(call)))) == []


def test_a_wide_line(write):
    assert "89 columns" in only_fault(code.narrow, write(cell("#" * 89)))


def test_an_output_that_changes(write):
    assert "clear_output" in only_fault(code.still, write(cell("clear_output()")))


@pytest.fixture
def setup_cell():
    return Chapter(CHAPTERS[0]).code[0].source


def test_the_setup_cell(write, setup_cell):
    assert list(code.sets_up(write(cell(setup_cell, name="setup")))) == []


def test_a_setup_cell_that_differs(write, setup_cell):
    other = write(cell(setup_cell + "\nimport os", name="setup"))
    assert "differs" in only_fault(code.sets_up, other, "setup")
    assert "not the one" in only_fault(code.sets_up, write(cell(setup_cell)))


# What stands in the Markdown cells


@pytest.mark.parametrize(
    "source",
    [
        "see {ref}`elbo`",
        "```{note}\nhello\n```",
        ":::{note}\nhello\n:::",
        ":::\nhello\n:::",
        "(target)=\n# Title",
        "% a comment",
        "+++",
        "![a](a.svg){.wide}",
        "$$\na\n$$ (label)",
        r"as in $\eqref{a}$",
        "[next](gan.html)",
        "[next](gan.ipynb)",
        "[paper](references.md#ref-kingma2014)",
        "[next](/chapters/gan.ipynb)",
        "a note[^1]",
    ],
)
def test_what_only_the_book_can_show(write, source):
    assert "is for the book alone" in list(markdown.raw(write(text(source))))[0]


@pytest.mark.parametrize(
    "source",
    [
        "> **Trap.** A `{role}` in code, or ```{ref}`x` ```, is no role.",
        "```python\n% a\n:::\n```",
        "$\\{x\\}$ and ${a}_{b}$\n\n$$\nf(x) = 1 \\tag{1}\n$$",
        "<details>\n<summary>Predict first</summary>\n\nIt halves.\n\n</details>",
        "[gan](https://a.b/gan.html), [a](https://a.b/references.html#ref-x), [up](#a)",
    ],
)
def test_markdown_that_reads_raw(write, source):
    assert list(markdown.raw(write(text(source)))) == []


# Numbers in the text


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("falls from 5,000 to 4,999.5", ["5000", "4999.5"]),
        (r"$5{,}000$ or $5\,000$", ["5000", "5000"]),
        (r"$a = -0.5772$ and $b-0.25$ and $(c)-0.5$", ["-0.5772", "0.25", "0.5"]),
        (r"$-\log 2 \approx -0.693$, $\log p-0.1$", ["2", "-0.693", "0.1"]),
        (r"$\alpha-0.25$, $\alpha \le -0.25$", ["0.25", "-0.25"]),
        ("\N{MINUS SIGN}1.5 or \N{EN DASH}1.5", ["-1.5", "-1.5"]),
        ("0.25\N{EN DASH}0.75", ["0.25", "0.75"]),
        (r"$4.04\times10^{-5}$, $10^{-12}$, 1e-12", ["0.0000404", "1e-12", "1e-12"]),
        (r"$x_{1.5}^{(2)} e^{-\frac{1}{2.5}}_t y^3$", []),
        (r"$\tfrac12 \times 3$", ["1", "2", "3"]),
        (r"52.5 per cent, 52\% or $52\%$", ["52.5%", "52%", "52%"]),
        ("float64, W1, x0 and version 2.13.0 of it", ["2.13"]),
        (
            "`0.123`, [Ho, 2020](https://a.b/references.html#ref-ho), equation (17)",
            [],
        ),
        ("[the 12 steps](gan.ipynb)", ["12"]),
        (r"$$a = 0.5 \tag{31}$$", ["0.5"]),
        ('<img width="640">', []),
        ("| 0.25 | -0.5 |", ["0.25", "-0.5"]),
        ("of .5 and 0.5.", ["0.5", "0.5"]),
    ],
)
def test_the_numbers_of_a_text(source, names):
    assert [number.name for number in in_prose(source)] == names


@pytest.mark.parametrize(
    ("stated", "printed", "agrees"),
    [
        ("0.1234", "0.12341", True),
        ("0.1234", "0.1234", True),
        ("0.1235", "0.12341", False),
        ("-0.1234", "0.12341", False),
        ("0.12340", "0.1234", False),
        ("0.12", "0.125", False),
        ("0.13", "0.125", False),
        ("12.34%", "0.123412", True),
        ("12.34%", "12.341", True),
        ("1,234.5", "1234.4999", True),
    ],
)
def test_rounding(stated, printed, agrees):
    (number,) = in_prose(stated)
    assert number.rounds(Decimal(printed)) == agrees


def test_a_changed_decimal(write):
    fault = only_fault(prose.bound, write(cell(), text("a gap of 0.3928")), "reading")
    assert "0.3928 is not the rounding" in fault


def test_a_changed_sign(write):
    only_fault(prose.bound, write(cell(), text("a gap of $-0.3929$")), "reading")


def test_a_whole_number_from_nowhere(write):
    assert list(prose.bound(write(cell(), text("after 5,000 throws, 3 left")))) == []
    only_fault(prose.bound, write(cell(), text("after 5,001 throws")), "reading")


def test_a_short_decimal_names_its_output(write):
    def faults(source, **rows):
        return list(prose.bound(write(cell(), text(source)), {"page": rows}))

    listed = {"0.39": "audit"}
    assert "names no output" in faults("a gap of 0.39")[0]
    assert faults("a gap of 0.39", reading=listed) == []
    assert "names no output" in faults("a gap of 0.38", reading=listed)[0]
    assert "that audit prints" in faults("0.38", reading={"0.38": "audit"})[0]
    assert "no code cell" in faults("0.39", reading={"0.39": "nowhere"})[0]
    assert faults("0.38", reading={"0.38": "exempt: a price"}) == []
    assert "without reason" in faults("0.38", reading={"0.38": "exempt: "})[0]
    assert "not in its text" in faults("none", reading=listed)[0]
    assert "no such Markdown" in faults("none", gone=listed)[0]


def test_a_number_of_another_chapter(write):
    write(cell(), name="other")
    rows = {"page": {"reading": {"0.39": "other/audit"}}}
    chapter = write(cell("a = 1", stream("none\n")), text("a gap of 0.39"))
    assert list(prose.bound(chapter, rows)) == []


def test_a_readout_counts_as_printed(write):
    data = '<script type="application/json">{"readouts": ["gap 0.12345"]}</script>'
    shown = picture(**{"text/html": data})
    assert list(prose.bound(write(cell("e()", shown), text("gap 0.1234")))) == [
        "reading: 0.1234 is not the rounding of a number printed in this chapter "
        "(... gap 0.1234 ...)"
    ]
    assert list(prose.bound(write(cell("e()", shown), text("gap 0.12345")))) == []


def test_proposals(write):
    lines = list(prose.propose(write(cell(), text("a gap of 0.39, or 0.38"))))
    assert lines[:2] == ["page:", "  reading:"]
    assert lines[2].startswith('    "0.39": "audit"  # NEW')
    assert lines[3].startswith('    "0.38": "?"')


# What nbval compares


def test_nbval_sees_one_changed_digit(write, tmp_path):
    bar = "train: 100%|##########| 9/9"
    source = (
        f"{GOOD}\nimport sys\nprint('{bar} [00:01<00:00,  7.31it/s]', file=sys.stderr)"
    )
    write(cell(source, stream(PRINTS), stream(f"{bar}\n", "stderr")), name="good")
    write(cell(GOOD, stream(PRINTS.replace("7143", "7144"))), name="changed")
    missing = cell()
    missing.outputs = []
    write(missing, name="missing")
    html = "from IPython.display import HTML\nHTML('<b>{}</b>{}')"
    plain = "<IPython.core.display.HTML object>"
    for name, letters, word in [("picture", "aGkh", "one"), ("readout", "aGk=", "two")]:
        uri = "data:image/webp;base64,"
        data = {"text/html": f"<b>{word}</b>{uri}{letters}", "text/plain": plain}
        result = new_output("execute_result", data=data)
        write(cell(html.format("one", f"{uri}aGk="), result), name=name)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--tb=no",
        "-p",
        "no:cacheprovider",
    ]
    command += ["--nbval", "--nbval-current-env", f"--rootdir={tmp_path}"]
    command += ["--nbval-sanitize-with", str(ROOT / "tests" / "sanitize.cfg")]
    # Not a worker of the run that this test is part of.
    env = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
    done = subprocess.run(
        [*command, "."], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    failed = set(re.findall(r"FAILED (\w+)\.ipynb", done.stdout))
    assert failed == {"changed", "missing", "readout"}, done.stdout + done.stderr
    assert "2 passed" in done.stdout


# What `make pins` writes and says


def test_the_one_form():
    shown = picture(**{WIDGET: {"model_id": "f00"}})
    bar = "\r  0%|   | 0/9\r100%|###| 9/9 [00:01<00:00,  7.3it/s, loss=0.1]\n"
    noisy = new_notebook(
        cells=[
            cell(
                GOOD, stream("a"), stream(bar, "stderr"), stream("b\n"), shown, count=9
            ),
            cell(name="next", count=None, collapsed=True, tags=["keep"]),
        ],
        metadata={"widgets": {}},
    )
    first, second = normalise(noisy).cells
    assert [first.execution_count, second.execution_count] == [1, 2]
    assert second.metadata == {"tags": ["keep"]}
    out, err, image = first.outputs
    assert (out.text, err.text) == ("ab\n", "100%|###| 9/9\n")
    assert image.data.keys() == {"image/png"}
    assert noisy.cells[0].execution_count == 9
    assert normalise(normalise(noisy)) == normalise(noisy)
    assert as_text(noisy).endswith("}\n")


def test_a_bar_keeps_its_words():
    bar = "fit:  50%|##   | 4/9 [00:01<?, ?it/s]\rfit: 100%|#####| 9/9 [00:02<00:00]\n"
    assert final_state(f"{bar}done\n") == "fit: 100%|#####| 9/9\ndone\n"


def test_moved_lines_name_their_cell():
    before, after = (
        normalise(new_notebook(cells=[cell(GOOD, stream(f"same\ngap {digit}\n"))]))
        for digit in (1, 2)
    )
    assert moved(before, after) == ["audit: - gap 1", "audit: + gap 2"]


def test_pins_note_what_is_printed_and_how_near_it_is(write):
    source = "n = 1\ndef show(x, n):\n    return f'{x:.{n}f} {n} {x:8.2e} {n:d}'"
    last = "print(show(0.12345, 3), f'{n:.2f}')"
    chapter = write(cell(source, name="make"), cell(last, name="show"))
    notebook, fields = run(chapter.path, {})
    assert notebook.cells[1].outputs[0].text == "0.123 3 1.23e-01 3 1.00\n"
    assert fields == [
        Field(2, 0.12345, ".3f", "0.123"),
        Field(2, 0.12345, "8.2e", "1.23e-01"),
    ]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.3, ""),
        (0.3049999, "audit: prints as 0.30 or 0.31\n"),
        (0.304998, "audit: 0.30 (0.30499899999999996) is 1.0e-06"),
    ],
)
def test_spread_names_what_changes_or_comes_near(
    write, monkeypatch, capsys, value, words
):
    notebook = normalise(write(cell()).notebook)
    drifts = iter([0.0, 1e-6, 0.0, 0.0])

    def pretend(path, environment):
        moved_value = value + next(drifts)
        return notebook, [Field(1, moved_value, ".2f", f"{moved_value:.2f}")]

    monkeypatch.setattr(pins, "run", pretend)
    pins.show_spread(None)
    said = capsys.readouterr().out
    assert said.startswith(words)
    assert said.endswith("1 numbers, largest spread 1.0e-06\n")
    assert said.count("\n") == (2 if words else 1)


def test_distance_in_roundings():
    assert Field(1, 1 / 3 + 2**-54, ".3f", "0.333").roundings == pytest.approx(
        2**53 / 2000, rel=1e-9
    )
    assert Field(1, 0.3750152587890625, ".3f", "0.375").roundings > 1e4
    assert Field(1, 0.0345, ".3f", "0.034").roundings < 1


@pytest.mark.parametrize(
    ("value", "spec", "distance"),
    [
        (0.1234, ".2f", 0.0016),
        (-0.1234, "+9.2f", 0.0016),
        (0.125, ".2f", 0.0),
        (1234.5, ".3e", 0.0),
        (1234.4, ".3e", 0.1),
        (0.012344, ".4g", 1e-6),
        (0.12344, ".2%", 1e-5),
        (1e-17, ".12f", 1e-17),
        (0.0, ".2f", 0.005),
        (float("nan"), ".2f", float("inf")),
        (0.5, "", float("inf")),
    ],
)
def test_distance_to_the_boundary(value, spec, distance):
    found = Field(1, value, spec, format(value, spec)).distance
    assert found == pytest.approx(distance, rel=1e-9, abs=1e-30)


def test_the_cell_that_contributors_see_is_one_of_the_book():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf8")
    shown = re.search(
        r"(?s)the cell `([\w-]+)` of .*?\((.*?)\).*?```python\n(.*?)\n```", text
    )
    cells = {cell.id: cell.source for cell in Chapter(ROOT / shown[2]).code}
    assert cells[shown[1]] == shown[3]

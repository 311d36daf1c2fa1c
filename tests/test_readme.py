"""The examples of the README run, and print what stands below them."""

import re
import subprocess
import sys

import pytest

from tests.guards.notebook import ROOT

BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)
EXAMPLES = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf8"))


@pytest.mark.parametrize(("code", "printed"), EXAMPLES)
def test_example(code, printed, tmp_path):
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if printed:
        assert done.stdout == printed


def test_an_audit_takes_ten_lines():
    (code,) = [code for code, _ in EXAMPLES if "import audit" in code]
    assert len([line for line in code.splitlines() if line]) <= 10

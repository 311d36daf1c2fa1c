"""Plant small faults in the package, one at a time, and count those no test notices.

    python -m tools.mutants        a sample of 300, and of 50 in the words of errors

Which modules and which tests is said under `tool.mutmut` in pyproject.toml. Faults in
the words of an error message are sampled and counted apart: they change no number.
"""

import ast
import difflib
import json
import random
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.stats import status_by_exit_code
from mutmut.utils.format_utils import get_mutant_name

SEED, BEHAVIOUR, WORDS = 6050, 300, 50
CAUGHT = {"killed", "timeout", "segfault"}


class Mutant(NamedTuple):
    """A planted fault: its name, its file, the sound function and the faulty one."""

    name: str
    path: Path
    sound: ast.FunctionDef
    faulty: ast.FunctionDef

    @property
    def in_words(self) -> bool:
        """Whether the two differ in nothing but the words of an error."""
        return ast.dump(_wordless(self.sound)) == ast.dump(_wordless(self.faulty))

    @property
    def difference(self) -> str:
        """The changed lines."""
        texts = [ast.unparse(each.body) for each in (self.sound, self.faulty)]
        lines = difflib.ndiff(*[text.splitlines() for text in texts])
        return "\n".join(f"    {line}" for line in lines if line[0] in "+-")


def main() -> str | None:
    """Run the two samples, print the counts and the survivors."""
    settings = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["mutmut"]
    everything = [
        mutant for path in settings["only_mutate"] for mutant in mutants_of(Path(path))
    ]
    behaviour = [mutant for mutant in everything if not mutant.in_words]
    words = [mutant for mutant in everything if mutant.in_words]
    draw = random.Random(SEED)
    samples = {
        "behaviour": draw.sample(behaviour, min(BEHAVIOUR, len(behaviour))),
        "words of errors": draw.sample(words, min(WORDS, len(words))),
    }
    print(f"{len(behaviour)} mutants of behaviour, {len(words)} of words; seed {SEED}")
    shutil.rmtree("mutants", ignore_errors=True)
    names = [mutant.name for sample in samples.values() for mutant in sample]
    if subprocess.run([sys.executable, "-m", "mutmut", "run", *names]).returncode:
        return "mutmut stopped: do the tests of these modules pass?"
    for title, sample in samples.items():
        report(title, sample)
    return None


def mutants_of(path: Path) -> list[Mutant]:
    """Return all faults that mutmut can plant in a file."""
    mutated = mutate_file_contents(str(path), path.read_text())
    functions = {
        node.name: node
        for node in ast.walk(ast.parse(mutated.code))
        if isinstance(node, ast.FunctionDef)
    }
    return [
        Mutant(
            get_mutant_name(path, name),
            path,
            functions[name.partition("__mutmut_")[0] + "__mutmut_orig"],
            functions[name],
        )
        for name in mutated.mutant_names
    ]


def report(title: str, sample: list[Mutant]) -> None:
    """Print how many of a sample were caught, by module, and what was not."""
    status = {mutant.name: _status(mutant) for mutant in sample}
    missed = [mutant for mutant in sample if status[mutant.name] not in CAUGHT]
    caught = len(sample) - len(missed)
    print(f"\n{title}: {caught} of {len(sample)} caught, {caught / len(sample):.1%}")
    tried = Counter(mutant.path.stem for mutant in sample)
    left = Counter(mutant.path.stem for mutant in missed)
    for module, count in sorted(tried.items()):
        print(f"  {module:<12} {count - left[module]:>4} of {count}")
    for mutant in missed:
        print(f"  {mutant.name}: {status[mutant.name]}\n{mutant.difference}")


def _status(mutant: Mutant) -> str:
    results = json.loads(Path("mutants", f"{mutant.path}.meta").read_text())
    return status_by_exit_code[results["exit_code_by_key"][mutant.name]]


def _wordless(function: ast.FunctionDef) -> ast.Module:
    """Return a function's body without what its errors say."""

    class Blank(ast.NodeTransformer):
        def visit_Raise(self, node):
            return ast.Raise()

        def visit_Call(self, node):
            # The checks of arguments take an argument's name for their message.
            self.generic_visit(node)
            called = node.func
            if isinstance(called, ast.Attribute) and ast.unparse(called.value) == (
                "_check"
            ):
                node.args = [
                    ast.Constant("") if _is_word(argument) else argument
                    for argument in node.args
                ]
            return node

    copied = ast.parse("\n".join(map(ast.unparse, function.body)))
    return Blank().visit(copied)


def _is_word(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | None)


if __name__ == "__main__":
    sys.exit(main())

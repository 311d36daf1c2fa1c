"""Random draws: each comes from a generator whose seed stands in the same chapter."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from .notebook import Chapter

TORCH_DRAWS = re.compile(
    r"torch\.(rand|randn|randint|randperm|normal|bernoulli|multinomial|poisson"
    r"|(rand|randn|randint)_like)"
    r"|torch\.nn\.init\.(\w*normal|\w*uniform|orthogonal|sparse)_"
    r"|torch\.utils\.data\.random_split"
)
METHOD_DRAWS = re.compile(
    r"(bernoulli|cauchy|exponential|geometric|log_normal|normal|random|uniform)_"
    r"|multinomial|rsample|rvs|sample"
)
NUMPY_DRAWS = re.compile(
    r"numpy\.random\.(?!seed|default_rng|RandomState|Generator|SeedSequence"
    r"|BitGenerator|MT19937|PCG64|Philox|SFC64)\w+"
)
RANDOM_DRAWS = re.compile(r"random\.(?!seed|Random)\w+")
# Layers draw their weights when they are made. Only a cell's own lines count: a
# function or class that makes layers leaves the seed to whoever calls it.
TORCH_LAYERS = re.compile(
    r"torch\.nn\.(Linear|Bilinear|Embedding|Conv\w+|LSTM|GRU|RNN|Transformer\w*)"
)
SEEDS = {
    "torch.manual_seed": "torch",
    "numpy.random.seed": "numpy",
    "random.seed": "random",
}
MAKERS = {"numpy.random.default_rng", "numpy.random.RandomState", "random.Random"}
GENERATOR = re.compile(r"(^|_)(g|gen|generator|rng|random_state|seed)\d*$", re.I)


def seeded(chapter: Chapter) -> Iterator[str]:
    """Every random draw in a cell is seeded, by an argument or in the same cell."""
    known = Known.of(chapter.trees.values())
    for cell, tree in chapter.trees.items():
        for call, name in [*unseeded(tree, known), *unseeded_layers(tree, known)]:
            yield f"{cell}: line {call.lineno}, {name} draws without a seed"


def unseeded_in_file(path: Path) -> Iterator[str]:
    """Every random draw in a module is seeded, by an argument or in its function."""
    tree = ast.parse(path.read_text(encoding="utf8"))
    known = Known.of([tree])
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inside = {id(node) for function in functions for node in ast.walk(function)}
    loose = ast.Module([node for node in tree.body if id(node) not in inside], [])
    for scope in [*functions, loose]:
        for call, name in unseeded(scope, known):
            yield f"{path.name}: line {call.lineno}, {name} draws without a seed"


class Known(NamedTuple):
    """What names stand for: imports in full, and variables that hold a generator."""

    imports: dict[str, str]
    generators: set[str]

    @classmethod
    def of(cls, trees: Iterable[ast.AST]) -> "Known":
        """Collect the names from the cells of a notebook, or from a module."""
        imports, generators = {}, set()
        for node in (node for tree in trees for node in ast.walk(tree)):
            match node:
                case ast.Import(names=names):
                    for alias in names:
                        name = alias.asname or alias.name.split(".")[0]
                        imports[name] = alias.name if alias.asname else name
                case ast.ImportFrom(module=module, names=names):
                    for alias in names:
                        imports[alias.asname or alias.name] = f"{module}.{alias.name}"
                case ast.Assign(targets=[target, *_], value=value):
                    if _makes_generator(value):
                        generators.add(_last_name(target))
        return cls(imports, generators)

    def whole_name(self, node: ast.expr) -> str:
        """Return a function's full name: `numpy.random.rand` for `np.random.rand`."""
        if isinstance(node, ast.Attribute):
            return f"{self.whole_name(node.value)}.{node.attr}"
        return self.imports.get(node.id, node.id) if isinstance(node, ast.Name) else ""


def unseeded(tree: ast.AST, known: Known) -> list[tuple[ast.Call, str]]:
    """Return each call below `tree` that draws without a seed, with its name."""
    calls = {
        node: known.whole_name(node.func)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    }
    libraries = {SEEDS[name] for name in calls.values() if name in SEEDS}
    sown = [call.func.value for call in calls if _method(call) == "manual_seed"]
    names = {_last_name(value) for value in sown} - {""}
    stored = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _last_name(node.targets[0]) in names
    }
    return [
        (call, name)
        for call, name in calls.items()
        if _has_no_seed(call, name, call in stored or call in sown)
        or ((library := _library(call, name)) and library not in libraries)
        and not _takes_generator(call, known)
    ]


def unseeded_layers(tree: ast.Module, known: Known) -> list[tuple[ast.Call, str]]:
    """Return each layer that a cell makes without seeding torch, with its name."""
    defined = ast.FunctionDef | ast.ClassDef
    own = [node for node in tree.body if not isinstance(node, defined)]
    calls = [
        (node, known.whole_name(node.func))
        for node in ast.walk(ast.Module(own, []))
        if isinstance(node, ast.Call)
    ]
    if any(name == "torch.manual_seed" for _, name in calls):
        return []
    return [(call, name) for call, name in calls if TORCH_LAYERS.fullmatch(name)]


def _library(call: ast.Call, name: str) -> str | None:
    """Return the library whose global generator a call would draw from."""
    if NUMPY_DRAWS.fullmatch(name) or _method(call) == "rvs":
        return "numpy"
    if RANDOM_DRAWS.fullmatch(name):
        return "random"
    if TORCH_DRAWS.fullmatch(name) or METHOD_DRAWS.fullmatch(_method(call)):
        return "torch"
    shuffles = any(keyword.arg == "shuffle" for keyword in call.keywords)
    return "torch" if name == "torch.utils.data.DataLoader" and shuffles else None


def _has_no_seed(call: ast.Call, name: str, sown: bool) -> bool:
    """Whether a call makes a generator, or restarts one, from the clock."""
    if name == "torch.Generator":
        return not sown
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    empty = all(isinstance(arg, ast.Constant) and arg.value is None for arg in given)
    return empty and (name in MAKERS or _method(call) == "seed")


def _takes_generator(call: ast.Call, known: Known) -> bool:
    """Whether some argument is a generator or a seed."""
    passed = [_last_name(value) for value in call.args]
    names = [*passed, *(keyword.arg or "" for keyword in call.keywords)]
    return (
        any(map(GENERATOR.search, names))
        or not known.generators.isdisjoint(passed)
        or any(map(_makes_generator, call.args))
    )


def _makes_generator(value: ast.expr) -> bool:
    """Whether an expression makes a generator; its seed is looked for elsewhere."""
    makers = {"manual_seed", "Generator", "default_rng", "RandomState"}
    return isinstance(value, ast.Call) and _last_name(value.func) in makers


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""

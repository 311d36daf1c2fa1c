"""What may pass between the grader and a student's process: plain JSON values.

This file is also read inside the sandbox, so it knows nothing of the rest.
"""

import json

Value = int | float | str | list
LONGEST = 4096  # bits of an integer: far above any float, and JSON can still write it


def plain(value) -> Value:
    """Return a student's answer as numbers, words and lists; TypeError if it is none.

    Tensors and arrays become lists, tuples too. NaN stays NaN: it is the grader's to
    refuse.
    """
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, int) and value.bit_length() > LONGEST:
        raise TypeError(f"an integer of more than {LONGEST} bits")
    if isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{type(value).__name__} is neither a number nor a list of numbers")


def argument(value: Value):
    """Return an input as a student's function gets it: a list becomes a tensor."""
    import torch

    if not isinstance(value, list) or any(isinstance(word, str) for word in value):
        return value
    # Not converted: the notebook's own default may have cut digits off by then.
    precise = torch.float64 if torch.tensor(value).is_floating_point() else None
    return torch.tensor(value, dtype=precise)


def dumps(message: dict) -> bytes:
    """One message as one line."""
    return json.dumps(message).encode() + b"\n"

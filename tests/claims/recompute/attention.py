"""Claims about how the work of attention grows, counted on real tensors."""

import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.claims.ledger import recomputes


def query_key_scores(tokens: int, width: int = 8) -> int:
    """How many numbers the table of queries against keys has."""
    queries, keys = torch.zeros(2, tokens, width)
    return (queries @ keys.T).numel()


@recomputes("attn.16", "attn.64", "attn.4x")
def size_of_the_table(tokens):
    table = query_key_scores(tokens)
    growth = query_key_scores(2 * tokens) / table
    return {"16": table, "64": table, "4x": growth}


def operations(tokens: int, width: int, *, whole: bool = False) -> int:
    """Of the table of scores, or of one head there and back, by torch's counter.

    A multiplication and an addition count as two.
    """
    queries, keys, values = torch.ones(3, tokens, width, requires_grad=True).unbind()
    with FlopCounterMode(display=False) as counter:
        scores = queries @ keys.T
        if whole:
            (scores.softmax(-1) @ values).sum().backward()
    return counter.get_total_flops()


@recomputes("attn.law.L2d")
def growth_of_the_work(tokens, width):
    table = operations(tokens, width)
    return (
        table / 2,
        operations(2 * tokens, width) / table,
        operations(tokens, 2 * width) / table,
        operations(tokens, width, whole=True) / (tokens**2 * width),
    )


@recomputes("attn.law.causal")
def pairs_without_the_future(small, large, many):
    def pairs(tokens: int) -> int:
        return torch.tril_indices(tokens, tokens).shape[1]

    return pairs(small), pairs(large), pairs(2 * many) / pairs(many)

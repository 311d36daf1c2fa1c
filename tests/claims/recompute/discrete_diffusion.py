"""Claims about diffusion over texts: how many states and paths, which token comes."""

import torch

from genaudit.discrete import (
    MASK,
    FiniteDiffusion,
    TextLaw,
    all_texts,
    uniform_corruption,
    unmask,
)
from tests.claims.ledger import recomputes
from tests.claims.recompute.cases import seeded


@recomputes("dlm.law.VL")
def states_and_paths(vocabularies, lengths, steps, vocabulary, length):
    """Texts without and with masks of each size, then paths of one small diffusion."""
    plain, masked = [], []
    sizes = zip(vocabularies.int().tolist(), lengths.int().tolist(), strict=True)
    for tokens, places in sizes:
        texts = all_texts(tokens, places)
        masks = all_texts(2, places).bool()
        hidden = torch.where(masks[:, None], MASK, texts).flatten(0, 1)
        plain.append(len(texts))
        masked.append(len(hidden.unique(dim=0)))
    step = uniform_corruption(vocabulary, length, 0.5)
    even = torch.full((len(step),), 1 / len(step), dtype=step.dtype)
    paths, _ = FiniteDiffusion([step] * steps, [step] * steps, even).paths(0)
    return *plain, *masked, len(paths)


@recomputes("dlm.greedy")
def different_tokens(next_token, draws, seed):
    """In so many draws: always the most probable one, then at random."""
    law = TextLaw(next_token)
    return tuple(
        len(unmask(law.denoise, draws, 1, 1, seeded(seed), greedy).unique())
        for greedy in (True, False)
    )

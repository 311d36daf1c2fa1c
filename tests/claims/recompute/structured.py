"""Claims about denoisers for pictures and about diffusing codes."""

import torch

from tests.claims.ledger import cited_year, recomputes


@recomputes("lat.512", "lat.64", "lat.48")
def numbers_in_picture_and_code(picture, code):
    before, after = int(picture.prod()), int(code.prod())
    return {"512": before, "64": after, "48": before / after}


@recomputes("str.law.xattn")
def attention_shapes(places, words, width, head):
    stream = torch.Generator().manual_seed(1)
    x, c = (torch.randn(n, width, generator=stream).double() for n in (places, words))
    q, k, v = (torch.randn(width, head, generator=stream).double() for _ in range(3))
    table = (x @ q @ (c @ k).T / head**0.5).softmax(1)
    made = torch.nn.functional.scaled_dot_product_attention(x @ q, c @ k, c @ v)
    return *table.shape, *made.shape, (table @ (c @ v) - made).abs().max()


@recomputes("lat.fact.rombach")
def year_of_latent_diffusion():
    return cited_year("rombach2022")

"""Claims about squeezing and rebuilding: the faces' protocol, and the planes of PCA."""

import inspect
import re

import torch
from torch import Tensor

from genaudit.faces import PIXELS, draw_faces
from genaudit.vae import train_vae
from tests.claims.ledger import printed, printed_numbers, recomputes
from tests.claims.recompute.cases import seeded, uniform


def code_size() -> int:
    """How many numbers a code of the faces has, unless a chapter asks for others."""
    return inspect.signature(train_vae).parameters["codes"].default


@recomputes("ae.pixels")
def numbers_in_a_face(size, smile):
    return draw_faces(size, smile).numel()


@recomputes("ae.code2")
def numbers_in_a_code():
    return code_size()


@recomputes("ae.squeeze")
def pixels_for_each_number_of_the_code():
    return PIXELS / code_size()


@recomputes("ae.n4000")
def faces_in_the_album():
    return printed_numbers("autoencoder", "album", "pictures")[0]


@recomputes("ae.n200")
def random_codes_on_the_map():
    """Their number, and how many of them decode to no face."""
    counts = re.search(
        r"(\d+) random codes: (\d+) decode", printed("autoencoder", "dart-audit")
    )
    return counts[1], counts[2]


@recomputes("ae.random.*")
def random_codes_without_a_face(machine, seeds):
    """Their number for each start, out of four thousand."""
    column = {"plain": 1, "variational": 5}[machine]
    return tuple(
        printed_numbers("autoencoder", "luck-audit", f"{seed:g}")[column]
        for seed in seeds
    )


@recomputes("ae.patch")
def ranges_of_the_codes():
    return tuple(printed_numbers("autoencoder", "dart-audit", "our codes:"))


@recomputes("ae.pp.box")
def expected_in_the_box(codes, low, high):
    shares = torch.special.ndtr(high) - torch.special.ndtr(low)
    return codes * shares.prod()


def centred(generator: torch.Generator, pictures: int, pixels: int) -> Tensor:
    """Data whose variances fall from one direction to the next: no two are equal."""
    spread = 2.0 ** -torch.arange(pixels)
    data = uniform(generator, pictures, pixels) * spread
    return data - data.mean(0)


def scatter(data: Tensor) -> Tensor:
    """Covariance without the division: what PCA takes apart."""
    return torch.cov(data.T) * (len(data) - 1)


def trained(data: Tensor, codes: int, generator: torch.Generator, rounds: int):
    """Linear encoder and decoder by alternating least squares, from a random start."""
    decoder = uniform(generator, codes, data.shape[1]) - 0.5
    for _ in range(rounds):
        encoder = torch.linalg.pinv(decoder)
        decoder = torch.linalg.lstsq(data @ encoder, data).solution
    return encoder, decoder


def squared_error(data: Tensor, linear_map: Tensor) -> Tensor:
    """What is lost when each row goes through the map."""
    return (data - data @ linear_map).square().sum()


@recomputes("ae.law.pca")
def trained_error_against_eigenvalues(
    cases, pictures, pixels, codes, rounds, seed, tied
):
    """Relative, then two planes of axes for data whose variances are tied."""
    generator, errors = seeded(seed), []
    for _ in range(cases):
        data = centred(generator, pictures, pixels)
        encoder, decoder = trained(data, codes, generator, rounds)
        lost = torch.linalg.eigvalsh(scatter(data))[:-codes].sum()
        errors.append((squared_error(data, encoder @ decoder) / lost - 1).abs())
    along_axes = torch.diag(tied.sqrt())
    planes = [
        torch.diag(along_axes.new_tensor(kept)) for kept in ((1, 1, 0), (1, 0, 1))
    ]
    one, other = (squared_error(along_axes, plane) for plane in planes)
    return max(errors), (one - other).abs(), (planes[0] - planes[1]).abs().max()


@recomputes("ae.pp.linear")
def decoder_against_principal_plane(cases, pictures, pixels, codes, rounds, seed):
    """Distance of the projectors; change of the rebuilds when the codes are mixed."""
    generator, distances, changes = seeded(seed), [], []
    for _ in range(cases):
        data = centred(generator, pictures, pixels)
        encoder, decoder = trained(data, codes, generator, rounds)
        top = torch.linalg.eigh(scatter(data)).eigenvectors[:, -codes:]
        spanned = torch.linalg.pinv(decoder) @ decoder
        distances.append((spanned - top @ top.T).abs().max())
        mix = torch.eye(codes, dtype=data.dtype) + uniform(generator, codes, codes)
        mixed = (encoder @ mix) @ (torch.linalg.inv(mix) @ decoder)
        changes.append((data @ (mixed - encoder @ decoder)).abs().max())
    return max(distances), max(changes)


@recomputes("ae.law.rank")
def directions_behind_the_bottleneck(cases, pixels, codes, seed):
    """The first singular value beyond the size of the code, as a share of the first."""
    generator = seeded(seed)
    encoder = uniform(generator, cases, pixels, codes)
    decoder = uniform(generator, cases, codes, pixels)
    sizes = torch.linalg.svdvals(encoder @ decoder)
    return (sizes[:, codes] / sizes[:, 0]).max()


@recomputes("ae.law.proj")
def projection_is_closest(cases, pixels, size, seed):
    """Largest error of Pythagoras; most that another point of the plane is nearer."""
    generator = seeded(seed)
    basis = torch.linalg.qr(uniform(generator, cases, pixels, size)).Q
    point = uniform(generator, cases, 1, pixels)
    foot = point @ basis @ basis.mT
    other = foot + (uniform(generator, cases, 1, size) - 0.5) @ basis.mT
    to_foot, to_other, between = (
        (a - b).square().sum(-1)
        for a, b in ((point, foot), (point, other), (foot, other))
    )
    error = (to_other - to_foot - between).abs().max()
    return error, (to_foot - to_other).max().clamp(min=0)

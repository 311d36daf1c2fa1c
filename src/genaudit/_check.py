"""Refuse bad input in one voice: the argument, its value and the rule it broke."""

import math
from numbers import Integral

import torch
from torch import Tensor


def floating(value) -> Tensor:
    """Return ``value`` as a floating-point tensor.

    Tensors and arrays keep their dtype. Python numbers become float64, since a default
    dtype of float32 would round them before the first sum.
    """
    exact = None if hasattr(value, "dtype") else torch.float64
    tensor = torch.as_tensor(value, dtype=exact)
    whole = not tensor.is_floating_point()
    return tensor.to(torch.get_default_dtype()) if whole else tensor


def finite(name: str, value) -> Tensor:
    """Return ``value`` as a floating-point tensor; ValueError on NaN or infinity."""
    tensor = floating(value)
    if not torch.isfinite(tensor).all():
        raise ValueError(f"{name} = {short(tensor)}: every entry must be finite")
    return tensor


def positive(name: str, value) -> Tensor:
    """Return ``value`` as a finite tensor; ValueError unless every entry is > 0."""
    tensor = finite(name, value)
    if not (tensor > 0).all():
        raise ValueError(f"{name} = {short(tensor)}: every entry must be > 0")
    return tensor


def nonnegative(name: str, value) -> Tensor:
    """Return ``value`` as a finite tensor; ValueError if an entry is below zero."""
    tensor = finite(name, value)
    if not (tensor >= 0).all():
        raise ValueError(f"{name} = {short(tensor)}: every entry must be >= 0")
    return tensor


def between(name: str, value, low: float, high: float) -> Tensor:
    """Return ``value`` as a tensor; ValueError unless low < every entry < high."""
    tensor = finite(name, value)
    if not ((tensor > low) & (tensor < high)).all():
        raise ValueError(
            f"{name} = {short(tensor)}: every entry must lie strictly between "
            f"{low:g} and {high:g}"
        )
    return tensor


def alpha_bar_level(value) -> Tensor:
    """Return a noise level as a tensor; ValueError unless 0 < alpha-bar <= 1."""
    tensor = finite("alpha_bar", value)
    if not ((tensor > 0) & (tensor <= 1)).all():
        raise ValueError(
            f"alpha_bar = {short(tensor)}: every entry must satisfy 0 < alpha_bar <= 1"
        )
    return tensor


def noisy_level(value) -> Tensor:
    """Return a noise level as a tensor; ValueError unless 0 < alpha-bar < 1."""
    return between("alpha_bar", value, 0, 1)


def probabilities(name: str, value) -> Tensor:
    """Return ``value`` as probabilities over its last axis, summing to one.

    Zero-mass outcomes are allowed. Half precision may miss one by its own rounding.
    """
    tensor = nonnegative(name, value)
    if tensor.ndim == 0 or tensor.shape[-1] == 0:
        raise ValueError(f"{name} = {short(tensor)}: needs at least one outcome")
    total = tensor.double().sum(-1)
    # Rounding entries costs one eps at most, whoever summed them a few more.
    slack = 4 * torch.finfo(tensor.dtype).eps * (1 + math.log2(tensor.shape[-1]))
    if not ((total - 1).abs() <= slack).all():
        raise ValueError(f"{name} sums to {short(total)}: probabilities must sum to 1")
    return tensor


def same_shape(name: str, value: Tensor, other_name: str, other: Tensor) -> None:
    """ValueError unless the two tensors have one shape."""
    if value.shape != other.shape:
        raise ValueError(
            f"{name} has shape {tuple(value.shape)}, {other_name} has shape "
            f"{tuple(other.shape)}: the shapes must be equal"
        )


def points(name: str, value) -> Tensor:
    """Return ``value`` as a finite tensor; ValueError unless (N, D), both 1 or more."""
    tensor = finite(name, value)
    if tensor.ndim != 2 or tensor.numel() == 0:
        raise ValueError(
            f"{name} has shape {tuple(tensor.shape)}: it must be (N, D), with N and D "
            "1 or more"
        )
    return tensor


def choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """ValueError unless ``value`` is one of the allowed words."""
    if value not in allowed:
        raise ValueError(f"{name} = {value!r}: must be one of {', '.join(allowed)}")


def whole(name: str, value: int, low: int, high: int | None = None) -> None:
    """ValueError unless ``value`` is a whole number in low..high."""
    top = "" if high is None else f"..{high}"
    good = isinstance(value, Integral) and not isinstance(value, bool) and value >= low
    if not good or (high is not None and value > high):
        rule = f"{low}{top}" if top else f"{low} or more"
        raise ValueError(f"{name} = {value!r}: must be a whole number, {rule}")


def short(tensor: Tensor) -> str:
    """The first few entries, for a message."""
    values = tensor.detach().flatten().tolist()
    shown = ", ".join(f"{value:.6g}" for value in values[:6])
    more = f", ... ({len(values)} entries)" if len(values) > 6 else ""
    return shown + more if tensor.ndim == 0 else f"[{shown}{more}]"

"""Audits of your own code: hand in arrays or a function, get a report.

A report is a table of checks with a verdict in words. ``report.passed`` says whether
all that was checked agrees. A function is called with float64 tensors on the CPU, and
may return tensors, arrays or numbers; one that raises, or returns NaN or another
shape, is a row. Values agree that differ by less than a thousandth in schedules, jumps
and steps, whose tables may be float32, and by less than 1e-5 elsewhere; a verdict
names the first place beyond that. Code with another signature needs an adapter of a
few lines, such as ``lambda x, t, e: mine(x, e, t - 1)`` for indices that begin at 0.
What the audit itself needs, such as a table of alpha-bars, has to be right: else
ValueError.
"""

from genaudit.audit._forward import forward_jump, noise_schedule
from genaudit.audit._latent import (
    kl_gaussian,
    multi_sample_bound,
    reparameterization,
    vae_loss,
)
from genaudit.audit._report import Report, Row
from genaudit.audit._sampling import guidance, sampler
from genaudit.audit._scores import (
    bits_per_dimension,
    coverage,
    discriminator_value,
    jensen_shannon,
    masked_loss,
    pass_at_k,
    perplexity,
    wasserstein,
)
from genaudit.audit._steps import ddim_step, reverse_step

__all__ = [
    "Report",
    "Row",
    "bits_per_dimension",
    "coverage",
    "ddim_step",
    "discriminator_value",
    "forward_jump",
    "guidance",
    "jensen_shannon",
    "kl_gaussian",
    "masked_loss",
    "multi_sample_bound",
    "noise_schedule",
    "pass_at_k",
    "perplexity",
    "reparameterization",
    "reverse_step",
    "sampler",
    "vae_loss",
    "wasserstein",
]

"""Audits for generative models: small functions with exact answers to check against.

One room per idea: ``latent``, ``divergence``, ``schedule``, ``mixture``, ``process``,
``sampler``, ``training``, ``vae``, ``unet``, ``faces``, ``pattern``, ``discrete``,
``ablation``, ``metrics``, ``scaling``, ``practice``, ``audit``, ``exercises``,
``explore`` and ``report``.
Information is in nats, timesteps run from 1 to T, and tensors keep the dtype they
came with.
"""

__version__ = "0.1.0"

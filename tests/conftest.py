"""Settings and fixtures that all tests share."""

import os

import pytest

# One thread a process: two workers share two cores, and sums keep their order. Set here
# because it has to stand before torch is loaded, in this process or in a kernel.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(params=["float32", "float64"])
def usual_dtype(request):
    """Run a test under either default dtype: what it checks must not feel it."""
    import torch

    before, dtype = torch.get_default_dtype(), getattr(torch, request.param)
    torch.set_default_dtype(dtype)
    yield dtype
    torch.set_default_dtype(before)

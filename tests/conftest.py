"""Settings that all tests share."""

import os

# One thread a process: two workers share two cores, and sums keep their order. Set here
# because it has to stand before torch is loaded, in this process or in a kernel.
os.environ.setdefault("OMP_NUM_THREADS", "1")

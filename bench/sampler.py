"""Samplers of the package against the same loops written plainly, in one run.

    python bench/sampler.py                               3,000 points, 1,000 steps
    python bench/sampler.py --steps 50 --repeats 5        short, on a busy machine

Both sides draw the same points of the flower with its exact noise mean. Where diffusers
is installed its schedulers take the same steps too, fed by the plain loop's noise mean.
A ratio is the package's time to the other's: below one, the package is the faster.
"""

import argparse
import math
import time
from collections.abc import Callable

import torch
from torch import Tensor

from genaudit.pattern import SD, find_hits, flower, part_centres
from genaudit.sampler import ddim_sample, ddpm_sample
from genaudit.schedule import linear_schedule

try:
    import diffusers
except ModuleNotFoundError:  # an optional package: the other two sides still run
    diffusers = None

T = 1000
BETA = torch.linspace(1e-4, 0.02, T, dtype=torch.float64)
ALPHA_BAR = torch.cumprod(1 - BETA, 0)
CENTRES = part_centres()


def plain_noise(x: Tensor, level: float) -> Tensor:
    """E[eps | x_t] of the flower as one writes it down: parts, weights, an average."""
    variance = level * SD**2 + 1 - level
    offset = x[:, None] - math.sqrt(level) * CENTRES
    share = torch.softmax(-offset.square().sum(-1) / (2 * variance), 1)
    return math.sqrt(1 - level) * (share[..., None] * offset).sum(1) / variance


def plain_loop(method: str, start: Tensor, steps: int, seed: int) -> Tensor:
    """DDPM with the posterior's variance, or DDIM with eta 0, over even strides."""
    generator = torch.Generator().manual_seed(seed)
    levels = [1.0, *ALPHA_BAR[T // steps - 1 :: T // steps].tolist()]
    x = start
    for k in range(steps, 0, -1):
        now, before = levels[k], levels[k - 1]
        noise = plain_noise(x, now)
        if method == "ddim":
            clean = (x - math.sqrt(1 - now) * noise) / math.sqrt(now)
            x = math.sqrt(before) * clean + math.sqrt(1 - before) * noise
            continue
        beta = 1 - now / before
        x = (x - beta / math.sqrt(1 - now) * noise) / math.sqrt(1 - beta)
        if k > 1:
            fresh = torch.randn(x.shape, generator=generator, dtype=x.dtype)
            x = x + math.sqrt(beta * (1 - before) / (1 - now)) * fresh
    return x


def package(method: str, start: Tensor, steps: int, seed: int) -> Tensor:
    """The same by ``genaudit.sampler``."""
    law, schedule = flower(), linear_schedule(T)
    if method == "ddim":
        return ddim_sample(
            lambda x, t: law.noise_mean(x, schedule.alpha_bar(t)),
            schedule,
            start,
            schedule.visits(steps),
        )
    strided = schedule.strided(steps)
    return ddpm_sample(
        lambda x, t: law.noise_mean(x, strided.alpha_bar(t)),
        strided,
        start,
        torch.Generator().manual_seed(seed),
    )


def scheduler_loop(method: str, start: Tensor, steps: int, seed: int) -> Tensor:
    """The same by diffusers' scheduler of that name, its tables in float64."""
    kind = {"ddim": "DDIMScheduler", "ddpm": "DDPMScheduler"}[method]
    scheduler = getattr(diffusers, kind)(
        num_train_timesteps=T,
        beta_start=1e-4,
        beta_end=0.02,
        clip_sample=False,
        timestep_spacing="trailing",
    )
    scheduler.alphas_cumprod = ALPHA_BAR
    scheduler.set_timesteps(steps)
    generator, x = torch.Generator().manual_seed(seed), start
    for index in scheduler.timesteps:
        noise = plain_noise(x, ALPHA_BAR[index].item())
        x = scheduler.step(noise, index, x, generator=generator).prev_sample
    return x


Side = Callable[[str, Tensor, int, int], Tensor]
SIDES: dict[str, Side] = {"plain loop": plain_loop, "package": package}
if diffusers is not None:
    SIDES["diffusers"] = scheduler_loop


def compare(
    method: str, points: int, steps: int, repeats: int
) -> tuple[dict[str, float], dict[str, Tensor]]:
    """Best time of each side in seconds, and the points it drew."""
    generator = torch.Generator().manual_seed(1)
    start = torch.randn(points, 2, generator=generator, dtype=torch.float64)
    best, drawn = dict.fromkeys(SIDES, math.inf), {}
    for sample in SIDES.values():  # nothing that runs only once is timed
        sample(method, start, 2, 2)
    for repeat in range(repeats):
        # Whoever goes first gains or loses by it, so they take turns.
        for name in sorted(SIDES, reverse=repeat % 2 == 1):
            begin = time.perf_counter()
            drawn[name] = SIDES[name](method, start, steps, 2)
            best[name] = min(best[name], time.perf_counter() - begin)
    return best, drawn


def main() -> None:
    """Read the options, run all sides, print what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    # On shared cores two threads wait for each other, and the ratio means little.
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--points", type=int, default=3000)
    parser.add_argument("--steps", type=int, default=T, help=f"a divisor of {T}")
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    if options.steps < 1 or T % options.steps:
        parser.error(f"--steps {options.steps}: must divide {T}")
    torch.set_num_threads(options.threads)
    print(
        f"{options.points:,} points, {options.steps:,} steps, {options.threads} "
        f"threads, torch {torch.__version__}"
    )
    for method in ("ddpm", "ddim"):
        best, drawn = compare(method, options.points, options.steps, options.repeats)
        right = drawn["plain loop"]
        print(f"{method}: {find_hits(right).rate:.4f} of the points hit the flower")
        for name, seconds in best.items():
            apart = (drawn[name] - right).abs().max().item()
            print(
                f"  {name:10s}  {seconds:7.2f} s, the best of {options.repeats}; "
                f"ratio {best['package'] / seconds:5.2f}; points differ by {apart:.1e}"
            )
    if diffusers is None:
        print("diffusers is not installed: its schedulers were left out")


if __name__ == "__main__":
    main()

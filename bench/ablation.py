"""Ten trainings as one ensemble against a plain loop over networks, in one run.

    python bench/ablation.py                                   the whole protocol, once
    python bench/ablation.py --updates 200 --repeats 9         short, on a busy machine

Both sides train the same ten networks on the same batches; README.md says what the
numbers mean.
"""

import argparse
import os
import time

import torch
from torch import nn

from genaudit import ablation


def plain_loop(seeds: tuple[int, ...], updates: int) -> list[list[nn.Sequential]]:
    """The protocol as one writes it down: a network, its batches, Adam; ten times."""
    beta = torch.linspace(1e-4, 0.1, 100, dtype=torch.float64).float()
    alpha_bar = torch.cumprod(1 - beta, 0)
    signal, noise_weight = alpha_bar.sqrt(), (1 - alpha_bar).sqrt()
    conditions = []
    for with_time in (True, False):
        networks = []
        for seed in seeds:
            network = ablation.make_network(seed)
            optimizer = torch.optim.Adam(network.parameters(), lr=0.002)
            stream = torch.Generator().manual_seed(seed + 19000)
            for _ in range(updates):
                side = 2 * torch.randint(0, 2, (512, 1), generator=stream) - 1
                x0 = 2 * side + 0.5 * torch.randn(512, 1, generator=stream)
                t = torch.randint(100, (512,), generator=stream)
                noise = torch.randn(512, 1, generator=stream)
                x = signal[t, None] * x0 + noise_weight[t, None] * noise
                time_input = (2 * t.double() / 99 - 1).float()[:, None]
                if not with_time:
                    time_input = torch.zeros_like(time_input)
                guess = network(torch.cat([x, time_input], 1))
                loss = nn.functional.mse_loss(guess, noise)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            networks.append(network)
        conditions.append(networks)
    return conditions


SIDES = {"plain loop": plain_loop, "ensemble": ablation.train}


def table(networks: list[list[nn.Sequential]]) -> torch.Tensor:
    """Mean and SD over the seeds of every measure, for both conditions."""
    metrics = ablation.measure(networks).metrics
    return torch.stack([metrics.mean(1), metrics.std(1)])


def compare(updates: int, repeats: int) -> tuple[dict[str, float], float]:
    """Best time of each side in seconds, and the largest difference of the tables."""
    best = dict.fromkeys(SIDES, float("inf"))
    tables = {}
    for train in SIDES.values():  # nothing that runs only once is timed
        table(train(ablation.SEEDS, 20))
    for repeat in range(repeats):
        # Whoever goes first gains or loses by it, so they take turns.
        for name in sorted(SIDES, reverse=repeat % 2 == 1):
            start = time.perf_counter()
            networks = SIDES[name](ablation.SEEDS, updates)
            best[name] = min(best[name], time.perf_counter() - start)
            if name not in tables:
                tables[name] = table(networks)
    difference = tables["plain loop"] - tables["ensemble"]
    return best, difference.abs().max().item()


def main() -> None:
    """Read the options, run both sides, print what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--updates", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    best, difference = compare(options.updates, options.repeats)
    print(
        f"ten networks, {options.updates:,} updates each, {options.threads} threads, "
        f"torch {torch.__version__}"
    )
    for name, seconds in best.items():
        print(f"{name:12s}  {seconds:7.2f} s, the best of {options.repeats}")
    print(f"ratio         {best['plain loop'] / best['ensemble']:7.2f}")
    print(f"largest difference in the table of results: {difference:.1e}")


if __name__ == "__main__":
    main()

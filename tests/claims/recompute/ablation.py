"""Claims about the denoiser without the time: protocol, exact targets, results."""

import inspect

from torch.nn.utils import parameters_to_vector

from genaudit.ablation import (
    BATCH,
    LEARNING_RATE,
    SEEDS,
    exact_floors,
    make_network,
    protocol_schedule,
    run,
    time_input,
    train,
)
from genaudit.mixture import GaussianMixture
from tests.claims.ledger import printed_numbers, recomputes


def table_row(metric: str) -> list[float]:
    """Mean and SD with the time, mean and SD without, as the chapter prints them."""
    numbers = printed_numbers("time_conditioning", "ablation-table", metric)
    assert len(numbers) == 4, f"not four numbers: {numbers}"
    return numbers


@recomputes("abl.cond.*", "abl.notime.*")
def trained_results(condition, metric):
    columns = {"with time": 0, "without time": 2}
    mean, sd = table_row(metric)[columns[condition] :][:2]
    return {"mean": mean, "sd": sd}


@recomputes("abl.law.nearoracle")
def close_to_the_best_denoiser(trained, best):
    return table_row(trained)[0] / table_row(best)[0]


@recomputes("abl.ratio10")
def excess_in_the_gap(metric, weights, means, variance, low, high):
    mixture = GaussianMixture(weights, means, variance)
    return table_row(metric)[2] / mixture.mass(low.item(), high.item())


@recomputes("abl.params")
def parameter_count(seed):
    return sum(parameter.numel() for parameter in make_network(seed).parameters())


@recomputes("abl.stdtrue")
def target_sd(weights, means, variance):
    return GaussianMixture(weights, means, variance).moments()[1].sqrt()


@recomputes("abl.possmass", "abl.central")
def target_mass(weights, means, variance, low, high):
    return GaussianMixture(weights, means, variance).mass(low.item(), high.item())


@recomputes("abl.extra.*")
def noise_error_floors():
    with_time, without_time = exact_floors()
    return {"oracle-pop": with_time, "notime-pop": without_time}


@recomputes("abl.proto.*")
def protocol_constants():
    defaults = inspect.signature(run).parameters
    return {
        "seeds": SEEDS,
        "updates": defaults["updates"].default,
        "steps": len(protocol_schedule()),
        "samples": defaults["count"].default,
        "batch": BATCH,
        "lr": LEARNING_RATE,
        "eval": defaults["evaluation"].default,
        "hidden": make_network(SEEDS[0])[0].out_features,
    }


@recomputes("abl.index")
def first_and_last_step():
    """The first timestep, its place in an array, the time input of first and last."""
    schedule = protocol_schedule()
    steps = schedule.timesteps
    ends = time_input(steps[[0, -1]], schedule)
    return steps[0], (steps == steps[0]).nonzero()[0, 0], *ends


@recomputes("abl.sameinit")
def conditions_after_one_update(updates):
    """Adam's first update moves a weight by at most the learning rate."""
    with_time, without_time = (
        [parameters_to_vector(network.parameters()).detach() for network in networks]
        for networks in train(SEEDS, updates)
    )
    pairs = zip(with_time, without_time, strict=True)
    return max((one - other).abs().max() for one, other in pairs)

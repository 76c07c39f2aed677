"""Predictions for many ranks, against closed forms on profiles made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plugrad.distributed.simulate import (
    Costs,
    DataParallel,
    FullySharded,
    NodeCost,
    Overheads,
    ParameterCost,
    Pipeline,
    Prediction,
    Profile,
    TensorParallel,
    simulate,
    sweep,
)
from plugrad_distributed.distributed.pipelining.orders import (
    gpipe,
    interleaved_zero_bubble,
    one_f_one_b,
)
from plugrad_distributed.planning.data import in_buckets, in_units
from plugrad_distributed.planning.pipeline import Stage, run_orders, stages_of_nodes
from plugrad_distributed.planning.tensor import split_tensors

MIB = 1 << 20
ACTIVATION = 1000


def layered(
    layers: int, side: int = 512, *, forward: float = 1.0, backward: float = 2.0
) -> Profile:
    """Layers of one square weight, each as long as the others; `side * side * 4` bytes."""
    nodes: list[NodeCost] = []
    for n in range(layers):
        before = f"h{n - 1}" if n else "x"
        makes = ((f"h{n}", ACTIVATION),)
        nodes.append(NodeCost("linear", "forward", forward, 0.0, (before, f"w{n}"), makes, 0))
    parameters = []
    size = side * side * 4
    for n in reversed(range(layers)):
        before = f"h{n - 1}" if n else "x"
        after = f"g{n + 1}" if n < layers - 1 else f"h{n}"
        makes = ((f"g{n}", ACTIVATION), (f"d{n}", size)) if n else ((f"d{n}", size),)
        parameters.append(ParameterCost(f"w{n}", (side, side), size, n, len(nodes), f"d{n}"))
        nodes.append(
            NodeCost("linear_backward", "backward", backward, 0.0, (before, after, f"w{n}"), makes)
        )
    total = layers * (forward + backward)
    kept = tuple(f"d{n}" for n in range(layers))
    return Profile(tuple(nodes), tuple(parameters), 2 * layers * size, 0, total, kept)


def ring(ranks: int, size: float, latency: float, per_byte: float) -> float:
    return 2 * (ranks - 1) * latency + 2 * (ranks - 1) / ranks * size * per_byte


# Data parallel


def test_one_rank_takes_what_was_profiled() -> None:
    profile = layered(3)
    found = simulate(profile, DataParallel(), 1, Costs.of(1.0, 1.0))
    assert found.step_time == pytest.approx(9.0)
    assert (found.communication, found.exposed, found.efficiency) == (0.0, 0.0, 1.0)


def test_the_last_bucket_is_exposed_and_others_are_hidden() -> None:
    # Each weight fills a bucket: it is reduced while the next layer, 2 s long, runs backward.
    profile = layered(3)
    per_byte = 1.5 / (2 * 3 / 4 * MIB)
    found = simulate(profile, DataParallel(0.5), 4, Costs.of(0.0, 1 / per_byte))
    assert found.communication == pytest.approx(4.5)
    assert found.exposed == pytest.approx(1.5)
    assert found.step_time == pytest.approx(9.0 + 1.5)


def test_reductions_queue_up_when_they_take_longer_than_layers() -> None:
    profile = layered(3)
    per_byte = 5.0 / (2 * 3 / 4 * MIB)
    found = simulate(profile, DataParallel(0.5), 4, Costs.of(0.0, 1 / per_byte))
    # The first one starts 2 s into the backward pass, and three follow one another.
    assert found.step_time == pytest.approx(3.0 + 2.0 + 15.0)
    assert found.bottleneck == "all_reduce bandwidth"


def test_without_overlap_communication_is_added() -> None:
    profile = layered(3)
    per_byte = 1.5 / (2 * 3 / 4 * MIB)
    found = simulate(profile, DataParallel(0.5), 4, Costs.of(0.0, 1 / per_byte, overlap=0.0))
    assert found.step_time == pytest.approx(9.0 + 4.5)


def test_communication_that_disturbs_kernels_takes_longer_than_alone() -> None:
    profile = layered(3)
    per_byte = 1.5 / (2 * 3 / 4 * MIB)
    costs = Costs.of(0.0, 1 / per_byte, overlap=-0.5)
    costs = replace(costs, overheads=Overheads(beside=0.25))
    found = simulate(profile, DataParallel(0.5), 4, costs)
    assert found.step_time == pytest.approx(9.0 + 3 * (1.5 * 1.5 + 0.25))


def test_a_network_has_an_overlap_of_its_own() -> None:
    profile = layered(3)
    bandwidth = 2 * 3 / 4 * MIB / 1.5
    near = Costs.of(0.0, 1e30, overlap=-0.5)
    for overlap, exposed in ((0.0, 4.5), (1.0, 1.5)):
        costs = near.with_network(0.0, bandwidth, overlap)
        found = simulate(profile, DataParallel(0.5), 4, costs, ranks_per_machine=1)
        assert found.step_time == pytest.approx(9.0 + exposed)


def test_buckets_are_cut_in_the_order_of_arrival() -> None:
    parameters = [ParameterCost(f"w{n}", (1,), size, 0, n) for n, size in enumerate((6, 6, 5, 20))]
    names = [[p.name for p in bucket] for bucket in in_buckets(parameters, [10, 20])]
    assert names == [["w0", "w1"], ["w2", "w3"]]


def test_copies_to_buckets_are_paid_by_bytes() -> None:
    profile = layered(2)
    found = simulate(profile, DataParallel(), 2, Costs.of(0.0, 1e30, copy=1e-7))
    assert found.step_time == pytest.approx(6.0 + 3 * 2 * MIB * 1e-7)
    assert dict(found.shares)["copies"] == pytest.approx(3 * 2 * MIB * 1e-7)


def test_ranks_without_a_core_of_their_own_compute_slower() -> None:
    costs = Costs.of(0.0, 1e30, cores=2)
    found = simulate(layered(2), DataParallel(), 8, costs)
    assert found.step_time == pytest.approx(4 * 6.0)
    assert found.bottleneck == "shared cores"
    spread = simulate(layered(2), DataParallel(), 8, costs, ranks_per_machine=2)
    assert spread.step_time == pytest.approx(6.0)


def test_data_parallel_holds_the_model_and_its_buckets() -> None:
    profile = layered(4)
    memory = simulate(profile, DataParallel(), 8, Costs.of(1e-6, 1e9)).memory
    assert (memory.parameters, memory.gradients, memory.optimizer) == (4 * MIB, 4 * MIB, 8 * MIB)
    assert memory.buffers == 4 * MIB
    # When the last gradient is complete, only the gradient of the second layer's input is left.
    assert memory.activations == profile.peak_beside_gradients() == ACTIVATION


def test_activations_count_at_their_peak_if_gradients_are_small() -> None:
    profile = layered(4, side=8)
    assert profile.peak_bytes() == 5 * ACTIVATION
    # One gradient of 256 bytes has arrived by then, which three others have not.
    assert profile.peak_beside_gradients() == 5 * ACTIVATION - 3 * 256


# Fully sharded


@pytest.mark.parametrize("ranks", [2, 8, 4096])
def test_fully_sharded_holds_one_part_of_all_ranks(ranks: int) -> None:
    memory = simulate(layered(4), FullySharded(), ranks, Costs.of(1e-6, 1e9)).memory
    assert memory.parameters == pytest.approx(4 * MIB / ranks)
    assert memory.gradients == pytest.approx(4 * MIB / ranks)
    assert memory.optimizer == pytest.approx(8 * MIB / ranks)
    # Two layers that are gathered, and the gradient of one.
    assert memory.buffers == 3 * MIB


def test_units_are_layers_until_they_are_large_enough() -> None:
    units = in_units(layered(4).parameters, 1.5 * MIB)
    assert [[p.name for p in unit] for unit in units] == [["w0", "w1"], ["w2", "w3"]]
    units = in_units(layered(4).parameters, 1.5 * MIB, (1,))
    assert [[p.name for p in unit] for unit in units] == [["w0"], ["w1", "w2", "w3"]]


def test_the_first_gather_and_the_last_scatter_are_exposed() -> None:
    # A message takes 0.5 s, less than a layer: what runs one unit ahead is hidden.
    per_byte = 0.5 / (MIB * 3 / 4)
    found = simulate(layered(4), FullySharded(), 4, Costs.of(0.0, 1 / per_byte))
    assert found.communication == pytest.approx(3 * 4 * 0.5)
    # Before forward, before backward, after backward.
    assert found.exposed == pytest.approx(1.5)


def test_the_optimizer_of_sharded_parameters_has_less_to_do() -> None:
    profile = layered(2)
    update = NodeCost("update", "optimizer", 1.0, 0.2, ("w0", "w1"))
    profile = replace(profile, nodes=(*profile.nodes, update), step_seconds=7.0)
    free = Costs.of(0.0, 1e30)
    assert simulate(profile, DataParallel(), 4, free).step_time == pytest.approx(7.0)
    assert simulate(profile, FullySharded(), 4, free).step_time == pytest.approx(6.0 + 0.2 + 0.2)


# Tensor parallel


def test_pairs_of_layers_are_split_by_columns_and_by_rows() -> None:
    split = split_tensors(layered(4), 2)
    # After the second and fourth layer forward; before the third one backward. The gradient of the
    # first one's input is not needed.
    assert split.calls == {
        1: [("all_reduce", ACTIVATION)],
        3: [("all_reduce", ACTIVATION)],
        5: [("all_reduce", ACTIVATION)],
    }
    assert split.profile.parameter_bytes == 2 * MIB
    sizes = split.profile.sizes
    assert [sizes[f"h{n}"] for n in range(4)] == [500, 1000, 500, 1000]


def test_tensor_parallel_divides_work_and_waits_for_sums() -> None:
    found = simulate(layered(4), TensorParallel(), 4, Costs.of(0.125, 1e30))
    # Recursive doubling: two messages each.
    assert found.step_time == pytest.approx(12.0 / 4 + 3 * 2 * 0.125)
    assert found.mesh == (1, 4, 1)
    assert found.bottleneck == "all_reduce latency"


def test_what_calling_operators_takes_does_not_shrink() -> None:
    profile = layered(2)
    profile = replace(profile, nodes=tuple(replace(n, fixed=0.5) for n in profile.nodes))
    found = simulate(profile, TensorParallel(), 2, Costs.of(0.0, 1e30))
    assert found.step_time == pytest.approx(4 * 0.5 + (6.0 - 2.0) / 2)


def test_a_norm_gathers_what_is_split() -> None:
    nodes = (
        NodeCost("linear", "forward", 1.0, 0.0, ("x", "w"), (("h", 800),)),
        NodeCost("native_layer_norm", "forward", 1.0, 0.0, ("h", "v"), (("n", 800),)),
    )
    parameters = (ParameterCost("w", (8, 8), 256, 0, 1),)
    split = split_tensors(Profile(nodes, parameters), 2)
    assert split.calls == {1: [("all_gather", 800)]}
    assert [node.seconds for node in split.profile.nodes] == [0.5, 1.0]


# Pipelines


@pytest.mark.parametrize(("stages", "count"), [(2, 2), (4, 4), (4, 16), (8, 3)])
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_the_bubble_of_equal_stages(stages: int, count: int, schedule: Any) -> None:
    strategy = Pipeline(stages, count, schedule)
    found = simulate(layered(stages), strategy, stages, Costs.of(0.0, 1e30))
    assert found.idle / found.step_time == pytest.approx((stages - 1) / (count + stages - 1))
    assert found.compute == pytest.approx(3.0)


def test_interleaved_stages_idle_less() -> None:
    # Source of the form: Narayanan et al., 2021, section 2.2.
    strategy = Pipeline(4, 8, "interleaved_1f1b", stages_per_rank=2)
    found = simulate(layered(8), strategy, 4, Costs.of(0.0, 1e30))
    assert found.idle / found.compute == pytest.approx(3 / (2 * 8))


@pytest.mark.parametrize(("ranks", "count"), [(2, 4), (4, 8)])
def test_a_v_of_stages_idles_while_it_fills_and_no_longer(ranks: int, count: int) -> None:
    # All parts take 1 s; in the first stage, which computes none for inputs, 0 and 2 s.
    strategy = Pipeline(ranks, count, "zbv_zero_bubble", stages_per_rank=2)
    found = simulate(layered(2 * ranks), strategy, ranks, Costs.of(0.0, 1e30))
    before = Pipeline(ranks, count, "interleaved_1f1b", stages_per_rank=2)
    assert found.compute == pytest.approx(2 * 3.0)
    assert found.idle < simulate(layered(2 * ranks), before, ranks, Costs.of(0.0, 1e30)).idle


def test_split_backward_idles_as_its_source_says() -> None:
    # Source: Qi et al., "Zero Bubble Pipeline Parallelism", 2023, table 1: ZB-H1 with parts of one
    # length idles for ranks - 1 of them. Here the first stage has its two parts together.
    count, ranks = 8, 4
    stages = [Stage(1.0, 1.0, weights=1.0) for _ in range(ranks)]
    orders = [interleaved_zero_bubble(rank, ranks, ranks, count) for rank in range(ranks)]
    found = run_orders(orders, stages)
    assert found.end == pytest.approx(3 * count + ranks - 1)
    assert found.busy == [3.0 * count] * ranks


def test_what_makes_gradients_of_inputs_and_weights_is_called_twice() -> None:
    profile = layered(2)
    profile = replace(profile, nodes=tuple(replace(n, fixed=0.5) for n in profile.nodes))
    free = Costs.of(0.0, 1e30)
    whole = simulate(profile, Pipeline(1, 1, "interleaved_1f1b", stages_per_rank=2), 1, free)
    split = simulate(profile, Pipeline(1, 1, "interleaved_zero_bubble", stages_per_rank=2), 1, free)
    assert whole.step_time == pytest.approx(6.0)
    # The second stage's; all of the first one's is in the second part.
    assert split.step_time == pytest.approx(6.0 + 0.5)


def test_splitting_backward_takes_time_of_python() -> None:
    strategy = Pipeline(1, 4, "zbv_zero_bubble", stages_per_rank=2)
    found = simulate(layered(2), strategy, 1, overheads(split=0.25))
    assert found.step_time == pytest.approx(6.0 + 4 * 0.25)


def test_transfers_delay_a_pipeline() -> None:
    orders = [gpipe(0, 1), gpipe(1, 1)]
    stages = [Stage(1.0, 2.0, transfer=0.25), Stage(1.0, 2.0)]
    assert run_orders(orders, stages).end == 1 + 0.25 + 1 + 2 + 0.25 + 2


def test_stages_wait_for_collectives_of_their_own() -> None:
    found = run_orders([gpipe(0, 1)], [Stage(1.0, 2.0, waits=(0.5, 0.25))])
    assert (found.end, found.work) == (3.75, [3.0])


def test_ranks_of_a_machine_share_its_cores_while_they_compute() -> None:
    # One core: two microbatches through two stages take as long as on one rank.
    stages = [Stage(1.0, 2.0), Stage(1.0, 2.0)]
    orders = [gpipe(0, 2), gpipe(1, 2)]

    def shared(active: int, waiting: int) -> float:
        return active

    assert run_orders(orders, stages, shared, 2).end == pytest.approx(12.0)
    # Each has a machine of its own: three thirds of the time of 12 s.
    assert run_orders(orders, stages, shared, 1).end == pytest.approx(9.0)


def test_ranks_that_wait_leave_their_core_to_others() -> None:
    strategy = Pipeline(4, 1)
    costs = Costs.of(0.0, 1e30, cores=1)
    assert simulate(layered(4), strategy, 4, costs).step_time == pytest.approx(12.0)


def test_ranks_that_wait_take_a_part_of_a_core() -> None:
    costs = replace(Costs.of(0.0, 1e30, cores=1), waiting=0.125)
    found = simulate(layered(4), Pipeline(4, 1), 4, costs)
    # One computes and three wait, until the last stages have come to their end.
    ends = [1 + 3 / 8] * 4 + [2 * (1 + waiting / 8) for waiting in (3, 2, 1, 0)]
    assert found.step_time == pytest.approx(sum(ends))


def test_ranks_on_shared_cores_see_messages_late() -> None:
    for cores, ends in ((1, 12.0 + 6 * 0.5), (4, 12.0)):
        costs = replace(Costs.of(0.0, 1e30, cores=cores), late=0.5)
        found = simulate(layered(4), Pipeline(4, 1), 4, costs)
        # Three messages forward, and three back.
        assert found.step_time == pytest.approx(ends)


@pytest.mark.parametrize("strategy", [FullySharded(), TensorParallel(4)])
def test_ranks_that_communicate_often_take_from_each_other(strategy: Any) -> None:
    costs = Costs.of(0.0, 1e30, cores=2)
    alone = simulate(layered(4), strategy, 4, costs).step_time
    found = simulate(layered(4), strategy, 4, replace(costs, waiting=0.25)).step_time
    assert found == pytest.approx(alone * 2.25 / 2)
    # A data parallel rank waits once.
    plain = simulate(layered(4), DataParallel(), 4, costs).step_time
    again = simulate(layered(4), DataParallel(), 4, replace(costs, waiting=0.25)).step_time
    assert again == plain


def test_messages_between_stages_take_time_of_both_ranks() -> None:
    found = simulate(layered(2), Pipeline(2, 1), 2, overheads(sent=0.25, received=0.5))
    assert found.step_time == pytest.approx(6.0 + 2 * (0.25 + 0.5))
    # The stages of one rank produce the inputs of the other one's.
    strategy = Pipeline(1, 1, "looped_bfs", stages_per_rank=2)
    assert simulate(layered(2), strategy, 1, overheads(sent=1.0, received=1.0)).step_time == 6.0


def test_stages_keep_as_many_microbatches_as_their_schedule() -> None:
    free = Costs.of(0.0, 1e30)
    all_kept = simulate(layered(4), Pipeline(4, 16, "gpipe"), 4, free).memory
    few_kept = simulate(layered(4), Pipeline(4, 16, "1f1b"), 4, free).memory
    assert all_kept.activations > 3 * few_kept.activations
    assert few_kept.parameters == MIB


def test_orders_that_wait_for_each_other_are_refused() -> None:
    orders = [one_f_one_b(0, 2, 2), gpipe(1, 1)]
    with pytest.raises(RuntimeError, match="waits for itself"):
        run_orders(orders, [Stage(1.0, 1.0), Stage(1.0, 1.0)])


def test_cuts_say_where_stages_begin() -> None:
    profile = layered(4)
    assert stages_of_nodes(profile, 2, (3,)) == [0, 0, 0, 1, 1, 0, 0, 0]
    found = simulate(profile, Pipeline(2, 1, cuts=(3,)), 2, Costs.of(0.0, 1e30))
    assert found.compute == pytest.approx(9.0)
    with pytest.raises(ValueError, match="1 of the layers 1 to 3 for 2 stages, got"):
        simulate(profile, Pipeline(2, cuts=(1, 2)), 2, Costs.of(0.0, 1e30))


def test_microbatches_do_not_shrink_what_depends_on_weights() -> None:
    profile = layered(1)
    nodes = tuple([replace(node, held=0.25) for node in profile.nodes])
    found = simulate(replace(profile, nodes=nodes), Pipeline(1, 4), 1, Costs.of(0.0, 1e30))
    assert found.step_time == pytest.approx(3.0 + 3 * 2 * 0.25)


def test_further_microbatches_add_gradients() -> None:
    costs = replace(Costs.of(0.0, 1e30, copy=1 / MIB), add=2 / MIB)
    found = simulate(layered(1), Pipeline(1, 4), 1, costs)
    # Three sums, and one division.
    assert found.step_time == pytest.approx(3.0 + 3 * 2.0 + 1.0)


# What Python takes


def overheads(**seconds: float) -> Costs:
    return replace(Costs.of(0.0, 1e30), overheads=Overheads(**seconds))


def test_split_layers_take_more_calls() -> None:
    found = simulate(layered(4), TensorParallel(), 2, overheads(layer=0.125))
    assert found.step_time == pytest.approx(6.0 + 4 * 0.125)
    # A group of one has DTensors as well, and a model without them does not.
    assert simulate(layered(4), TensorParallel(1), 1, overheads(layer=0.125)).step_time == 12.5
    assert simulate(layered(4), DataParallel(), 2, overheads(layer=0.125)).step_time == 12.0


def test_units_and_their_parameters_take_time_in_both_passes() -> None:
    costs = overheads(unit=0.5, gathered=0.125)
    for ranks in (1, 4):
        found = simulate(layered(4), FullySharded(cuts=(2,)), ranks, costs)
        assert found.step_time == pytest.approx(12.0 + 2 * 0.5 + 4 * 0.125)


def test_units_are_copied_to_and_from_what_is_sent() -> None:
    costs = Costs.of(0.0, 1e30, copy=1 / MIB)
    found = simulate(layered(2), FullySharded(), 4, costs)
    # Parts and wholes for each pass; gradients, and their parts once more.
    assert found.step_time == pytest.approx(6.0 + 2 * (2 * (0.25 + 1) + 1 + 0.25))
    alone = simulate(layered(2), FullySharded(), 1, costs)
    # Nothing is divided.
    assert alone.step_time == pytest.approx(6.0 + 2 * (2 * (1 + 1) + 2))


def test_updates_of_dtensors_take_longer() -> None:
    costs = overheads(updated=0.25, updated_byte=1 / MIB)
    assert simulate(layered(2), FullySharded(), 4, costs).step_time == pytest.approx(6 + 0.5 + 0.5)
    found = simulate(layered(2), TensorParallel(2), 2, costs)
    assert found.step_time == pytest.approx(3 + 0.5 + 1.0)
    assert simulate(layered(2), DataParallel(), 4, costs).step_time == pytest.approx(6)


def test_updates_of_dtensors_need_memory_meanwhile() -> None:
    memory = simulate(layered(2), TensorParallel(), 4, overheads(temporary=3.0)).memory
    assert memory.activations == 3 * MIB / 4
    # Instead of what is gathered in both passes: two units and the gradient of one.
    memory = simulate(layered(2), FullySharded(), 2, overheads(temporary=8.0)).memory
    assert memory.activations + memory.buffers == 8 * MIB / 2


def test_microbatches_take_time_on_each_stage() -> None:
    found = simulate(layered(2), Pipeline(1, 4), 1, overheads(microbatch=0.25))
    assert found.step_time == pytest.approx(6.0 + 4 * 0.25)


# Together


def test_a_mesh_of_all_three() -> None:
    strategy = [DataParallel(), TensorParallel(2), Pipeline(2, 4)]
    found = simulate(layered(4), strategy, 32, Costs.of(0.0, 1e30))
    assert found.mesh == (8, 2, 2)
    assert found.batches == 8
    assert found.memory.parameters == MIB
    assert found.step_time == pytest.approx(12.0 / 4 * (4 + 1) / 4)
    assert found.strategy == "data parallel + tensor x2 + pipeline x2"


def test_groups_of_several_machines_pay_the_network_and_share_it() -> None:
    costs = Costs.of(0.0, 1e30).with_network(0.0, 1e6)
    ranks = {"ranks": 8, "costs": costs, "ranks_per_machine": 4}
    alone = simulate(layered(2), DataParallel(), **ranks)
    assert alone.communication == pytest.approx(ring(8, 2 * MIB, 0.0, 1e-6))
    # Groups of two ranks, one on each machine: four of them at a time.
    shared = simulate(layered(2), [DataParallel(), TensorParallel(4)], **ranks)
    assert shared.communication == pytest.approx(4 * ring(2, 2 * MIB / 4, 0.0, 1e-6))


def test_fully_sharded_stages_gather_once_in_a_step() -> None:
    strategy = [FullySharded(), Pipeline(2, 4)]
    per_byte = 1e-7
    found = simulate(layered(2), strategy, 4, Costs.of(0.0, 1 / per_byte))
    assert found.communication == pytest.approx(2 * MIB / 2 * per_byte)
    assert found.memory.parameters == MIB / 2


def test_memory_that_is_too_little_is_said() -> None:
    costs = Costs.of(0.0, 1e30)
    found = simulate(layered(4), DataParallel(), 4, costs, memory=10 * MIB)
    assert found.exceeds
    assert found.limits[0] == "memory"
    assert not simulate(layered(4), FullySharded(), 64, costs, memory=10 * MIB).exceeds


def test_predictions_print_within_80_columns() -> None:
    strategies = [DataParallel(), [FullySharded(), TensorParallel(2), Pipeline(2, 4)]]
    table = sweep(layered(4, 4096), strategies, [4, 64, 4096], Costs.of(1e-3, 1e6))
    assert len(table) == 6
    lines = str(table).splitlines()
    assert lines[0].split()[:3] == ["strategy", "ranks", "step"]
    assert len(lines) == 7
    texts = [*lines, *(line for row in table for line in str(row).splitlines())]
    assert max(map(len, texts)) <= 80


def test_a_sweep_leaves_out_what_cannot_be() -> None:
    table = sweep(layered(4), [Pipeline()], [2, 4, 8], Costs.of(0.0, 1e9))
    assert [row.ranks for row in table] == [2, 4]


def test_shares_come_to_the_step() -> None:
    strategies = [
        DataParallel(0.5),
        FullySharded(),
        [DataParallel(), TensorParallel(2), Pipeline(2, 4)],
    ]
    costs = Costs.of(0.01, 1e7, cores=2, copy=1e-8, overlap=0.5)
    for strategy in strategies:
        found: Prediction = simulate(layered(4), strategy, 8, costs)
        total = sum(seconds for _, seconds in found.shares)
        assert total == pytest.approx(found.step_time, rel=0.05), strategy


@pytest.mark.parametrize(
    ("strategy", "ranks", "message"),
    [
        (DataParallel(), 0, "ranks must be a positive integer, got 0"),
        ([], 4, "one of each at most, got"),
        ([DataParallel(), FullySharded()], 4, "one of each at most, got"),
        ([TensorParallel(2), Pipeline(2)], 8, "8 ranks are not 2 tensor parallel times 2"),
        ([DataParallel(), TensorParallel(3)], 8, "8 ranks are not 3 tensor parallel times 1"),
        ([TensorParallel(), Pipeline()], 8, "cannot both have all ranks"),
        (Pipeline(8), 8, "at most the number of layers with parameters, 4, got 8"),
        (TensorParallel(1024), 1024, r"a weight of shape \[512, 512\] cannot be split by columns"),
    ],
)
def test_what_cannot_be_is_refused(strategy: Any, ranks: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulate(layered(4), strategy, ranks, Costs.of(1e-6, 1e9))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DataParallel(0), "bucket_cap_mb must be above 0, got 0"),
        (lambda: FullySharded(-1), "unit_mb must not be below 0, got -1"),
        (lambda: TensorParallel(0), "ranks must be positive, got 0"),
        (lambda: Pipeline(2, 0), "microbatches must be positive, got 0"),
        (lambda: Pipeline(2, 4, "zigzag"), "schedule must be one of gpipe, 1f1b"),
        (lambda: Pipeline(2, 4, "1f1b", 2), "one stage on each rank, got stages_per_rank=2"),
        (lambda: Pipeline(2, 4, "zbv_zero_bubble"), "two stages on each rank, got stages_per_"),
    ],
)
def test_strategies_name_a_wrong_argument(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()

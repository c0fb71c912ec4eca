// Groups of nodes that differ: where cores are, which kernels hold, and what they share of the draws.

#include "models/machine.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <vector>

namespace lepaute::models {
namespace {

enum class Kernel : std::uint8_t { product, other };
constexpr std::array<std::string_view, 2> names{"product", "other"};

KernelModel constant(double seconds) {
    KernelPiece piece;
    piece.mean.back() = seconds;
    return KernelModel({piece});
}

/// Two nodes of four cores on two CPUs, and one of two cores on one.
Machine mixed() {
    Machine machine;
    machine.nodes = 3;
    machine.cores_per_node = 4;
    machine.cpus_per_node = 2;
    machine.groups = {{.nodes = 2, .cores = 4, .cpus = 2}, {.nodes = 1, .cores = 2, .cpus = 1, .slowness = 2.0}};
    machine.kernels = {{.name = "product", .models = {constant(1.0)}, .discrepancy_relative_sd = 0.1},
                       {.name = "other", .models = {constant(1.0)}},
                       {.name = "product", .group = 1, .models = {constant(3.0)}, .discrepancy_relative_sd = 0.1}};
    return machine;
}

double seconds_on(const MachineDay& day, std::uint32_t rank, Kernel kernel) {
    const KernelCost cost = day.cost(rank, kernel, {1.0, 1.0, 1.0});
    return cost.mean_s * cost.factor;
}

TEST(NodeGroups, ARankTakesTheKernelsOfItsNodeAndThoseOfTheFirstGroupWhereThatHasNone) {
    const MachineDay day(mixed(), {names}, {.discrepancy = false}, 1, {0, 5, 8, 9});
    EXPECT_EQ(seconds_on(day, 1, Kernel::product), 1.0);
    EXPECT_EQ(seconds_on(day, 2, Kernel::product), 3.0);
    EXPECT_EQ(seconds_on(day, 3, Kernel::other), 1.0);
    EXPECT_FALSE(day.one_model(Kernel::product));
}

TEST(NodeGroups, TheErrorOfAModelIsSharedUnlessAGroupHasItsOwn) {
    Machine machine = mixed();
    const auto ratio = [&] {
        const MachineDay day(machine, {names}, {}, 7, {0, 8});
        return seconds_on(day, 1, Kernel::product) / seconds_on(day, 0, Kernel::product);
    };
    EXPECT_DOUBLE_EQ(ratio(), 3.0);
    machine.kernels[2].own_errors = true;
    EXPECT_GT(std::abs(ratio() - 3.0), 1e-3);
}

TEST(NodeGroups, SecondsThatAnApplicationSaysGoWithTheSpeedOfTheNode) {
    Machine machine = mixed();
    machine.kernels[1].timed = true;
    EXPECT_EQ(seconds_on(MachineDay(machine, {names}, {}, 1, {0, 8}), 1, Kernel::other), 2.0);
    machine.kernels[1].as_recorded = true; // on these nodes
    EXPECT_EQ(seconds_on(MachineDay(machine, {names}, {}, 1, {0, 8}), 1, Kernel::other), 1.0);
}

TEST(NodeGroups, ANodeHasItsOwnCoresAndIsFullWithThem) {
    Machine machine = mixed();
    machine.kernels[1].crowding = {{1.0, 0.5}};
    // The third node is full with two ranks, the first has two of four cores busy.
    const MachineDay day(machine, {names}, {}, 1, {0, 1, 8, 9});
    EXPECT_DOUBLE_EQ(seconds_on(day, 2, Kernel::other), 1.5);
    EXPECT_LT(seconds_on(day, 0, Kernel::other), 1.2);
    EXPECT_THROW(MachineDay(machine, {names}, {}, 1, {10}), std::invalid_argument);
}

TEST(NodeGroups, AreAllNodesOfTheMachineWithinItsBounds) {
    Machine machine = mixed();
    machine.check();
    check_all(machine.groups);
    machine.groups[0].nodes = 1;
    EXPECT_THROW(machine.check(), std::invalid_argument);
    machine = mixed();
    machine.groups[1].cores = 8;
    EXPECT_THROW(machine.check(), std::invalid_argument);
    machine = mixed();
    machine.groups[0].cpus = 3;
    EXPECT_THROW(check_all(machine.groups), std::invalid_argument);
}

TEST(NodeGroups, AWayIsAsWideAsItsNarrowestLink) {
    net::TopologyOptions options{.levels = {{8.0, 0.0}}};
    options.overrides = {{.name = "n1", .capacity_Bps = 2.0, .latency_s = {}}};
    net::Topology topology = net::Topology::single_switch(3, options);
    EXPECT_EQ(topology.narrowest(0, 1, 8.0), 2.0);
    EXPECT_EQ(topology.narrowest(0, 2, 8.0), 8.0);
    EXPECT_EQ(topology.narrowest(0, 2, 5.0), 5.0);
    topology.slow_down(2.0);
    EXPECT_EQ(topology.narrowest(0, 1, 4.0), 1.0);
}

} // namespace
} // namespace lepaute::models

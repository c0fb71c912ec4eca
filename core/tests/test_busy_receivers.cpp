// Messages to ranks that compute between their probes, and the factors that a run draws for its network.

#include "mpi/engine.hpp"
#include "small_network.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>

using namespace lepaute;
using mpi::Rank;
using mpi::Task;
using tests::Engine;
using tests::network;

namespace {

// What a message to a busy receiver costs is measured apart: here 10 times the latency, and a tenth of the bandwidth.
models::Network with_busy_receivers() {
    models::Network result = network();
    for (const auto& [busy, quiet] :
         {std::pair{&result.loopback_busy, &result.loopback}, std::pair{&result.remote_busy, &result.remote}}) {
        *busy = *quiet;
        for (models::Segment& segment : busy->segments) {
            segment.latency_s *= 10.0;
            segment.bandwidth_Bps /= 10.0;
        }
    }
    return result;
}

// When the receive of a message of `bytes` that was sent after 0.5 s ends; the receiver asks for it as `ask` says.
double received_s(const models::Network& net, bool local, double bytes, const std::function<Task(Engine&)>& ask,
                  bool gaps = false) {
    Engine engine(net, {0, local ? 0U : 1U}, 2, 1, false);
    double date_s = 0.0;
    engine.run([&](Rank rank) -> Task {
        if (rank == 0) {
            engine.compute(0, 0.5);
            co_await engine.operation<void>(0, {.kind = mpi::Operation::Kind::send,
                                                .noncontiguous = gaps,
                                                .send_to = 1,
                                                .send_tag = 7,
                                                .send_bytes = bytes});
        } else {
            co_await ask(engine);
            co_await engine.receive(1, 0, 7);
            date_s = engine.clock(1);
        }
    });
    return date_s;
}

Task probes_in_vain_and_waits(Engine& engine) {
    engine.fruitless_probe(1, 0, 7);
    engine.compute(1, 1.0);
    co_await engine.await_message(1, 0, 7);
}

} // namespace

TEST(Engine, AMessageFoundBetweenPiecesOfComputingCostsWhatItCostsABusyReceiver) {
    const auto computing = [](Engine& engine) -> Task {
        bool found = false;
        while (!found) {
            engine.compute(1, 1.0);
            found = co_await engine.probe(1, 0, 7);
        }
    };
    for (const bool local : {false, true}) {
        for (const double bytes : {90.0, 500.0, 5000.0}) { // eager, detached, rendezvous
            const models::Network with = with_busy_receivers();
            const models::Network without = network();
            const models::NetworkClass& quiet = local ? without.loopback : without.remote;
            const models::NetworkClass& busy = local ? with.loopback_busy : with.remote_busy;
            const double more_s = busy.at(bytes).one_way_s(bytes) - quiet.at(bytes).one_way_s(bytes);
            ASSERT_GT(more_s, 0.0);
            for (const std::function<Task(Engine&)>& ask :
                 {std::function(computing), std::function(probes_in_vain_and_waits)}) {
                const double quiet_s = received_s(without, local, bytes, ask);
                const double busy_s = received_s(with, local, bytes, ask);
                if (quiet.at(bytes).protocol == models::Protocol::eager) { // it has come meanwhile, or comes then
                    EXPECT_GE(busy_s, quiet_s);
                } else {
                    EXPECT_NEAR(busy_s - quiet_s, more_s, 1e-12) << bytes << " " << local;
                }
            }
        }
    }
}

TEST(Engine, AMessageThatIsWaitedForIsNoMessageToABusyReceiver) {
    const auto blocking = [](Engine& engine) -> Task { // late: it computed when the message was posted
        engine.compute(1, 1.0);
        co_return;
    };
    const auto spinning = [](Engine& engine) -> Task {
        engine.compute(1, 0.25);
        co_await engine.await_message(1, 0, 7);
    };
    for (const bool local : {false, true}) {
        for (const double bytes : {90.0, 500.0, 5000.0}) {
            for (const std::function<Task(Engine&)>& ask : {std::function(blocking), std::function(spinning)}) {
                EXPECT_EQ(received_s(with_busy_receivers(), local, bytes, ask),
                          received_s(network(), local, bytes, ask));
            }
        }
    }
}

// Ranks 0 and 2 on one node, 1 and 3 on the other: 0 sends to 1, which waits, while 2 and 3 compute, or not.
TEST(Engine, BetweenNodesARendezvousCostsWhatTheLoadOfBothNodesSaysAndNothingElseDoes) {
    const auto transfer_s = [](bool sending_node_computes, bool receiving_node_computes, double bytes) {
        models::Network net = with_busy_receivers();
        net.ranks_on_full_node = 2.0;
        Engine engine(net, {0, 1, 0, 1}, 2, 1, false);
        double date_s = 0.0;
        engine.run([&](Rank rank) -> Task {
            if (rank == 0) {
                co_await engine.send(0, 1, 7, bytes);
            } else if (rank == 1) {
                co_await engine.receive(1, 0, 7);
                date_s = engine.clock(1);
            } else if (rank == 2 ? sending_node_computes : receiving_node_computes) {
                engine.compute(rank, 1e6);
            }
        });
        return date_s;
    };
    for (const double bytes : {90.0, 500.0, 5000.0}) {
        const models::Network net = with_busy_receivers();
        const double quiet_s = transfer_s(false, false, bytes);
        EXPECT_NEAR(quiet_s, received_s(net, false, bytes, [](Engine&) -> Task { co_return; }) - 0.5, 1e-12);
        const double more_s =
            bytes < 1000.0 ? 0.0 : net.remote_busy.at(bytes).one_way_s(bytes) - net.remote.at(bytes).one_way_s(bytes);
        EXPECT_NEAR(transfer_s(true, true, bytes), quiet_s + more_s, 1e-9);
        EXPECT_NEAR(transfer_s(true, false, bytes), quiet_s + more_s / 2, 1e-9);
        EXPECT_NEAR(transfer_s(false, true, bytes), quiet_s + more_s / 2, 1e-9);
    }
}

TEST(Engine, AMessageWithGapsOfItsOwnCostIsSlowerToABusyReceiverByAsMuchAsOthers) {
    const auto received_by = [](const models::Network& net, bool gaps) {
        return received_s(net, false, 5000.0, probes_in_vain_and_waits, gaps);
    };
    models::Network with = with_busy_receivers();
    models::Network without = network();
    for (models::Network* net : {&with, &without}) {
        net->noncontiguous_modelled = true;
        net->remote_noncontiguous.segments.back().latency_s += 0.25;
    }
    EXPECT_NEAR(received_by(with, true) - received_by(without, true),
                received_by(with, false) - received_by(without, false), 1e-12);
    EXPECT_NEAR(received_by(with, true) - received_by(with, false), 0.25, 1e-12);
}

// Factors are drawn per class and run; their mean is 1 and their relative deviation as asked for.
TEST(Network, ARunDrawsAFactorOnTheTransfersOfEachClass) {
    models::Network net = with_busy_receivers();
    net.remote.discrepancy_relative_sd = 0.3;
    double sum = 0.0;
    double squares = 0.0;
    constexpr int runs = 20000;
    for (int seed = 0; seed < runs; ++seed) {
        const models::Network run = models::drawn(net, {}, static_cast<std::uint64_t>(seed));
        const double factor = net.remote.segments[0].bandwidth_Bps / run.remote.segments[0].bandwidth_Bps;
        EXPECT_NEAR(run.remote.segments[0].latency_s, factor * net.remote.segments[0].latency_s, 1e-15);
        EXPECT_EQ(run.loopback.segments[0].latency_s, net.loopback.segments[0].latency_s);
        sum += factor;
        squares += factor * factor;
    }
    const double mean = sum / runs;
    EXPECT_NEAR(mean, 1.0, 4 * 0.3 / std::sqrt(runs));
    EXPECT_NEAR(std::sqrt(squares / runs - mean * mean), 0.3, 0.02);
}

// Overheads have a factor of their own width, from the same draw: either layer alone leaves the other's times alone.
TEST(Network, ARunDrawsOverheadsWithTheTransfersOfTheirClass) {
    models::Network net = with_busy_receivers();
    net.remote.discrepancy_relative_sd = 0.2;
    net.remote.overhead_relative_sd = 0.2;
    net.loopback.overhead_relative_sd = 0.1;
    net.iprobe_s = 1e-7;
    net.remote.segments[0].send = {1e-6, 1e-9};
    const models::Segment& usual = net.remote.segments[0];
    for (std::uint64_t seed = 1; seed < 9; ++seed) {
        const models::Segment both = models::drawn(net, {}, seed).remote.segments[0];
        const double factor = both.send.intercept_s / usual.send.intercept_s;
        EXPECT_NE(factor, 1.0);
        EXPECT_NEAR(both.send.per_byte_s, factor * usual.send.per_byte_s, 1e-20);
        EXPECT_NEAR(both.bandwidth_Bps * factor, usual.bandwidth_Bps, 1e-9 * usual.bandwidth_Bps);
        const models::Network calls = models::drawn(net, {.transfers = false}, seed);
        EXPECT_EQ(calls.remote.segments[0].send.intercept_s, both.send.intercept_s);
        EXPECT_EQ(calls.remote.segments[0].bandwidth_Bps, usual.bandwidth_Bps);
        EXPECT_EQ(calls.node_link_Bps, net.node_link_Bps);
        EXPECT_EQ(calls.iprobe_s, net.iprobe_s * models::message_factor(models::LinkClass::loopback, 0.1, seed));
        const models::Network transfers = models::drawn(net, {.overheads = false}, seed);
        EXPECT_EQ(transfers.remote.segments[0].send.intercept_s, usual.send.intercept_s);
        EXPECT_EQ(transfers.remote.segments[0].bandwidth_Bps, both.bandwidth_Bps);
        EXPECT_EQ(transfers.iprobe_s, net.iprobe_s);
    }
}

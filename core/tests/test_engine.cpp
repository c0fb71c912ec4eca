#include "mpi/engine.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

using namespace lepaute;
using mpi::Engine;
using mpi::Rank;
using mpi::Task;

namespace {

constexpr double eager_latency = 1e-3;
constexpr double rendezvous_latency = 2e-3;

/// Up to 100 bytes eager, up to 1000 detached, rendezvous above; 1000 bytes/s; overheads 1 and 2 ms; link 1000 bytes/s.
models::Network network() {
    const models::Segment eager{0.0, models::Protocol::eager, eager_latency, 1000.0, {1e-3, 0.0}, {}, {2e-3, 0.0}, 0.0};
    models::Segment detached = eager;
    detached.above_bytes = 100.0;
    detached.protocol = models::Protocol::detached;
    models::Segment rendezvous = eager;
    rendezvous.above_bytes = 1000.0;
    rendezvous.protocol = models::Protocol::rendezvous;
    rendezvous.latency_s = rendezvous_latency;
    models::Network result;
    result.loopback.segments = {eager, detached, rendezvous};
    result.remote = result.loopback;
    result.loopback_noncontiguous = result.loopback;
    result.remote_noncontiguous = result.loopback;
    result.node_link_Bps = 1000.0;
    result.loopback_Bps = 1000.0;
    result.iprobe_s = 1e-4;
    return result;
}

Engine two_nodes() { return {network(), {0, 1}, 2, 1, false}; }

} // namespace

// The sender pays its overhead (1 ms), the message its latency (1 ms) and 50 bytes / 1000, the receiver 2 ms.
TEST(Engine, EagerMessageTakesOverheadsLatencyAndBandwidth) {
    Engine engine = two_nodes();
    engine.run([&](Rank rank) -> Task {
        if (rank == 0) {
            co_await engine.send(0, 1, 7, 50.0);
        } else {
            co_await engine.receive(1, 0, 7);
        }
    });
    EXPECT_NEAR(engine.clock(0), 1e-3, 1e-12);
    EXPECT_NEAR(engine.clock(1), 1e-3 + 1e-3 + 0.05 + 2e-3, 1e-12);
}

// The receiver comes at 1 s: an eager message is there, a detached and a rendezvous one start only then; only the
// rendezvous makes its sender wait.
TEST(Engine, LateReceiverDelaysByProtocol) {
    for (const double bytes : {50.0, 500.0, 5000.0}) {
        Engine engine = two_nodes();
        engine.run([&](Rank rank) -> Task {
            if (rank == 0) {
                co_await engine.send(0, 1, 7, bytes);
            } else {
                engine.compute(1, 1.0);
                co_await engine.receive(1, 0, 7);
            }
        });
        const double latency = bytes > 1000.0 ? rendezvous_latency : eager_latency;
        const double transfer = bytes > 100.0 ? latency + bytes / 1000.0 : 0.0;
        EXPECT_NEAR(engine.clock(1), 1.0 + transfer + 2e-3, 1e-12) << bytes;
        EXPECT_NEAR(engine.clock(0), bytes > 1000.0 ? 1.0 + transfer : 1e-3, 1e-12) << bytes;
    }
}

// Two flows of 5000 bytes leave node 0 at once: its up link carries 500 bytes/s for each.
TEST(Engine, FlowsOfANodeShareItsLink) {
    Engine engine(network(), {0, 0, 1, 2}, 3, 1, false);
    engine.run([&](Rank rank) -> Task {
        if (rank < 2) {
            co_await engine.send(rank, rank + 2, 7, 5000.0);
        } else {
            co_await engine.receive(rank, rank - 2, 7);
        }
    });
    EXPECT_NEAR(engine.clock(2), 1e-3 + rendezvous_latency + 10.0 + 2e-3, 1e-9);
    EXPECT_NEAR(engine.clock(3), 1e-3 + rendezvous_latency + 10.0 + 2e-3, 1e-9);
}

// A segment twice as fast as its link: a lone flow takes its fitted time, two of them the time that the link takes.
TEST(Engine, LoneFlowFasterThanItsLinkTakesItsFittedTime) {
    models::Network fast = network();
    fast.remote.segments.back().bandwidth_Bps = 2000.0;
    for (const Rank senders : {1U, 2U}) {
        Engine engine(fast, {0, 0, 1, 2}, 3, 1, false);
        engine.run([&](Rank rank) -> Task {
            if (rank < senders) {
                co_await engine.send(rank, rank + 2, 7, 5000.0);
            } else if (rank >= 2 && rank - 2 < senders) {
                co_await engine.receive(rank, rank - 2, 7);
            }
        });
        EXPECT_NEAR(engine.clock(2), 1e-3 + rendezvous_latency + senders * 2.5 + 2e-3, 1e-9);
    }
}

// flow_factor bound: two flows of a segment of half the link's bandwidth do not slow each other; scale: they do.
TEST(Engine, FlowFactorSaysWhetherASegmentBoundsOrScales) {
    for (const bool scale : {false, true}) {
        models::Network slow = network();
        slow.remote.segments.back().bandwidth_Bps = 500.0;
        slow.flow_factor = scale ? models::FlowFactor::scale : models::FlowFactor::bound;
        Engine engine(slow, {0, 0, 1, 2}, 3, 1, false);
        engine.run([&](Rank rank) -> Task {
            if (rank < 2) {
                co_await engine.send(rank, rank + 2, 7, 5000.0);
            } else {
                co_await engine.receive(rank, rank - 2, 7);
            }
        });
        EXPECT_NEAR(engine.clock(2), 1e-3 + rendezvous_latency + (scale ? 20.0 : 10.0) + 2e-3, 1e-9);
    }
}

TEST(Engine, ExchangeOfEqualMessagesEndsAtTheSameTimeOnBothSides) {
    Engine engine = two_nodes();
    engine.run([&](Rank rank) -> Task {
        engine.compute(rank, 0.1 * rank);
        co_await engine.exchange(rank, 1 - rank, 7, 5000.0);
    });
    EXPECT_NEAR(engine.clock(0), 0.1 + 1e-3 + rendezvous_latency + 5.0 + 2e-3, 1e-9);
    EXPECT_NEAR(engine.clock(1), engine.clock(0), 1e-12);
}

// An eager message of 50 bytes is in at 52 ms: a probe before finds nothing, one after finds it.
// A datatype with gaps has a bandwidth of its own: 500 bytes/s instead of 1000.
TEST(Engine, NoncontiguousMessagesHaveTheirOwnSegments) {
    models::Network gaps = network();
    gaps.remote_noncontiguous.segments.back().bandwidth_Bps = 500.0;
    Engine engine(gaps, {0, 1}, 2, 1, false);
    engine.run([&](Rank rank) -> Task {
        if (rank == 0) {
            co_await engine.send_noncontiguous(0, 1, 7, 5000.0);
        } else {
            co_await engine.receive(1, 0, 7);
        }
    });
    EXPECT_NEAR(engine.clock(1), 1e-3 + rendezvous_latency + 10.0 + 2e-3, 1e-9);
}

TEST(Engine, ProbeFindsWhatHasArrived) {
    Engine engine = two_nodes();
    bool early = true;
    bool late = false;
    engine.run([&](Rank rank) -> Task {
        if (rank == 0) {
            co_await engine.send(0, 1, 7, 50.0);
        } else {
            engine.compute(1, 0.05);
            early = co_await engine.probe(1, 0, 7);
            engine.compute(1, 0.05);
            late = co_await engine.probe(1, 0, 7);
            co_await engine.receive(1, 0, 7);
        }
    });
    EXPECT_FALSE(early);
    EXPECT_TRUE(late);
}

// A library that looks before it makes progress finds at 0.10 s what had come at the last call, at 0.05 s: nothing yet.
TEST(Engine, ProbeThatLooksFirstFindsWhatHadComeAtTheLastCall) {
    models::Network late = network();
    late.iprobe_looks_first = true;
    Engine engine(late, {0, 1}, 2, 1, false);
    std::vector<bool> found;
    engine.run([&](Rank rank) -> Task {
        if (rank == 0) {
            co_await engine.send(0, 1, 7, 50.0); // arrives at 52 ms
        } else {
            for (int look = 0; look < 3; ++look) {
                engine.compute(1, 0.05);
                found.push_back(co_await engine.probe(1, 0, 7));
            }
            co_await engine.receive(1, 0, 7);
        }
    });
    EXPECT_EQ(found, (std::vector<bool>{false, false, true}));
}

TEST(Engine, MessagesOfOnePairStayInOrder) {
    Engine engine = two_nodes();
    engine.run([&](Rank rank) -> Task {
        if (rank == 0) {
            co_await engine.send(0, 1, 7, 90.0);
            co_await engine.send(0, 1, 7, 0.0);
        } else {
            co_await engine.receive(1, 0, 7);
            EXPECT_GT(engine.clock(1), 0.09); // the long one, though the short one would be there before
            co_await engine.receive(1, 0, 7);
        }
    });
}

TEST(Engine, DeadlockIsReportedWithWhoWaitsForWhom) {
    Engine engine = two_nodes();
    try {
        engine.run([&](Rank rank) -> Task { co_await engine.receive(rank, 1 - rank, 3); });
        FAIL() << "two ranks that only receive must not end";
    } catch (const std::runtime_error& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("rank 0 waits for a message from rank 1 (tag 3)"), std::string::npos) << text;
        EXPECT_NE(text.find("rank 1 waits for a message from rank 0 (tag 3)"), std::string::npos) << text;
    }
}

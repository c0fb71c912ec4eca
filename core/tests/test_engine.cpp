#include "mpi/engine.hpp"
#include "small_network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

using namespace lepaute;
using mpi::Rank;
using mpi::Task;
using tests::eager_latency;
using tests::Engine;
using tests::network;
using tests::rendezvous_latency;
using tests::send_to_other_half;

namespace {

Engine two_nodes() { return {network(), {0, 1}, 2, 1, false}; }

} // namespace

// The sender pays its overhead (1 ms), the message its latency (1 ms) and 50 bytes / 1000, the receiver 2 ms.
TEST(Engine, EagerMessageTakesOverheadsLatencyAndBandwidth) {
    Engine engine = two_nodes();
    send_to_other_half(engine, {.send_bytes = 50.0});
    EXPECT_NEAR(engine.clock(0), 1e-3, 1e-12);
    EXPECT_NEAR(engine.clock(1), 1e-3 + 1e-3 + 0.05 + 2e-3, 1e-12);
}

// The receiver comes at 1 s: an eager message is there, a detached and a rendezvous one start only then; only the
// rendezvous makes its sender wait.
TEST(Engine, LateReceiverDelaysByProtocol) {
    for (const double bytes : {50.0, 500.0, 5000.0}) {
        Engine engine = two_nodes();
        send_to_other_half(engine, {.send_bytes = bytes}, 1.0);
        const double latency = bytes > 1000.0 ? rendezvous_latency : eager_latency;
        const double transfer = bytes > 100.0 ? latency + bytes / 1000.0 : 0.0;
        EXPECT_NEAR(engine.clock(1), 1.0 + transfer + 2e-3, 1e-12) << bytes;
        EXPECT_NEAR(engine.clock(0), bytes > 1000.0 ? 1.0 + transfer : 1e-3, 1e-12) << bytes;
    }
}

// Two flows of 5000 bytes leave node 0 at once: its up link carries 500 bytes/s for each.
TEST(Engine, FlowsOfANodeShareItsLink) {
    Engine engine(network(), {0, 0, 1, 2}, 3, 1, false);
    send_to_other_half(engine, {.send_bytes = 5000.0});
    EXPECT_NEAR(engine.clock(2), 1e-3 + rendezvous_latency + 10.0 + 2e-3, 1e-9);
    EXPECT_NEAR(engine.clock(3), 1e-3 + rendezvous_latency + 10.0 + 2e-3, 1e-9);
}

// A segment twice as fast as its link: a lone flow takes its fitted time, two of them the time that the link takes.
TEST(Engine, LoneFlowFasterThanItsLinkTakesItsFittedTime) {
    models::Network fast = network();
    fast.remote.segments.back().bandwidth_Bps = 2000.0;
    for (const Rank senders : {1U, 2U}) {
        Engine engine(fast, {0, 0, 1, 2}, 3, 1, false);
        send_to_other_half(engine, {.send_bytes = 5000.0}, 0.0, senders);
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
        send_to_other_half(engine, {.send_bytes = 5000.0});
        EXPECT_NEAR(engine.clock(2), 1e-3 + rendezvous_latency + (scale ? 20.0 : 10.0) + 2e-3, 1e-9);
    }
}

TEST(Engine, ExchangeOfEqualMessagesEndsAtTheSameTimeOnBothSides) {
    Engine engine = two_nodes();
    engine.run([&](Rank rank) -> Task {
        engine.compute(rank, 0.1 * rank);
        co_await engine.send_receive(rank, 1 - rank, 7, 5000.0, 1 - rank, 7);
    });
    EXPECT_NEAR(engine.clock(0), 0.1 + 1e-3 + rendezvous_latency + 5.0 + 2e-3, 1e-9);
    EXPECT_NEAR(engine.clock(1), engine.clock(0), 1e-12);
}

// MPI_Irecv, MPI_Send, MPI_Wait: a rendezvous message begins when the receive is posted, while its receiver still
// spends the overhead of what it sends: 0.5 s for an eager message, none for the other.
TEST(Engine, AnExchangePostsItsReceiveBeforeItSends) {
    models::Network slow = network();
    for (models::NetworkClass* links : {&slow.loopback, &slow.remote}) {
        links->segments.front().send = {0.5, 0.0};
        links->segments.back().send = {};
    }
    for (const std::uint32_t other : {0U, 1U}) { // inside a node, and between two
        for (const double late_s : {0.0, 0.2, 0.7}) {
            Engine engine(slow, {0, other}, 2, 1, false);
            engine.run([&](Rank rank) -> Task {
                engine.compute(rank, rank == 1 ? late_s : 0.0);
                co_await engine.send_receive(rank, 1 - rank, 7, rank == 0 ? 50.0 : 5000.0, 1 - rank, 7);
            });
            EXPECT_NEAR(engine.clock(0), late_s + rendezvous_latency + 5.0 + 2e-3, 1e-9) << other << late_s;
            EXPECT_NEAR(engine.clock(1), late_s + rendezvous_latency + 5.0 + 2e-3, 1e-9) << other << late_s;
        }
    }
}

// A message of 5000 bytes alone on its way, at 1000 bytes/s; from 1 s on it shares that for 2 s, and is 1 s late.
TEST(Engine, FlowsLoseWhatAMessageOfAnApplicationsOwnTakes) {
    models::Network free = network();
    free.remote.segments.back().send = {};
    Engine engine(free, {0, 1, 2}, 3, 1, false);
    engine.run([&](Rank rank) -> Task {
        if (rank == 0) {
            co_await engine.send(0, 1, 7, 5000.0);
        } else if (rank == 1) {
            co_await engine.receive(1, 0, 7);
        } else {
            co_await engine.until(2, 1.0);
            engine.take_from_flows(0, 1, 2.0);
            engine.settle_flows();
            EXPECT_EQ(engine.clock(2), 0.0);
        }
    });
    EXPECT_NEAR(engine.clock(1), 6.0 + rendezvous_latency + 2e-3, 1e-9);
}

// A datatype with gaps has a bandwidth of its own: 500 bytes/s instead of 1000.
TEST(Engine, NoncontiguousMessagesHaveTheirOwnSegments) {
    models::Network gaps = network();
    gaps.remote_noncontiguous.segments.back().bandwidth_Bps = 500.0;
    Engine engine(gaps, {0, 1}, 2, 1, false);
    send_to_other_half(engine, {.noncontiguous = true, .send_bytes = 5000.0});
    EXPECT_NEAR(engine.clock(1), 1e-3 + rendezvous_latency + 10.0 + 2e-3, 1e-9);
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

/// What a run says that must not end.
template <typename Program>
std::string deadlock_of(Engine& engine, Program program) {
    try {
        engine.run(program);
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "it ended";
}

TEST(Engine, DeadlockIsReportedWithWhoWaitsForWhom) {
    Engine engine = two_nodes();
    EXPECT_EQ(deadlock_of(engine, [&](Rank rank) -> Task { co_await engine.receive(rank, 1 - rank, 3); }),
              "deadlock: rank 0 waits for a message from rank 1 (tag 3); "
              "rank 1 waits for a message from rank 0 (tag 3)");
}

TEST(Engine, DeadlockNamesSendersThatNobodyReceivesFrom) {
    Engine engine(network(), {0, 1, 1}, 2, 1, false);
    const auto program = [&](Rank rank) -> Task {
        if (rank == 0) {
            co_await engine.send(0, 1, 3, 5000.0); // a rendezvous
        } else if (rank == 2) {
            co_await engine.send(2, 1, 4, 0.0, true);
        }
    };
    EXPECT_EQ(deadlock_of(engine, program),
              "deadlock: rank 0 waits for rank 1 to receive (tag 3); rank 2 waits for rank 1 to receive (tag 4)");
}

TEST(Engine, DeadlockNamesThoseWhoMeetAndThoseWhoProbe) {
    Engine engine(network(), {0, 1, 1}, 2, 1, false);
    mpi::Meeting meeting{2, {}};
    const auto program = [&](Rank rank) -> Task {
        if (rank == 0) {
            (void)co_await engine.join(0, meeting);
        } else if (rank == 1) {
            co_await engine.await_message(1, 0, 9);
        }
    };
    EXPECT_EQ(deadlock_of(engine, program),
              "deadlock: rank 0 waits for the others of its group; rank 1 waits for a message from rank 0 (tag 9)");
}

// A synchronous send of a few bytes, and a rendezvous, end when the message is in; what waits is the sender's clock.
TEST(Engine, SynchronousSendsBlockWhateverTheSize) {
    for (const bool local : {false, true}) {
        Engine engine(network(), {0, local ? 0U : 1U}, 2, 1, false);
        send_to_other_half(engine, {.synchronous = true, .send_bytes = 50.0}, 1.0);
        EXPECT_NEAR(engine.clock(0), 1.0 + eager_latency + 0.05, 1e-12);
        EXPECT_EQ(engine.clock(1), engine.clock(0)); // nothing was in a buffer
    }
}

// 5 ms of MPI_Issend in the place of 1 ms, latency and 50 bytes / 1000; no buffer, so nothing for the receiver.
TEST(Engine, SynchronousExchangesPayForIssend) {
    models::Network slow = network();
    for (models::Segment& segment : slow.remote.segments) {
        segment.isend = {5e-3, 0.0};
    }
    Engine engine(slow, {0, 1}, 2, 1, false);
    engine.run([&](Rank rank) -> Task {
        const Rank partner = 1 - rank;
        co_await engine.operation<void>(rank, {.kind = mpi::Operation::Kind::exchange,
                                               .synchronous = true,
                                               .send_to = partner,
                                               .receive_from = partner,
                                               .send_tag = 7,
                                               .receive_tag = 7,
                                               .send_bytes = 50.0});
    });
    EXPECT_NEAR(engine.clock(0), 5e-3 + eager_latency + 0.05, 1e-12);
    EXPECT_EQ(engine.clock(0), engine.clock(1));
}

// The receiver comes late and asks in another order; a receive costs 1 ms a byte, so that its clock tells which message
// it got: tags apart, messages of a pair come in the order in which they were sent.
TEST(Engine, UnexpectedMessagesAreTakenByTagAndInOrder) {
    models::Network counting = network();
    for (models::Segment& segment : counting.remote.segments) {
        segment.receive = {0.0, 1e-3};
    }
    Engine engine(counting, {0, 1, 1}, 2, 1, false);
    std::vector<double> got;
    engine.run([&](Rank rank) -> Task {
        if (rank == 0) {
            co_await engine.send(0, 1, 7, 30.0);
            co_await engine.send(0, 1, 8, 10.0);
            co_await engine.send(0, 1, 7, 20.0);
            co_await engine.send(0, 1, 9, 5.0);
        } else if (rank == 1) {
            engine.compute(1, 10.0);
            for (const std::uint32_t tag : {9U, 7U, 8U, 7U}) {
                const double before_s = engine.clock(1);
                co_await engine.receive(1, 0, tag);
                got.push_back(std::round(1e3 * (engine.clock(1) - before_s)));
            }
        }
    });
    EXPECT_EQ(got, (std::vector<double>{5.0, 30.0, 10.0, 20.0}));
}

// Eager messages are seen when they are in; the others when their header is, a message without bytes: the sender is
// ready after 1 ms, the latency is another one. learn_arrival says so and takes no time; polling ends then; a single
// probe (0.1 ms) sees what has come when it ends.
TEST(Engine, MessagesAreSeenByProbesWhenTheyOrTheirHeadersAreIn) {
    for (const bool local : {false, true}) {
        for (const double bytes : {50.0, 500.0, 5000.0}) {
            const double visible_s = bytes > 100.0 ? 2e-3 : 2e-3 + 0.05;
            for (const double late_s : {0.0, 0.2}) { // before and after it is known
                Engine engine(network(), {0, local ? 0U : 1U}, 2, 1, false);
                double learnt_s = 0.0;
                double stayed_s = 0.0;
                double polled_s = 0.0;
                engine.run([&](Rank rank) -> Task {
                    if (rank == 0) {
                        co_await engine.send(0, 1, 7, bytes);
                        engine.compute(0, 10.0); // by then the first has the links no more
                        co_await engine.send(0, 1, 8, bytes);
                    } else {
                        engine.compute(1, late_s);
                        learnt_s = co_await engine.learn_arrival(1, 0, 7);
                        stayed_s = engine.clock(1);
                        co_await engine.await_message(1, 0, 7);
                        polled_s = engine.clock(1);
                        co_await engine.receive(1, 0, 7);
                        co_await engine.receive(1, 0, 8);
                    }
                });
                EXPECT_NEAR(learnt_s, visible_s, 1e-12) << bytes;
                EXPECT_EQ(stayed_s, late_s);
                EXPECT_NEAR(polled_s, std::max(late_s + 1e-4, visible_s), 1e-12) << bytes;
            }
            for (const double margin_s : {-1e-9, 1e-9}) {
                Engine engine(network(), {0, local ? 0U : 1U}, 2, 1, false);
                bool found = false;
                engine.run([&](Rank rank) -> Task {
                    if (rank == 0) {
                        co_await engine.send(0, 1, 7, bytes);
                    } else {
                        engine.compute(1, visible_s + margin_s - 1e-4);
                        found = co_await engine.probe(1, 0, 7);
                        co_await engine.receive(1, 0, 7);
                    }
                });
                EXPECT_EQ(found, margin_s > 0.0) << bytes << " " << local;
            }
        }
    }
}

// The second message, whose header is in at once, is not seen before the first of the same tag.
TEST(Engine, MessagesThatAreProbedForStayInOrder) {
    Engine engine = two_nodes();
    bool found = false;
    engine.run([&](Rank rank) -> Task {
        if (rank == 0) {
            co_await engine.send(0, 1, 7, 90.0);  // eager: in at 92 ms
            co_await engine.send(0, 1, 7, 500.0); // its header is in at 3 ms
        } else {
            EXPECT_NEAR(co_await engine.learn_arrival(1, 0, 7), 0.092, 1e-12);
            co_await engine.await_message(1, 0, 7);
            EXPECT_NEAR(engine.clock(1), 0.092, 1e-12);
            found = co_await engine.probe(1, 0, 7);
            co_await engine.receive(1, 0, 7);
            co_await engine.receive(1, 0, 7);
        }
    });
    EXPECT_TRUE(found);
}

// A flow of 5000 bytes is on the links from 1 ms to 5.001 s, and that of the rank that waits for a date shows it.
TEST(Engine, UntilWaitsForADateWithoutMovingTheClock) {
    Engine engine(network(), {0, 1, 2}, 3, 1, false);
    std::vector<std::uint32_t> flows;
    engine.run([&](Rank rank) -> Task {
        if (rank == 0) {
            co_await engine.send(0, 1, 7, 5000.0);
        } else if (rank == 1) {
            co_await engine.receive(1, 0, 7);
        } else {
            for (const double date_s : {5e-4, 1.5e-3, 5.0, 5.0, 5.0015, 1.0}) {
                co_await engine.until(2, date_s);
                EXPECT_GE(engine.now_s(), date_s);
                EXPECT_EQ(engine.clock(2), 0.0);
                EXPECT_EQ(engine.flows_leaving(0), engine.flows_reaching(1));
                EXPECT_EQ(engine.flows_leaving(0), static_cast<std::uint32_t>(engine.flows_on_way(0, 1)));
                EXPECT_EQ(engine.flows_reaching(0) + engine.flows_leaving(2), 0U);
                flows.push_back(engine.flows_leaving(0));
            }
        }
    });
    EXPECT_EQ(flows, (std::vector<std::uint32_t>{0, 1, 1, 1, 0, 0}));
}

// Of three that meet the last goes on, sets the clocks of all, and releases the others.
TEST(Engine, TheLastOfAMeetingReleasesTheOthers) {
    Engine engine(network(), {0, 1, 1}, 2, 1, false);
    mpi::Meeting meeting{3, {}};
    std::vector<Rank> last;
    engine.run([&](Rank rank) -> Task {
        if (rank == 0) {
            co_await engine.receive(0, 1, 5);
        } else if (rank == 1) {
            co_await engine.send(1, 0, 5, 0.0);
        }
        for (int round = 0; round < 2; ++round) {
            if (co_await engine.join(rank, meeting)) {
                last.push_back(rank);
                for (Rank each = 0; each < 3; ++each) {
                    engine.set_clock(each, 1.0 + round, {});
                }
                engine.release(rank, meeting);
            }
            EXPECT_EQ(engine.clock(rank), 1.0 + round);
        }
    });
    EXPECT_EQ(last.size(), 2U);
}

// What holds for any program: time never runs backwards, no message is faster than alone, the time of a rank is the sum
// of its shares, and a program repeats itself.

#include "mpi/engine.hpp"
#include "small_network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

using namespace lepaute;
using mpi::Engine;
using mpi::Rank;
using mpi::Task;

namespace {

struct Transfer {
    Rank from;
    Rank to;
    std::uint32_t tag;
    double bytes;
    int kind; // 0: send and receive; 1: synchronous; 2: the receiver polls first; 3: it probes; 4: both at once
    double sender_computes_s;
    double receiver_computes_s;
    // filled in by the run
    double posted_s = -1.0;
    double sent_s = -1.0;
    double received_s = -1.0;
};

/// Messages in one order that all ranks follow: who comes first never waits for who comes later, so it cannot deadlock.
std::vector<Transfer> transfers(std::uint64_t seed, Rank ranks) {
    std::mt19937_64 random(seed);
    std::vector<Transfer> all;
    for (std::uint32_t i = 0; i < 120; ++i) {
        const auto from = static_cast<Rank>(random() % ranks);
        const auto to = static_cast<Rank>((from + 1 + random() % (ranks - 1)) % ranks);
        const double bytes = std::vector<double>{0.0, 10.0, 100.0, 101.0, 700.0, 1000.0, 1001.0, 5000.0}[random() % 8];
        const auto pause_s = [&] { return random() % 3 == 0 ? 0.0 : 1e-3 * static_cast<double>(random() % 1000); };
        all.push_back({from, to, static_cast<std::uint32_t>(random() % 3), bytes, static_cast<int>(random() % 5),
                       pause_s(), pause_s()});
    }
    return all;
}

models::Network network(bool exact, bool loopback_shared, double noise) {
    std::vector<models::Segment> segments =
        tests::by_size({0.0, models::Protocol::eager, 1e-3, 1000.0, {1e-3, 1e-7}, {}, {2e-3, 1e-7}, noise});
    segments.back().bandwidth_Bps = 4000.0; // faster than a link
    models::Network result = tests::network_of(std::move(segments), 2000.0);
    for (models::Segment& segment : result.loopback.segments) {
        segment.latency_s = 1e-4;
        segment.bandwidth_Bps = 3000.0;
    }
    result.loopback_noncontiguous = result.loopback;
    result.loopback_Bps = 5000.0;
    result.loopback_shared = loopback_shared;
    result.iprobe_s = 1e-4;
    result.exact_sharing = exact;
    return result;
}

/// One rank's part; notes when the messages are posted, sent and received, and that no clock runs backwards.
struct Witness {
    Engine& engine;
    std::vector<Transfer>& all;
    std::vector<double> seen_s;
    double settled_s = 0.0;

    Witness(Engine& of, std::vector<Transfer>& transfers_of) : engine(of), all(transfers_of), seen_s(of.size(), 0.0) {}

    double look(Rank rank) {
        const double clock_s = engine.clock(rank);
        EXPECT_GE(clock_s, seen_s[rank]);
        EXPECT_GE(engine.now_s(), settled_s);
        seen_s[rank] = clock_s;
        settled_s = engine.now_s();
        return clock_s;
    }
    Task run(Rank rank) {
        for (Transfer& each : all) {
            if (each.from == rank) {
                engine.compute(rank, each.sender_computes_s);
                each.posted_s = look(rank);
                if (each.kind == 1) {
                    co_await engine.send(rank, each.to, each.tag, each.bytes, true);
                } else if (each.kind == 4) {
                    co_await engine.send_receive(rank, each.to, each.tag, each.bytes, each.to, each.tag);
                } else {
                    co_await engine.send(rank, each.to, each.tag, each.bytes);
                }
                each.sent_s = look(rank);
            } else if (each.to == rank) {
                engine.compute(rank, each.receiver_computes_s);
                look(rank);
                if (each.kind == 2) {
                    co_await engine.await_message(rank, each.from, each.tag);
                    look(rank);
                    const bool still_there = co_await engine.probe(rank, each.from, each.tag);
                    EXPECT_TRUE(still_there);
                } else if (each.kind == 3) {
                    while (!co_await engine.probe(rank, each.from, each.tag)) {
                        engine.compute(rank, 0.05);
                        look(rank);
                    }
                }
                look(rank);
                if (each.kind == 4) {
                    co_await engine.send_receive(rank, each.from, each.tag, each.bytes, each.from, each.tag);
                } else {
                    co_await engine.receive(rank, each.from, each.tag);
                }
                each.received_s = look(rank);
            }
        }
    }
};

struct Ran {
    std::vector<Transfer> transfers;
    std::vector<double> clock_s;
};

Ran run(std::uint64_t seed, const models::Network& net, const net::Topology& topology, bool noise) {
    const Rank ranks = 9;
    Ran result{transfers(seed, ranks), {}};
    std::vector<std::uint32_t> nodes(ranks);
    for (Rank rank = 0; rank < ranks; ++rank) {
        nodes[rank] = rank / 2; // the last one alone
    }
    Engine engine(net, topology, nodes, seed, noise);
    Witness witness(engine, result.transfers);
    const double latest_s = engine.run([&](Rank rank) { return witness.run(rank); });
    for (Rank rank = 0; rank < ranks; ++rank) {
        result.clock_s.push_back(engine.clock(rank));
        const mpi::Shares& shares = engine.shares_s(rank);
        EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), engine.clock(rank), 1e-9);
        for (const double share : shares) {
            EXPECT_GE(share, -1e-12);
        }
    }
    EXPECT_EQ(latest_s, *std::max_element(result.clock_s.begin(), result.clock_s.end()));
    return result;
}

net::Topology fat_tree() {
    return net::Topology::fat_tree({{2, 3}, {1, 2}, {1, 1}}, {.levels = {{2000.0, 2e-4}, {1500.0, 3e-4}}});
}

void check(const Ran& ran, const models::Network& net, double least_factor) {
    for (const Transfer& each : ran.transfers) {
        const bool local = each.from / 2 == each.to / 2;
        const models::Segment& segment = (local ? net.loopback : net.remote).at(each.bytes);
        const double alone_s = least_factor * (segment.latency_s + each.bytes / segment.bandwidth_Bps);
        const double left_s = each.posted_s + segment.send.of(each.bytes);
        const double taking_s =
            each.kind == 1 && segment.protocol != models::Protocol::rendezvous ? 0.0 : segment.receive.of(each.bytes);
        EXPECT_GE(each.received_s, left_s + alone_s + taking_s - 1e-12);
        EXPECT_GE(each.sent_s, left_s - 1e-12);
        if (each.kind == 1 || segment.protocol == models::Protocol::rendezvous) {
            EXPECT_GE(each.sent_s, left_s + alone_s - 1e-12);
        }
    }
}

} // namespace

TEST(EngineLaws, NoMessageComesBeforeItWasSentAndNoClockRunsBackwards) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        const models::Network net = network(seed % 2 == 0, seed % 3 == 0, 0.0);
        const net::Topology topology = seed % 4 < 2 ? net::Topology::plain_switch(6, 2000.0) : fat_tree();
        check(run(seed, net, topology, false), net, 1.0);
    }
}

TEST(EngineLaws, HoldWithNoiseWhichRepeatsForASeed) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const models::Network net = network(seed % 2 == 0, seed % 3 == 0, 0.2);
        const Ran ran = run(seed, net, fat_tree(), true);
        check(ran, net, 1.0 - 0.2 * 1.3236); // the least that a half-normal draw can be
        EXPECT_EQ(run(seed, net, fat_tree(), true).clock_s, ran.clock_s);
    }
}

// Without a shared link, exact and fair sharing are the same: one rank a node, one message at a time.
TEST(EngineLaws, SharingDoesNotMatterToALoneMessage) {
    for (const double bytes : {50.0, 500.0, 5000.0}) {
        std::vector<double> end_s;
        for (const bool exact : {false, true}) {
            Engine engine(network(exact, false, 0.0), fat_tree(), {0, 5}, 1, false);
            end_s.push_back(tests::send_to_other_half(engine, {.send_bytes = bytes}));
        }
        EXPECT_EQ(end_s[0], end_s[1]);
    }
}

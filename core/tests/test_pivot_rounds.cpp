#include "apps/hpl/pivot_rounds.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace lepaute::hpl {
namespace {

/// An exchange of messages that take 1 s alone on a link of their own, and `local_s` inside a node.
struct Exchange {
    std::vector<std::uint32_t> nodes;
    std::vector<double> clock_s;
    double local_s = 1.0;
    double others = 0.0; // flows that leave the first node besides
    double latency_s = 0.0;
    std::vector<double> contention_s; // of each process over all rounds

    void run() {
        const auto count = static_cast<std::uint32_t>(nodes.size());
        std::vector<PivotRound> rounds;
        for (std::uint32_t bit = 1; bit < count; bit <<= 1U) {
            for (std::uint32_t process = 0; process < count; ++process) {
                const bool crosses = nodes[process] != nodes[process ^ bit];
                rounds.push_back({.send_s = 0.0,
                                  .latency_s = crosses ? latency_s : 0.0,
                                  .alone_s = crosses ? 1.0 : local_s,
                                  .per_flow_s = crosses ? 1.0 : 0.0,
                                  .receive_s = 0.0,
                                  .sent_bytes = 1.0,
                                  .received_bytes = 1.0});
            }
        }
        std::vector<double> leaving(count, 0.0);
        for (std::uint32_t process = 0; process < count; ++process) {
            leaving[process] = nodes[process] == nodes.front() ? others : 0.0;
        }
        contention_s.assign(count, 0.0);
        PivotRounds(nodes).run(
            rounds, leaving, std::vector<double>(count, 0.0),
            [&](std::uint32_t process) -> double& { return clock_s[process]; },
            [&](std::uint32_t process, std::uint32_t /*round*/, const PivotWait& wait) {
                contention_s[process] += wait.contention_s;
            });
    }
};

using Dates = std::vector<double>;

TEST(PivotRounds, TwoProcessesMeetWhenTheLaterOneHasSent) {
    Exchange found{.nodes = {0, 1}, .clock_s = {0.0, 2.0}, .latency_s = 0.5, .contention_s = {}};
    found.run();
    EXPECT_EQ(found.clock_s, (Dates{3.5, 2.0})); // what the first sent was there at 1.5
}

TEST(PivotRounds, ProcessesOfANodeShareItsLink) {
    Exchange found{.nodes = {0, 0, 1, 1}, .clock_s = {0.0, 0.0, 0.0, 0.0}, .contention_s = {}};
    found.run();
    EXPECT_EQ(found.clock_s, (Dates{3.0, 3.0, 3.0, 3.0})); // 1 s inside the node, then two at half the speed
    EXPECT_EQ(found.contention_s, (Dates{1.0, 1.0, 1.0, 1.0}));
}

TEST(PivotRounds, AMessageOfTheNextRoundMeetsOneOfThisRound) {
    // Processes 0 and 3 share a link, and so do 1 and 2. 0 and 1 are through with their first round at 1 and send
    // again; 2 and 3 send their first messages at 1.5. From then on both links carry two: what 0 and 1 sent, half of
    // which was through, is there at 2.5; the others have then had half of theirs, and are through at 3. Only then do
    // 2 and 3 send what 0 and 1 wait for.
    Exchange found{.nodes = {0, 1, 1, 0}, .clock_s = {0.0, 0.0, 1.5, 1.5}, .contention_s = {}};
    found.run();
    EXPECT_EQ(found.clock_s, (Dates{4.0, 4.0, 3.0, 3.0}));
    EXPECT_EQ(found.contention_s, (Dates{0.0, 0.0, 1.0, 1.0})); // half a second in each of their rounds
}

TEST(PivotRounds, OtherFlowsTakeTheirShareOfALink) {
    Exchange found{.nodes = {0, 1}, .clock_s = {0.0, 0.0}, .others = 2.0, .contention_s = {}};
    found.run();
    EXPECT_EQ(found.clock_s, (Dates{1.0, 3.0})); // on the way from the first node
}

TEST(PivotRounds, MessagesCanMeetWhereSeveralProcessesOfANodeFillItsLink) {
    const std::vector<std::uint32_t> alone{0, 1};
    const std::vector<std::uint32_t> together{0, 0, 0, 0};
    const std::vector<std::uint32_t> pairs{0, 0, 1, 1};
    EXPECT_FALSE(PivotRounds(alone).can_meet(1.0, 5.0));
    EXPECT_FALSE(PivotRounds(together).can_meet(1.0, 0.0));
    EXPECT_TRUE(PivotRounds(pairs).can_meet(1.0, 0.0));
    EXPECT_FALSE(PivotRounds(pairs).can_meet(0.5, 0.0)); // both fit
    EXPECT_TRUE(PivotRounds(pairs).can_meet(0.5, 1.0));
}

} // namespace
} // namespace lepaute::hpl

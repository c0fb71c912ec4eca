#include "apps/hpl/pivot_rounds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace lepaute::hpl {
namespace {

/// An exchange whose messages take 1 s alone, of processes that begin at `clock_s`. delay_s: of a message, for others
/// that share its link.
struct Exchange {
    std::vector<double> clock_s;
    double latency_s = 0.0;
    std::function<double(std::uint32_t)> delay_s = [](std::uint32_t) { return 0.0; };
    std::vector<double> contention_s{}; // of each process over all rounds
    std::vector<std::uint32_t> order{}; // in which the messages set out

    void run() {
        const auto count = static_cast<std::uint32_t>(clock_s.size());
        std::vector<PivotRound> rounds;
        for (std::uint32_t bit = 1; bit < count; bit <<= 1U) {
            rounds.insert(rounds.end(), count, {0.0, latency_s, 1.0, 1.0, 0.0, 1.0, 1.0});
        }
        contention_s.assign(count, 0.0);
        const auto done = [&](std::uint32_t process, std::uint32_t /*round*/, const PivotWait& wait) {
            contention_s[process] += wait.contention_s;
        };
        std::vector<std::pair<double, std::uint32_t>> arrivals;
        PivotRounds exchange;
        exchange.begin(rounds, clock_s);
        while (!exchange.is_over()) {
            const auto first = std::ranges::min_element(arrivals);
            if (first != arrivals.end() && first->first <= exchange.next_start_s()) {
                exchange.arrive(first->second, first->first, done);
                arrivals.erase(first);
                continue;
            }
            const double start_s = exchange.next_start_s();
            const std::uint32_t message = exchange.start_next(done);
            EXPECT_EQ(exchange.sender(message), exchange.receiver(message) ^ (1U << (message / count)));
            order.push_back(message);
            arrivals.emplace_back(start_s + 1.0 + latency_s + delay_s(message), message);
        }
        for (std::uint32_t process = 0; process < count; ++process) {
            clock_s[process] = exchange.clock_s(process);
        }
    }
};

using Dates = std::vector<double>;

TEST(PivotRounds, TwoProcessesMeetWhenTheLaterOneHasSent) {
    Exchange found{.clock_s = {0.0, 2.0}, .latency_s = 0.5};
    found.run();
    EXPECT_EQ(found.clock_s, (Dates{3.5, 2.0})); // what the first sent was there at 1.5
    EXPECT_EQ(found.contention_s, (Dates{0.0, 0.0}));
}

TEST(PivotRounds, WhoIsAheadSendsItsMessageOfTheNextRound) {
    // 0 and 1 are through with their first round at 1, when 2 and 3 have not yet begun.
    Exchange found{.clock_s = {0.0, 0.0, 1.5, 1.5}};
    found.run();
    EXPECT_EQ(found.clock_s, (Dates{3.5, 3.5, 2.5, 2.5}));
    EXPECT_EQ(found.order, (std::vector<std::uint32_t>{1, 0, 6, 7, 3, 2, 4, 5}));
}

TEST(PivotRounds, ADelayOfAMessageIsContentionOfItsReceiver) {
    // What 0 receives in the first round comes half a second late: it sends that much later in the second, so that 2
    // waits as well, for a sender that was late.
    Exchange found{.clock_s = {0.0, 0.0, 0.0, 0.0},
                   .delay_s = [](std::uint32_t message) { return message == 0 ? 0.5 : 0.0; }};
    found.run();
    EXPECT_EQ(found.clock_s, (Dates{2.0, 2.0, 2.5, 2.0}));
    EXPECT_EQ(found.contention_s, (Dates{0.5, 0.0, 0.0, 0.0}));
}

} // namespace
} // namespace lepaute::hpl

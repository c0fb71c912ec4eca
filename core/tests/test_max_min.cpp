#include "net/flows.hpp"
#include "net/max_min.hpp"
#include "rng/philox.hpp"

#include <gtest/gtest.h>

#include <algorithm>

using namespace lepaute::net;

// Two flows share link 0 (10), one of them also crosses link 1 (3): it gets 3, the other the remaining 7.
TEST(MaxMin, GivesTheRestToWhoCanUseIt) {
    const std::vector<double> capacity{10.0, 3.0};
    const std::vector<LinkId> both{0, 1};
    const std::vector<LinkId> first{0};
    const std::vector<Demand> demands{{both, 1e9}, {first, 1e9}};
    const auto rate = max_min_rates(capacity, demands);
    EXPECT_DOUBLE_EQ(rate[0], 3.0);
    EXPECT_DOUBLE_EQ(rate[1], 7.0);
}

TEST(MaxMin, RespectsCaps) {
    const std::vector<double> capacity{12.0};
    const std::vector<LinkId> link{0};
    const std::vector<Demand> demands{{link, 2.0}, {link, 1e9, 2}};
    const auto rate = max_min_rates(capacity, demands);
    EXPECT_DOUBLE_EQ(rate[0], 2.0);
    EXPECT_DOUBLE_EQ(rate[1], 5.0);
}

// The definition: feasible, and every flow is at its cap or crosses a full link where no other flow is faster.
TEST(MaxMin, IsFeasibleAndEveryFlowHasABottleneckOnRandomNetworks) {
    for (std::uint64_t network = 0; network < 200; ++network) {
        std::uint64_t index = 0;
        const auto uniform = [&] { return lepaute::rng::uniform({network, 0, 0, index++}); };
        const auto links = static_cast<std::uint32_t>(2 + 6 * uniform());
        std::vector<double> capacity(links);
        std::generate(capacity.begin(), capacity.end(), [&] { return 1.0 + 9.0 * uniform(); });
        std::vector<std::vector<LinkId>> routes(static_cast<std::size_t>(1 + 12 * uniform()));
        std::vector<Demand> demands;
        for (std::vector<LinkId>& route : routes) {
            for (LinkId link = 0; link < links; ++link) {
                if (route.size() < 3 && uniform() < 0.3) {
                    route.push_back(link);
                }
            }
            demands.push_back({route, 0.2 + 8.0 * uniform(), static_cast<std::uint32_t>(1 + 3 * uniform())});
        }
        const auto rate = max_min_rates(capacity, demands);
        std::vector<double> load(links, 0.0);
        std::vector<double> fastest(links, 0.0);
        for (std::size_t flow = 0; flow < demands.size(); ++flow) {
            for (const LinkId link : demands[flow].links) {
                fastest[link] = std::max(fastest[link], rate[flow]);
                load[link] += rate[flow] * demands[flow].flows;
            }
        }
        for (std::uint32_t link = 0; link < links; ++link) {
            EXPECT_LE(load[link], capacity[link] * (1.0 + 1e-9));
        }
        for (std::size_t flow = 0; flow < demands.size(); ++flow) {
            const auto bottleneck = [&](LinkId link) {
                return load[link] >= capacity[link] * (1.0 - 1e-9) && rate[flow] >= fastest[link] * (1.0 - 1e-9);
            };
            EXPECT_TRUE(rate[flow] >= demands[flow].cap_Bps * (1.0 - 1e-9) ||
                        std::any_of(demands[flow].links.begin(), demands[flow].links.end(), bottleneck))
                << "network " << network << ", flow " << flow;
        }
    }
}

// Two flows of 10 bytes on a link of 10 bytes/s, the second half a second later: alone 10 bytes/s, together 5 each.
// At 0.5 the first has 5 left; it ends at 1.5, when the second has 5 left and the link to itself: it ends at 2.
TEST(Flows, ShareALinkWhileTheyOverlap) {
    for (const Sharing sharing : {Sharing::fair, Sharing::exact}) {
        const std::vector<LinkId> link{0};
        Flows flows({10.0}, 1, sharing);
        flows.start(0.0, 1, 10.0, 0, 1, 1e9, link);
        flows.start(0.5, 2, 10.0, 0, 2, 1e9, link);
        EXPECT_DOUBLE_EQ(flows.next_end_s(0), 1.5);
        EXPECT_EQ(flows.finish_next(0), 1U);
        EXPECT_DOUBLE_EQ(flows.next_end_s(0), 2.0);
        EXPECT_EQ(flows.finish_next(0), 2U);
        EXPECT_EQ(flows.next_end_s(0), Flows::never);
    }
}

// Source 0 sends to 2 and 3, source 1 to 3; links 0 and 1 carry 4 bytes/s, link 3 carries 1. Fair shares give the flow
// 0 -> 2 half of its link; exactly, it gets what 0 -> 3, held back by link 3, leaves over.
TEST(Flows, FairSharesAreNeverMoreThanExactOnes) {
    const std::vector<LinkId> to_2{0, 2};
    const std::vector<LinkId> to_3{0, 3};
    const std::vector<LinkId> from_1{1, 3};
    for (const Sharing sharing : {Sharing::fair, Sharing::exact}) {
        Flows flows({4.0, 4.0, 4.0, 1.0}, 2, sharing);
        flows.start(0.0, 1, 10.0, 0, 2, 1e9, to_2);
        flows.start(0.0, 2, 10.0, 0, 3, 1e9, to_3);
        flows.start(0.0, 3, 10.0, 1, 3, 1e9, from_1);
        EXPECT_DOUBLE_EQ(flows.rate_Bps(0, 3), 0.5);
        EXPECT_DOUBLE_EQ(flows.rate_Bps(1, 3), 0.5);
        EXPECT_DOUBLE_EQ(flows.rate_Bps(0, 2), sharing == Sharing::fair ? 2.0 : 3.5);
    }
}

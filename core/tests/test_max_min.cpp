#include "net/flows.hpp"
#include "net/max_min.hpp"
#include "rng/philox.hpp"

#include <gtest/gtest.h>

#include <algorithm>

using namespace lepaute::net;

// Two flows share link 0 (10), one of them also crosses link 1 (3): it gets 3, the other the remaining 7.
TEST(MaxMin, GivesTheRestToWhoCanUseIt) {
    const std::vector<double> capacity{10.0, 3.0};
    const std::vector<Demand> demands{{0, 1, 1e9}, {0, 0, 1e9}};
    const auto rate = max_min_rates(capacity, demands);
    EXPECT_DOUBLE_EQ(rate[0], 3.0);
    EXPECT_DOUBLE_EQ(rate[1], 7.0);
}

TEST(MaxMin, RespectsCaps) {
    const std::vector<double> capacity{12.0};
    const std::vector<Demand> demands{{0, 0, 2.0}, {0, 0, 1e9}, {0, 0, 1e9}};
    const auto rate = max_min_rates(capacity, demands);
    EXPECT_DOUBLE_EQ(rate[0], 2.0);
    EXPECT_DOUBLE_EQ(rate[1], 5.0);
    EXPECT_DOUBLE_EQ(rate[2], 5.0);
}

// The definition: feasible, and every flow is at its cap or crosses a full link where no other flow is faster.
TEST(MaxMin, IsFeasibleAndEveryFlowHasABottleneckOnRandomNetworks) {
    for (std::uint64_t network = 0; network < 200; ++network) {
        std::uint64_t index = 0;
        const auto uniform = [&] { return lepaute::rng::uniform({network, 0, 0, index++}); };
        const auto links = static_cast<std::uint32_t>(2 + 6 * uniform());
        std::vector<double> capacity(links);
        std::generate(capacity.begin(), capacity.end(), [&] { return 1.0 + 9.0 * uniform(); });
        std::vector<Demand> demands(static_cast<std::size_t>(1 + 12 * uniform()));
        for (Demand& demand : demands) {
            demand = {static_cast<LinkId>(links * uniform()), static_cast<LinkId>(links * uniform()),
                      0.2 + 8.0 * uniform()};
        }
        const auto rate = max_min_rates(capacity, demands);
        std::vector<double> load(links, 0.0);
        std::vector<double> fastest(links, 0.0);
        for (std::size_t flow = 0; flow < demands.size(); ++flow) {
            for (const LinkId link : {demands[flow].first, demands[flow].second}) {
                fastest[link] = std::max(fastest[link], rate[flow]);
            }
            load[demands[flow].first] += rate[flow];
            if (demands[flow].second != demands[flow].first) {
                load[demands[flow].second] += rate[flow];
            }
        }
        for (std::uint32_t link = 0; link < links; ++link) {
            EXPECT_LE(load[link], capacity[link] * (1.0 + 1e-9));
        }
        for (std::size_t flow = 0; flow < demands.size(); ++flow) {
            const auto bottleneck = [&](LinkId link) {
                return load[link] >= capacity[link] * (1.0 - 1e-9) && rate[flow] >= fastest[link] * (1.0 - 1e-9);
            };
            EXPECT_TRUE(rate[flow] >= demands[flow].cap_Bps * (1.0 - 1e-9) || bottleneck(demands[flow].first) ||
                        bottleneck(demands[flow].second))
                << "network " << network << ", flow " << flow;
        }
    }
}

// Two flows of 10 bytes on a link of 10 bytes/s, the second one second later: alone 10 bytes/s, together 5 each.
// The first has 0 left at t = 1, the second then has the link to itself: ends at 1 and 2. With the second at 0.5:
// the first has 5 left, both at 5/s; it ends at 1.5, the second has 5 left, ends at 2.
TEST(Flows, ShareALinkWhileTheyOverlap) {
    Flows flows({10.0});
    flows.start(0.0, 1, 10.0, {0, 0, 1e9});
    flows.start(0.5, 2, 10.0, {0, 0, 1e9});
    ASSERT_TRUE(flows.next_end().has_value());
    EXPECT_DOUBLE_EQ(flows.next_end()->date_s, 1.5);
    EXPECT_EQ(flows.next_end()->tag, 1U);
    flows.finish_next();
    EXPECT_DOUBLE_EQ(flows.next_end()->date_s, 2.0);
    flows.finish_next();
    EXPECT_TRUE(flows.empty());
}

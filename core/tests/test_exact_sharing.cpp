#include "net/exact_sharing.hpp"
#include "net/topology.hpp"
#include "rng/philox.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

using namespace lepaute::net;

namespace {

struct Bundle {
    std::vector<LinkId> route;
    double cap_Bps;
    std::uint32_t count = 0;
};

/// The slow twin: progressive filling of all flows from zero (Bertsekas & Gallager, Data Networks, section 6.5.2).
std::vector<double> filled(const std::vector<double>& capacity_Bps, const std::vector<Bundle>& bundles) {
    std::vector<double> rate(bundles.size(), 0.0);
    std::vector<double> left = capacity_Bps;
    std::vector<double> open(capacity_Bps.size(), 0.0);
    std::vector<std::size_t> growing;
    for (std::size_t i = 0; i < bundles.size(); ++i) {
        if (bundles[i].count > 0) {
            growing.push_back(i);
            for (const LinkId link : bundles[i].route) {
                open[link] += bundles[i].count;
            }
        }
    }
    const auto share = [&](std::size_t i) {
        double least = bundles[i].cap_Bps;
        for (const LinkId link : bundles[i].route) {
            least = std::min(least, left[link] / open[link]);
        }
        return least;
    };
    while (!growing.empty()) {
        double lowest = std::numeric_limits<double>::infinity();
        for (const std::size_t i : growing) {
            lowest = std::min(lowest, share(i));
        }
        std::vector<std::size_t> fixed;
        std::vector<std::size_t> others;
        for (const std::size_t i : growing) {
            (share(i) <= lowest * (1.0 + 1e-13) ? fixed : others).push_back(i);
        }
        for (const std::size_t i : fixed) {
            rate[i] = lowest;
            for (const LinkId link : bundles[i].route) {
                left[link] = std::max(0.0, left[link] - lowest * bundles[i].count);
                open[link] -= bundles[i].count;
            }
        }
        growing = others;
    }
    return rate;
}

/// Random numbers of one test.
struct Draws {
    std::uint64_t seed;
    std::uint64_t index = 0;
    double uniform() { return lepaute::rng::uniform({seed, 0, 0, index++}); }
    std::uint32_t below(std::uint32_t n) { return std::min(n - 1, static_cast<std::uint32_t>(n * uniform())); }
};

/// A random network, and the sharing beside the bundles that it should know of.
struct Twin {
    std::vector<double> capacity_Bps;
    std::vector<Bundle> bundles;
    ExactSharing sharing;
    std::vector<double> reported; // what settle() has said so far

    Twin(Draws& draws, std::uint32_t links, std::uint32_t count, bool with_ties, double patience)
        : capacity_Bps(capacities(draws, links, with_ties)), sharing(capacity_Bps, patience) {
        for (std::uint32_t i = 0; i < count; ++i) {
            std::set<LinkId> route;
            const std::uint32_t hops = std::min(links, 1 + draws.below(4));
            while (route.size() < hops) {
                route.insert(draws.below(links));
            }
            // of equal numbers many fair shares, caps and capacities coincide
            const double cap_Bps = with_ties ? std::ldexp(1.0, static_cast<int>(draws.below(5)))
                                             : (draws.uniform() < 0.3 ? 1e30 : 0.1 + 5.0 * draws.uniform());
            bundles.push_back({{route.begin(), route.end()}, cap_Bps, 0});
            EXPECT_EQ(sharing.add_bundle(bundles.back().route, cap_Bps), i);
        }
        reported.assign(count, 0.0);
    }
    static std::vector<double> capacities(Draws& draws, std::uint32_t links, bool with_ties) {
        std::vector<double> made(links);
        std::ranges::generate(made, [&] {
            return with_ties ? std::ldexp(1.0, static_cast<int>(draws.below(4))) : 1.0 + 9.0 * draws.uniform();
        });
        return made;
    }
    void set(std::uint32_t bundle, std::uint32_t count) {
        bundles[bundle].count = count;
        reported[bundle] = count == 0 ? 0.0 : reported[bundle]; // if it comes back, it comes as a new one
        sharing.set_count(bundle, count);
    }
    void settle_and_check(const std::string& where) {
        for (const auto bundle : sharing.settle()) {
            ASSERT_NE(sharing.rate(bundle), reported[bundle]) << where << ": reported without a change";
            reported[bundle] = sharing.rate(bundle);
        }
        const std::vector<double> expected = filled(capacity_Bps, bundles);
        for (std::uint32_t i = 0; i < bundles.size(); ++i) {
            ASSERT_NEAR(sharing.rate(i), expected[i], 1e-9 * expected[i]) << where << ", bundle " << i;
            if (bundles[i].count > 0) {
                ASSERT_EQ(sharing.rate(i), reported[i]) << where << ": changed and not reported";
            } else {
                reported[i] = 0.0;
            }
        }
    }
};

void compare_on_random_networks(bool with_ties, double patience) {
    for (std::uint64_t seed = 0; seed < 120; ++seed) {
        Draws draws{seed};
        const std::uint32_t links = 2 + draws.below(14);
        Twin twin(draws, links, 3 + draws.below(30), with_ties, patience);
        for (int change = 0; change < 60; ++change) {
            const std::uint32_t at_once = draws.uniform() < 0.7 ? 1 : 1 + draws.below(4);
            for (std::uint32_t i = 0; i < at_once; ++i) {
                const std::uint32_t bundle = draws.below(static_cast<std::uint32_t>(twin.bundles.size()));
                twin.set(bundle, draws.uniform() < 0.4 ? 0 : draws.below(9));
            }
            twin.settle_and_check("network " + std::to_string(seed) + ", change " + std::to_string(change));
            if (testing::Test::HasFatalFailure()) {
                return;
            }
        }
        if (patience > 1.0) {
            EXPECT_EQ(twin.sharing.effort().refilled, 0U);
        }
    }
}

/// Flows of an application on `topology`: each starts and ends, at most `partners` nodes away in number and ring order.
struct Traffic {
    const Topology& topology;
    std::vector<double> capacity_Bps;
    ExactSharing sharing;
    std::vector<Bundle> bundles;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> known;
    Draws draws;
    std::vector<std::uint32_t> flows; // their bundles

    Traffic(const Topology& on, std::uint64_t seed)
        : topology(on), capacity_Bps(of(on)), sharing(capacity_Bps), draws{seed} {}
    static std::vector<double> of(const Topology& topology) {
        std::vector<double> capacity;
        for (const Link& link : topology.links()) {
            capacity.push_back(link.capacity_Bps);
        }
        return capacity;
    }
    std::uint32_t draw_bundle(std::uint32_t classes) {
        const std::uint32_t a = draws.below(topology.nodes());
        const std::uint32_t way = draws.below(5);
        std::uint32_t b = way == 0 ? a + 1 : way == 1 ? a + topology.nodes() - 1 : a ^ (1U << way);
        b %= topology.nodes();
        const std::uint32_t kind = draws.below(classes);
        const auto [entry, is_new] = known.try_emplace({a, b, kind}, static_cast<std::uint32_t>(bundles.size()));
        if (is_new) {
            bundles.push_back({{}, 12.2e9 - 1.9e9 * kind, 0});
            topology.route(a, b, bundles.back().route);
            sharing.add_bundle(bundles.back().route, bundles.back().cap_Bps);
        }
        return entry->second;
    }
    void start(std::uint32_t bundle) { sharing.set_count(bundle, ++bundles[bundle].count); }
    void start_many(std::uint32_t count, std::uint32_t classes) {
        for (std::uint32_t i = 0; i < count; ++i) {
            flows.push_back(draw_bundle(classes));
            start(flows.back());
        }
        sharing.settle();
    }
    /// One of them ends and another starts; how many rates were reported.
    std::size_t replace_one(std::uint32_t classes) {
        std::uint32_t& flow = flows[draws.below(static_cast<std::uint32_t>(flows.size()))];
        sharing.set_count(flow, --bundles[flow].count);
        const std::size_t reported = sharing.settle().size();
        flow = draw_bundle(classes);
        start(flow);
        return reported + sharing.settle().size();
    }
    double worst_error() {
        const std::vector<double> expected = filled(capacity_Bps, bundles);
        double worst = 0.0;
        for (std::uint32_t i = 0; i < bundles.size(); ++i) {
            if (bundles[i].count > 0) {
                worst = std::max(worst, std::abs(sharing.rate(i) - expected[i]) / expected[i]);
            }
        }
        return worst;
    }
};

const TopologyOptions options{.levels = {{12.5e9, 0.0}}};

Topology one_switch(std::uint32_t nodes) { return Topology::single_switch(nodes, options); }

Topology tree_of_256(std::uint32_t tops) { return Topology::fat_tree({{32, 8}, {1, tops}, {1, 1}}, options); }

} // namespace

// Two flows share link 0 (10), one of them also crosses link 1 (3): it gets 3, the other the remaining 7; when the
// first ends, the other has all 10.
TEST(ExactSharing, GivesTheRestToWhoCanUseIt) {
    ExactSharing sharing(std::vector<double>{10.0, 3.0});
    const auto narrow = sharing.add_bundle(std::vector<LinkId>{0, 1}, 1e9);
    const auto wide = sharing.add_bundle(std::vector<LinkId>{0}, 1e9);
    sharing.set_count(narrow, 1);
    sharing.set_count(wide, 1);
    const auto both = sharing.settle();
    EXPECT_EQ((std::set<std::uint32_t>{both.begin(), both.end()}), (std::set<std::uint32_t>{narrow, wide}));
    EXPECT_DOUBLE_EQ(sharing.rate(narrow), 3.0);
    EXPECT_DOUBLE_EQ(sharing.rate(wide), 7.0);
    sharing.set_count(narrow, 0);
    const auto one = sharing.settle();
    EXPECT_EQ((std::vector<std::uint32_t>{one.begin(), one.end()}), (std::vector<std::uint32_t>{wide}));
    EXPECT_DOUBLE_EQ(sharing.rate(wide), 10.0);
    EXPECT_EQ(sharing.rate(narrow), 0.0);
}

TEST(ExactSharing, CountsTheFlowsOfABundle) {
    ExactSharing sharing(std::vector<double>{12.0});
    const auto many = sharing.add_bundle(std::vector<LinkId>{0}, 1e9);
    const auto capped = sharing.add_bundle(std::vector<LinkId>{0}, 2.0);
    sharing.set_count(many, 5);
    sharing.set_count(capped, 1);
    sharing.settle();
    EXPECT_DOUBLE_EQ(sharing.rate(many), 2.0);
    EXPECT_DOUBLE_EQ(sharing.rate(capped), 2.0);
    sharing.set_count(many, 2);
    sharing.settle();
    EXPECT_DOUBLE_EQ(sharing.rate(many), 5.0);
    EXPECT_DOUBLE_EQ(sharing.rate(capped), 2.0);
}

// A change far away, behind a flow that something else holds, must not be computed nor reported.
TEST(ExactSharing, ComputesOnlyWhatAChangeReaches) {
    ExactSharing sharing(std::vector<double>{1.0, 100.0, 100.0});
    const auto held = sharing.add_bundle(std::vector<LinkId>{0, 1}, 1e9);
    const auto near = sharing.add_bundle(std::vector<LinkId>{1, 2}, 3.0);
    sharing.set_count(held, 1);
    sharing.set_count(near, 1);
    sharing.settle();
    const auto before = sharing.effort();
    sharing.set_count(near, 4);
    EXPECT_TRUE(sharing.settle().empty());
    EXPECT_LE(sharing.effort().levels - before.levels, 2U);
}

TEST(ExactSharing, EqualsProgressiveFillingOnRandomNetworks) { compare_on_random_networks(false, 50.0); }

TEST(ExactSharing, EqualsProgressiveFillingWhereManySharesAreEqual) { compare_on_random_networks(true, 50.0); }

TEST(ExactSharing, EqualsProgressiveFillingWhenItLosesPatience) {
    compare_on_random_networks(false, 0.0);
    compare_on_random_networks(true, 0.5);
}

// Errors of rounding must not pile up: after ten thousand changes the rates are as exact as after one.
TEST(ExactSharing, StaysExactOverManyChanges) {
    for (const Topology& topology : {one_switch(32), tree_of_256(4), tree_of_256(1)}) {
        Traffic traffic(topology, 7);
        traffic.start_many(400, 3);
        for (int change = 0; change < 10000; ++change) {
            traffic.replace_one(3);
            if (change % 1000 == 999) {
                ASSERT_LT(traffic.worst_error(), 1e-9);
            }
        }
        EXPECT_EQ(traffic.sharing.effort().refilled, 0U);
    }
}

TEST(ExactSharing, IsTheSameWheneverTheCallsAreTheSame) {
    const auto rates = [] {
        const Topology topology = one_switch(16);
        Traffic traffic(topology, 3);
        std::vector<double> seen;
        for (int i = 0; i < 500; ++i) {
            traffic.start(traffic.draw_bundle(2));
            for (const auto bundle : traffic.sharing.settle()) {
                seen.push_back(traffic.sharing.rate(bundle));
            }
        }
        return seen;
    };
    EXPECT_EQ(rates(), rates());
}

// What a change costs is what it reaches: a few links of the network, and the bundles on them.
TEST(ExactSharing, AChangeReachesFewLinksAndBundles) {
    const auto check = [](const Topology& topology, std::uint32_t count, std::uint32_t classes, double most_levels,
                          double most_bundles) {
        Traffic traffic(topology, 1);
        traffic.start_many(count, classes);
        constexpr int changes = 20000;
        const auto before = traffic.sharing.effort();
        std::size_t reported = 0;
        for (int i = 0; i < changes / 2; ++i) {
            reported += traffic.replace_one(classes);
        }
        const auto after = traffic.sharing.effort();
        EXPECT_LT(static_cast<double>(after.levels - before.levels) / changes, most_levels);
        EXPECT_LT(static_cast<double>(reported) / changes, most_bundles);
        EXPECT_LT(traffic.worst_error(), 1e-9);
    };
    const Topology small = one_switch(32);
    check(small, 1000, 1, 18.0, 24.0); // of 64 links and 160 bundles; measured 15.6 and 20.6
    check(small, 1000, 3, 18.0, 60.0); // of 64 and 421; 15.6 and 51.4
    check(small, 100, 1, 8.0, 7.0);    // of 64 and 70; 6.8 and 5.3
    for (const Topology& large : {tree_of_256(4), tree_of_256(1)}) {
        check(large, 1000, 1, 10.0, 8.0); // of more than 512 and 713; 8.4 and 6.9
    }
}

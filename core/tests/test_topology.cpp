#include "net/topology.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

using namespace lepaute::net;

namespace {

TopologyOptions options(std::vector<std::string> removed = {}) {
    return {.levels = {{10.0, 0.0}}, .removed = std::move(removed)};
}

std::vector<LinkId> route(const Topology& topology, std::uint32_t a, std::uint32_t b) {
    std::vector<LinkId> links;
    topology.route(a, b, links);
    return links;
}

std::string names(const Topology& topology, std::uint32_t a, std::uint32_t b) {
    std::string text;
    for (const LinkId link : route(topology, a, b)) {
        text += (text.empty() ? "" : " ") + topology.link_name(link);
    }
    return text;
}

/// check(a, b) for all pairs of different nodes.
template <typename Check>
void for_pairs(const Topology& topology, Check check) {
    for (std::uint32_t a = 0; a < topology.nodes(); ++a) {
        for (std::uint32_t b = 0; b < topology.nodes(); ++b) {
            if (a != b) {
                check(a, b);
            }
        }
    }
}

/// Every route starts at its node, goes from end to end of its links, and ends at the other; no link comes twice.
void expect_routes_are_walks(const Topology& topology) {
    for_pairs(topology, [&](std::uint32_t a, std::uint32_t b) {
        const std::vector<LinkId> links = route(topology, a, b);
        std::string at = "n" + std::to_string(a);
        for (const LinkId link : links) {
            const std::string name = topology.link_name(link);
            const std::size_t way = name.find('>');
            ASSERT_EQ(name.substr(0, way), at) << a << " to " << b;
            at = name.substr(way + 1, name.find('#') - way - 1);
        }
        ASSERT_EQ(at, "n" + std::to_string(b));
        ASSERT_EQ(std::set<LinkId>(links.begin(), links.end()).size(), links.size());
    });
}

const FatTree two_levels{{4, 4}, {1, 2}, {1, 2}};
const FatTree three_levels{{4, 3, 2}, {1, 2, 2}, {1, 1, 2}};

} // namespace

TEST(Topology, SwitchHasAnUpAndADownLinkForEachNode) {
    const Topology topology = Topology::single_switch(3, options());
    EXPECT_EQ(topology.nodes(), 3U);
    EXPECT_TRUE(topology.is_plain_switch());
    ASSERT_EQ(topology.links().size(), 6U);
    EXPECT_EQ(route(topology, 2, 0), (std::vector<LinkId>{2, 3})); // up = node, down = nodes + node
    EXPECT_EQ(names(topology, 2, 0), "n2>switch switch>n0");
}

TEST(Topology, SharedCablesAreOneLinkForBothWays) {
    TopologyOptions shared = options();
    shared.shared = true;
    const Topology topology = Topology::single_switch(3, shared);
    EXPECT_EQ(route(topology, 2, 0), (std::vector<LinkId>{2, 0}));
    EXPECT_FALSE(topology.is_plain_switch());
    EXPECT_EQ(route(topology, 0, 2), (std::vector<LinkId>{0, 2}));
}

TEST(Topology, LimitersStandWhereTheRouteEntersWhatTheyLimit) {
    TopologyOptions limited = options();
    limited.node_limiter_Bps = 7.0;
    limited.switch_limiter_Bps = 20.0;
    const Topology topology = Topology::single_switch(2, limited);
    EXPECT_EQ(names(topology, 0, 1), "limiter of n0 n0>switch limiter of switch switch>n1 limiter of n1");
    const std::vector<LinkId> links = route(topology, 0, 1);
    EXPECT_EQ(topology.links()[links[0]].capacity_Bps, 7.0);
    EXPECT_EQ(topology.links()[links[2]].capacity_Bps, 20.0);
    EXPECT_EQ(topology.links()[links[3]].capacity_Bps, 10.0);
}

// Routes worked out by hand from the rule (E. Zahavi, 2010), and equal to SimGrid 3.32's: at level 1 the port is
// destination mod (2 parents * 2 cables), parent = port mod 2, cable = port / 2; on the way down cable = source mod 2.
TEST(FatTree, RoutesByDestinationModuloK) {
    const Topology tree = Topology::fat_tree(two_levels, options());
    EXPECT_EQ(tree.nodes(), 16U);
    EXPECT_EQ(names(tree, 0, 3), "n0>s1.0 s1.0>n3");
    EXPECT_EQ(names(tree, 0, 4), "n0>s1.0 s1.0>s2.0#0 s2.0>s1.1#0 s1.1>n4");
    EXPECT_EQ(names(tree, 0, 5), "n0>s1.0 s1.0>s2.1#0 s2.1>s1.1#0 s1.1>n5");
    EXPECT_EQ(names(tree, 1, 6), "n1>s1.0 s1.0>s2.0#1 s2.0>s1.1#1 s1.1>n6");
    EXPECT_EQ(names(tree, 0, 15), "n0>s1.0 s1.0>s2.1#1 s2.1>s1.3#0 s1.3>n15");
}

// Node 13 of 24 is in the upper pod: destination / 1 mod 2 = 1 is the first parent, destination / 2 mod 4 = 2 the port
// at the second level: parent 0, cable 1.
TEST(FatTree, OfThreeLevelsDividesByThePortsBelow) {
    const Topology tree = Topology::fat_tree(three_levels, options());
    EXPECT_EQ(names(tree, 0, 1), "n0>s1.0 s1.0>n1");
    EXPECT_EQ(names(tree, 0, 5), "n0>s1.0 s1.0>s2.1 s2.1>s1.1 s1.1>n5");
    EXPECT_EQ(names(tree, 0, 13), "n0>s1.0 s1.0>s2.1 s2.1>s3.1#1 s3.1>s2.3#0 s2.3>s1.3 s1.3>n13");
}

TEST(FatTree, RoutesAreWalksThroughAnyTree) {
    expect_routes_are_walks(Topology::fat_tree(two_levels, options()));
    expect_routes_are_walks(Topology::fat_tree(three_levels, options()));
    expect_routes_are_walks(Topology::fat_tree({{3, 2, 2}, {2, 3, 2}, {2, 1, 3}}, options()));
    expect_routes_are_walks(Topology::fat_tree({{2, 3, 2, 2}, {1, 2, 2, 2}, {1, 1, 2, 2}}, options()));
    expect_routes_are_walks(Topology::fat_tree(three_levels, options({"s3.1", "s1.0-s2.0", "s2.3-s3.3#1"})));
}

// Published studies ran on versions of SimGrid that left all parallel cables but the first idle.
TEST(FatTree, CanUseTheFirstCableOnly) {
    FatTree tree = two_levels;
    tree.first_cable_only = true;
    const Topology topology = Topology::fat_tree(tree, options());
    EXPECT_EQ(names(topology, 1, 6), "n1>s1.0 s1.0>s2.0#0 s2.0>s1.1#0 s1.1>n6");
    EXPECT_EQ(names(topology, 1, 7), "n1>s1.0 s1.0>s2.1#0 s2.1>s1.1#0 s1.1>n7");
}

TEST(FatTree, WithATopSwitchRemovedRoutesLikeTheTreeThatNeverHadIt) {
    for (const std::uint32_t tops : {2U, 3U, 4U}) {
        const Topology smaller = Topology::fat_tree({{8, 4}, {1, tops - 1}, {1, 4}}, options());
        const Topology removed =
            Topology::fat_tree({{8, 4}, {1, tops}, {1, 4}}, options({"s2." + std::to_string(tops - 1)}));
        for_pairs(removed, [&](std::uint32_t a, std::uint32_t b) {
            ASSERT_EQ(names(removed, a, b), names(smaller, a, b)) << tops << " top switches";
        });
    }
}

TEST(FatTree, GoesRoundARemovedCable) {
    // s1.1 is reached through s2.1 alone: all that leads there must go up to it, whatever D-mod-K would say
    const Topology tree = Topology::fat_tree({{4, 4}, {1, 2}, {1, 1}}, options({"s1.1-s2.0"}));
    EXPECT_EQ(names(tree, 0, 4), "n0>s1.0 s1.0>s2.1 s2.1>s1.1 s1.1>n4");
    EXPECT_EQ(names(tree, 4, 0), "n4>s1.1 s1.1>s2.1 s2.1>s1.0 s1.0>n0");
    EXPECT_EQ(names(tree, 0, 8), "n0>s1.0 s1.0>s2.0 s2.0>s1.2 s1.2>n8");
}

TEST(FatTree, KeepsItsPartsOfEachLevelApart) {
    TopologyOptions by_level = options();
    by_level.levels = {{10.0, 0.0}, {40.0, 1e-6}};
    by_level.overrides = {{"s1.0-s2.1#1", 5.0, std::nullopt}};
    const Topology tree = Topology::fat_tree(two_levels, by_level);
    const std::vector<LinkId> links = route(tree, 4, 0); // two cables above: no override
    EXPECT_EQ(tree.links()[links[0]].capacity_Bps, 10.0);
    EXPECT_EQ(tree.links()[links[1]].capacity_Bps, 40.0);
    EXPECT_DOUBLE_EQ(tree.latency_s(links), 2e-6);
    EXPECT_TRUE(tree.has_latency());
    const std::vector<LinkId> slow = route(tree, 0, 15); // s1.0>s2.1#1
    EXPECT_EQ(tree.links()[slow[1]].capacity_Bps, 5.0);
    EXPECT_DOUBLE_EQ(tree.latency_s(slow), 2e-6);
}

TEST(Dragonfly, RoutesAreMinimalAndLinksAsWideAsTheirCablesTogether) {
    const Topology fly = Topology::dragonfly({3, 4, 3, 2, 4, 1, 2}, options());
    EXPECT_EQ(fly.nodes(), 72U);
    expect_routes_are_walks(fly);
    EXPECT_EQ(names(fly, 0, 1), "n0>r0.0.0 r0.0.0>n1");
    EXPECT_EQ(names(fly, 0, 2), "n0>r0.0.0 r0.0.0>r0.0.1 r0.0.1>n2");
    EXPECT_EQ(names(fly, 8, 2), "n8>r0.1.0 r0.1.0>r0.1.1 r0.1.1>r0.0.1 r0.0.1>n2");
    // to group 2: its link leaves from router 2 of group 0 and arrives at router 0 of group 2
    EXPECT_EQ(names(fly, 8, 71), "n8>r0.1.0 r0.1.0>r0.1.2 r0.1.2>r0.0.2 r0.0.2>r2.0.0 r2.0.0>r2.0.3 r2.0.3>r2.2.3 "
                                 "r2.2.3>n71");
    for_pairs(fly, [&](std::uint32_t a, std::uint32_t b) { ASSERT_LE(route(fly, a, b).size(), 7U); });
    std::vector<double> widths;
    for (const LinkId link : route(fly, 8, 71)) {
        widths.push_back(fly.links()[link].capacity_Bps);
    }
    EXPECT_EQ(widths, (std::vector<double>{10, 10, 20, 40, 10, 20, 10}));
}

TEST(Dragonfly, HasARouterForEachOtherGroupAlsoBeyondTheFirstChassis) {
    expect_routes_are_walks(Topology::dragonfly({6, 1, 3, 1, 2, 1, 1}, options()));
}

TEST(Torus, TakesTheShorterWayDimensionByDimension) {
    const Topology torus = Topology::torus({5, 3}, options());
    EXPECT_EQ(names(torus, 0, 2), "n0>n1 n1>n2");
    EXPECT_EQ(names(torus, 0, 4), "n0>n4");
    EXPECT_EQ(names(torus, 0, 13), "n0>n4 n4>n3 n3>n13");
    EXPECT_EQ(names(torus, 13, 0), "n13>n14 n14>n10 n10>n0");
    for (const std::vector<std::uint32_t>& sizes :
         {std::vector<std::uint32_t>{5, 3}, std::vector<std::uint32_t>{6}, std::vector<std::uint32_t>{4, 3, 3}}) {
        const Topology any = Topology::torus(sizes, options());
        expect_routes_are_walks(any);
        for_pairs(any, [&](std::uint32_t a, std::uint32_t b) {
            std::uint32_t shortest = 0;
            std::uint32_t stride = 1;
            for (const std::uint32_t size : sizes) {
                const std::uint32_t up = (b / stride % size + size - a / stride % size) % size;
                shortest += std::min(up, size - up);
                stride *= size;
            }
            ASSERT_EQ(route(any, a, b).size(), shortest);
        });
    }
}

TEST(Torus, WithACableRemovedIsRoutedRoundIt) {
    const Topology torus = Topology::torus({4, 4}, options({"n0-n1"}));
    expect_routes_are_walks(torus);
    EXPECT_EQ(route(torus, 0, 1).size(), 3U);
    EXPECT_EQ(route(torus, 2, 3).size(), 1U);
}

TEST(Graph, TakesShortestRoutesAndSpreadsEqualOnesByDestination) {
    Graph graph;
    graph.nodes = 8;
    graph.switches = {"leaf-a", "leaf-b", "top-1", "top-2"};
    for (std::uint32_t node = 0; node < 8; ++node) {
        graph.cables.push_back({"n" + std::to_string(node), node < 4 ? "leaf-a" : "leaf-b", {}, {}});
    }
    for (const char* leaf : {"leaf-a", "leaf-b"}) {
        for (const char* top : {"top-1", "top-2"}) {
            graph.cables.push_back({leaf, top, 30.0, 1e-6});
        }
    }
    const Topology topology = Topology::graph(graph, options());
    expect_routes_are_walks(topology);
    EXPECT_EQ(names(topology, 0, 1), "n0>leaf-a leaf-a>n1");
    EXPECT_EQ(names(topology, 0, 4), "n0>leaf-a leaf-a>top-1 top-1>leaf-b leaf-b>n4");
    EXPECT_EQ(names(topology, 0, 5), "n0>leaf-a leaf-a>top-2 top-2>leaf-b leaf-b>n5");
    EXPECT_EQ(topology.links()[route(topology, 0, 4)[1]].capacity_Bps, 30.0);

    // by latency: a longer way of quick cables beats a shorter one of slow ones; an override may decide
    graph.by_latency = true;
    TopologyOptions slow = options();
    slow.overrides = {{"leaf-a-top-2", {}, 5e-6}};
    EXPECT_EQ(names(Topology::graph(graph, slow), 0, 5), "n0>leaf-a leaf-a>top-1 top-1>leaf-b leaf-b>n5");

    EXPECT_EQ(names(Topology::graph(graph, options({"top-1"})), 0, 4), "n0>leaf-a leaf-a>top-2 top-2>leaf-b leaf-b>n4");
}

TEST(Graph, WrittenAsAFatTreeIsRoutedUpwardsAsOne) {
    const Topology tree = Topology::fat_tree({{4, 3}, {1, 3}, {1, 1}}, options());
    Graph graph;
    graph.nodes = 12;
    graph.switches = {"s1.0", "s1.1", "s1.2", "s2.0", "s2.1", "s2.2"};
    for (std::uint32_t node = 0; node < 12; ++node) {
        graph.cables.push_back({"n" + std::to_string(node), "s1." + std::to_string(node / 4), {}, {}});
    }
    for (const char* leaf : {"s1.0", "s1.1", "s1.2"}) {
        for (const char* top : {"s2.0", "s2.1", "s2.2"}) {
            graph.cables.push_back({leaf, top, {}, {}});
        }
    }
    const Topology same = Topology::graph(graph, options());
    for_pairs(tree, [&](std::uint32_t a, std::uint32_t b) { ASSERT_EQ(route(tree, a, b), route(same, a, b)); });
}

TEST(Graph, NodesOfSeveralCablesAreNotPassedThrough) {
    Graph graph;
    graph.nodes = 3; // n1 hangs at both switches, which have no cable of their own
    graph.switches = {"a", "b", "c"};
    graph.cables = {{"n0", "a", {}, {}}, {"n1", "a", {}, {}}, {"n1", "b", {}, {}},
                    {"n2", "b", {}, {}}, {"a", "c", {}, {}},  {"c", "b", {}, {}}};
    const Topology topology = Topology::graph(graph, options());
    expect_routes_are_walks(topology);
    EXPECT_EQ(names(topology, 0, 2), "n0>a a>c c>b b>n2");
    EXPECT_EQ(names(topology, 1, 2), "n1>b b>n2");
    EXPECT_EQ(names(topology, 0, 1), "n0>a a>n1");
}

TEST(Topology, WithoutARouteIsRefusedInOneLine) {
    const auto refused = [](auto&& make, const std::string& words) {
        try {
            make();
            FAIL() << "accepted; expected: " << words;
        } catch (const std::invalid_argument& error) {
            EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
            EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
        }
    };
    refused([] { Topology::fat_tree(two_levels, options({"s1.2"})); },
            "no route from node n0 to node n8 once these are removed: s1.2");
    refused([] { Topology::fat_tree(two_levels, options({"s2.0", "s2.1"})); }, "no route from node n0 to node n4");
    refused([] { Topology::single_switch(3, options({"n1-switch"})); }, "no route from node n0 to node n1");
    refused([] { Topology::torus({3}, options({"n0-n1", "n0-n2"})); }, "no route from node n0 to node n1");
    refused(
        [] {
            Topology::graph({2, {"a", "b"}, {{"n0", "a", {}, {}}, {"n1", "b", {}, {}}}}, options());
        },
        "no route from node n0 to node n1");
    refused([] { Topology::fat_tree(two_levels, options({"s2.7"})); },
            "no part named 's2.7'; nodes are n0 to n15, switches s1.0 to s2.1, cables such as n0-s1.0");
    refused([] { Topology::fat_tree(two_levels, options({"s1.0-s2.0#2"})); }, "its number is 0 to 1");
    refused([] { Topology::fat_tree(two_levels, options({"n0-s1.1"})); }, "no cable joins n0 and s1.1");
    refused([] { Topology::fat_tree({{4, 4}, {1}, {1, 1}}, options()); }, "as many numbers");
    refused([] { Topology::fat_tree({{4, 0}, {1, 1}, {1, 1}}, options()); }, "is 0");
    refused([] { Topology::torus({60000, 60000}, options()); }, "too many");
    refused([] { Topology::dragonfly({9, 1, 2, 1, 4, 1, 1}, options()); }, "9 groups of 8 routers");
    refused([] { Topology::graph({1, {"a"}, {{"n0", "b", {}, {}}}}, options()); }, "neither a switch nor a node");
}

// Routes of the largest published case fit in a few hundred kilobytes, not in 2400 * 2400 lists.
TEST(Topology, KeepsNoRouteOfAllPairs) {
    const Topology tree = Topology::fat_tree({{20, 120}, {1, 8}, {1, 2}}, options());
    EXPECT_EQ(tree.nodes(), 2400U);
    EXPECT_LT(tree.state_bytes(), 1U << 20);
}

#pragma once
// Links, and the numbers and options of the topologies that are made of them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lepaute::net {

using LinkId = std::uint32_t;

struct Link {
    double capacity_Bps;
    double latency_s; // on top of that of the network model
};

/// h levels above the nodes; a vertex of level i has up[i] parents and cables[i] cables to each; a switch of level i +
/// 1 has down[i] children. SimGrid's notation h;down;up;cables.
struct FatTree {
    std::vector<std::uint32_t> down;
    std::vector<std::uint32_t> up;
    std::vector<std::uint32_t> cables;
    /// Of parallel cables use the first only, as SimGrid did before it spread messages over them.
    bool first_cable_only = false;
};

/// SimGrid's notation groups,links;chassis,links;routers,links;nodes. `*_cables` cables make one link as wide as all.
struct Dragonfly {
    std::uint32_t groups;
    std::uint32_t group_cables;
    std::uint32_t chassis; // of a group
    std::uint32_t chassis_cables;
    std::uint32_t routers; // of a chassis
    std::uint32_t router_cables;
    std::uint32_t nodes; // of a router
};

/// Switches by name and cables between them and the nodes.
struct Graph {
    struct Cable {
        std::string a;
        std::string b;
        std::optional<double> capacity_Bps; // none: that of the options' first level
        std::optional<double> latency_s;
        bool shared = false; // both ways together
        std::uint32_t count = 1;
    };
    std::uint32_t nodes = 0;
    std::vector<std::string> switches;
    std::vector<Cable> cables;
    bool by_latency = false; // shortest routes by sum of latencies, then by number of links; else by links alone

    void check() const;
};

/// Links by name, and of pairs of nodes a row: from, to, and the links that a message crosses.
struct GivenRoutes {
    std::uint32_t nodes = 0;
    std::vector<std::string> names;
    std::vector<Link> links;
    std::vector<std::vector<std::uint32_t>> routes;
};

/// What all topologies have in common.
struct TopologyOptions {
    struct Override {
        std::string name;
        std::optional<double> capacity_Bps;
        std::optional<double> latency_s;
    };
    /// One cable of each level (each dimension of a torus), from the nodes up; the last holds for all further ones.
    std::vector<Link> levels;
    bool shared = false;             // cables are one link for both ways
    double node_limiter_Bps = 0.0;   // what a node sends and receives together; 0: no such limit
    double switch_limiter_Bps = 0.0; // what passes through a switch; 0: no such limit
    std::uint32_t first_node_number = 0;
    std::vector<Override> overrides{};
    std::vector<std::string> removed{}; // names of switches and cables

    void check() const;
};

} // namespace lepaute::net

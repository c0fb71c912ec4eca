#pragma once
// How the nodes are joined: links, and the links that a message crosses from one node to another.
//
// Nodes and switches are joined by cables. A cable is two links, one each way, or one link shared by both ways. Routes
// are computed when asked for, from a few integers (tree, dragonfly, torus) or from tables of one entry a switch and
// switch (arbitrary graph, or parts removed), never stored for all pairs of nodes.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lepaute::net {

using LinkId = std::uint32_t;

struct Link {
    double capacity_Bps;
    double latency_s; // on top of that of the network model
};

namespace topology {
class Shape;
}

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
    std::vector<Override> overrides;
    std::vector<std::string> removed; // names of switches and cables

    void check() const;
};

/// Immutable; copies share their tables.
class Topology {
public:
    // Factories. All throw std::invalid_argument, in one line, for numbers that make no topology, names that do not
    // occur, and removals that leave two nodes without a route.
    /// Links: up = node, down = nodes + node.
    static Topology single_switch(std::uint32_t nodes, const TopologyOptions& options);
    /// The same, every link of `link_Bps` and no latency.
    static Topology plain_switch(std::uint32_t nodes, double link_Bps);
    static Topology fat_tree(const FatTree& tree, const TopologyOptions& options);
    static Topology dragonfly(const Dragonfly& dragonfly, const TopologyOptions& options);
    /// Dimension-order routing, the shorter way round each. A node is its own router.
    static Topology torus(const std::vector<std::uint32_t>& dimensions, const TopologyOptions& options);
    static Topology graph(const Graph& graph, const TopologyOptions& options);

    [[nodiscard]] std::uint32_t nodes() const noexcept { return nodes_; }
    /// Cable c is link c one way and link cables + c the other (unused where both ways share); then the limiters.
    [[nodiscard]] std::span<const Link> links() const noexcept { return links_; }
    /// Appends the links that a message crosses from node a to node b, in order. Requires a != b.
    void route(std::uint32_t a, std::uint32_t b, std::vector<LinkId>& route) const;
    /// Is every route from a to b the two links a and nodes + b?
    [[nodiscard]] bool is_plain_switch() const noexcept { return is_plain_switch_; }
    /// Divides the capacity of every link.
    void slow_down(double factor) noexcept {
        for (Link& link : links_) {
            link.capacity_Bps /= factor;
        }
    }
    /// Does any link have a latency?
    [[nodiscard]] bool has_latency() const noexcept { return has_latency_; }
    [[nodiscard]] double latency_s(std::span<const LinkId> route) const noexcept;
    /// The name of a link, such as n3>s1.0, s2.0>s1.1#3 or limiter of n3.
    [[nodiscard]] std::string link_name(LinkId link) const;
    [[nodiscard]] std::size_t state_bytes() const noexcept;

private:
    Topology(std::unique_ptr<topology::Shape> shape, const TopologyOptions& options);
    void make_limiters(const TopologyOptions& options);
    void check_connected(const TopologyOptions& options) const;

    std::uint32_t nodes_ = 0;
    std::uint32_t cables_ = 0;
    std::vector<Link> links_;
    std::vector<LinkId> limiter_of_vertex_; // empty: no limiters
    std::shared_ptr<const topology::Shape> shape_;
    bool some_shared_ = false;
    bool has_latency_ = false;
    bool is_plain_switch_ = false;
};

} // namespace lepaute::net

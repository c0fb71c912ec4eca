#pragma once
// How the nodes are joined: links, and the links that a message crosses from one node to another. Nodes and switches
// are joined by cables. A cable is two links, one each way, or one link shared by both ways. Routes are computed when
// asked for, from a few integers (tree, dragonfly, torus) or from tables of one entry a switch and switch (arbitrary
// graph, or parts removed), never stored for all pairs of nodes.

#include "net/links.hpp"

#include <memory>
#include <span>
#include <string>

namespace lepaute::net {

namespace topology {
class Shape;
}

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
    static Topology given_routes(const GivenRoutes& given, const TopologyOptions& options);

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
        least_Bps_ /= factor;
    }
    /// Does any link have a latency?
    [[nodiscard]] bool has_latency() const noexcept { return has_latency_; }
    [[nodiscard]] double latency_s(std::span<const LinkId> route) const noexcept;
    /// Of the links from node a to node b, but at most `most_Bps`.
    [[nodiscard]] double narrowest(std::uint32_t a, std::uint32_t b, double most_Bps) const;
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
    double least_Bps_ = 0.0; // of all links
    bool is_plain_switch_ = false;
};

} // namespace lepaute::net

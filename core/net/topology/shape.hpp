#pragma once
// The wiring behind a topology: vertices (nodes first, then switches), cables, and a rule for routes.

#include "net/links.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lepaute::net::topology {

using Vertex = std::uint32_t;
/// One way along a cable: cable (from a to b) or cables + cable (from b to a).
using Arc = std::uint32_t;

struct Cable {
    Vertex a = 0; // the end nearer to the nodes
    Vertex b = 0;
    Link link{};
    bool shared = false;
    bool removed = false;
};

class Shape {
public:
    explicit Shape(std::uint32_t node_count, std::uint32_t first_number)
        : nodes(node_count), first_node_number(first_number) {}
    Shape(const Shape&) = delete;
    Shape& operator=(const Shape&) = delete;
    virtual ~Shape() = default;

    /// Appends the arcs from node a to node b; false (with nothing to rely on appended) where there is no way.
    virtual bool route(Vertex a, Vertex b, std::vector<Arc>& arcs) const = 0;
    [[nodiscard]] virtual std::string switch_name(std::uint32_t number) const = 0;
    /// Cables have their final values: prepares for routes. False where the rule knows no way around removed ones.
    virtual bool seal() { return !some_removed(); }
    /// Are all nodes joined, whatever the values of the cables?
    [[nodiscard]] virtual bool is_whole() const noexcept { return !some_removed(); }
    /// If a reaches b and b reaches c, does a reach c?
    [[nodiscard]] virtual bool is_transitive() const noexcept { return true; }
    [[nodiscard]] virtual std::size_t state_bytes() const noexcept { return cables.size() * sizeof(Cable); }

    [[nodiscard]] std::string vertex_name(Vertex vertex) const {
        return vertex < nodes ? "n" + std::to_string(first_node_number + vertex) : switch_name(vertex - nodes);
    }
    [[nodiscard]] bool some_removed() const noexcept {
        return std::ranges::any_of(cables, [](const Cable& cable) { return cable.removed; });
    }
    [[nodiscard]] std::uint32_t vertices() const noexcept { return nodes + switches; }
    [[nodiscard]] static Arc forth(std::uint32_t cable) noexcept { return cable; }
    [[nodiscard]] Arc back(std::uint32_t cable) const noexcept {
        return static_cast<std::uint32_t>(cables.size()) + cable;
    }

    // Values that the factories fill in and nobody changes later.
    std::uint32_t nodes;
    std::uint32_t switches = 0;
    std::uint32_t first_node_number;
    bool nodes_forward = false; // do routes pass through nodes?
    std::vector<Cable> cables;
};

/// The link of one cable of `level`.
[[nodiscard]] inline const Link& level_link(const TopologyOptions& options, std::size_t level) {
    return options.levels[level < options.levels.size() ? level : options.levels.size() - 1];
}

[[nodiscard]] std::unique_ptr<Shape> make_single_switch(std::uint32_t nodes, const TopologyOptions& options);
[[nodiscard]] std::unique_ptr<Shape> make_fat_tree(const FatTree& tree, const TopologyOptions& options);
[[nodiscard]] std::unique_ptr<Shape> make_dragonfly(const Dragonfly& dragonfly, const TopologyOptions& options);
[[nodiscard]] std::unique_ptr<Shape> make_torus(const std::vector<std::uint32_t>& dimensions,
                                                const TopologyOptions& options);
[[nodiscard]] std::unique_ptr<Shape> make_graph(const Graph& graph, const TopologyOptions& options);
[[nodiscard]] std::unique_ptr<Shape> make_given_routes(const GivenRoutes& given, const TopologyOptions& options);
/// The same wiring, removed cables included in the numbering, routed by shortest paths over what is left.
[[nodiscard]] std::unique_ptr<Shape> make_shortest_paths(std::unique_ptr<Shape> wiring, bool by_latency);

inline constexpr std::uint32_t most_routed_nodes = 1024; // whose routes are given, a row of a table each
inline constexpr std::uint32_t most_parts = 1U << 24U;   // nodes, switches, cables; some gigabytes

/// Throws std::invalid_argument where a product of numbers of parts is 0 or above `most_parts`.
[[nodiscard]] std::uint32_t checked_product(const std::vector<std::uint32_t>& factors, std::string_view what);

/// Applies overrides and removals, by name, to the cables of `shape`.
void apply_names(Shape& shape, const TopologyOptions& options);

} // namespace lepaute::net::topology

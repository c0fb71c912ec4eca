// Routes that are given one by one, as lists of links that all who cross them share, whichever way they go. A link is a
// switch with a cable to itself: of its name, and on no other route.

#include "net/topology/shape.hpp"

#include "checks.hpp"

#include <stdexcept>

namespace lepaute::net::topology {

namespace {

class GivenRoutesShape final : public Shape {
public:
    GivenRoutesShape(const GivenRoutes& given, const TopologyOptions& options)
        : Shape(given.nodes, options.first_node_number), names_(given.names),
          routes_(static_cast<std::size_t>(given.nodes) * given.nodes) {
        switches = static_cast<std::uint32_t>(names_.size());
        for (std::uint32_t link = 0; link < switches; ++link) {
            cables.push_back({nodes + link, nodes + link, given.links[link], true});
        }
        for (const std::vector<std::uint32_t>& row : given.routes) {
            if (row.size() < 3 || row[0] >= nodes || row[1] >= nodes || row[0] == row[1] ||
                std::ranges::any_of(row.begin() + 2, row.end(), [&](std::uint32_t link) { return link >= switches; })) {
                throw std::invalid_argument("a route is two nodes and at least one link");
            }
            routes_[static_cast<std::size_t>(row[0]) * nodes + row[1]].assign(row.begin() + 2, row.end());
        }
    }

    [[nodiscard]] bool is_whole() const noexcept override { return false; }
    [[nodiscard]] bool is_transitive() const noexcept override { return false; }
    bool route(Vertex a, Vertex b, std::vector<Arc>& arcs) const override {
        const std::vector<std::uint32_t>& links = routes_[static_cast<std::size_t>(a) * nodes + b];
        arcs.insert(arcs.end(), links.begin(), links.end());
        return !links.empty();
    }
    [[nodiscard]] std::string switch_name(std::uint32_t number) const override { return names_[number]; }

private:
    std::vector<std::string> names_;
    std::vector<std::vector<std::uint32_t>> routes_; // of each pair
};

} // namespace

std::unique_ptr<Shape> make_given_routes(const GivenRoutes& given, const TopologyOptions& options) {
    check_number("nodes", given.nodes, 1U, most_routed_nodes);
    check_number("links", given.links.size(), given.names.size(), given.names.size());
    return std::make_unique<GivenRoutesShape>(given, options);
}

} // namespace lepaute::net::topology

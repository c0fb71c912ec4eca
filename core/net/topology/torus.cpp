// Tori with dimension-order routing, and the single switch: the two shapes whose rule fits in a few lines.

#include "net/topology/shape.hpp"

#include <stdexcept>

namespace lepaute::net::topology {

namespace {

class SingleSwitchShape final : public Shape {
public:
    SingleSwitchShape(std::uint32_t node_count, const TopologyOptions& options)
        : Shape(node_count, options.first_node_number) {
        switches = 1;
        cables.reserve(nodes);
        for (std::uint32_t node = 0; node < nodes; ++node) {
            cables.push_back({node, nodes, level_link(options, 0), options.shared});
        }
    }
    bool route(Vertex a, Vertex b, std::vector<Arc>& arcs) const override {
        arcs.push_back(forth(a));
        arcs.push_back(back(b));
        return true;
    }
    [[nodiscard]] std::string switch_name(std::uint32_t /*number*/) const override { return "switch"; }
};

class TorusShape final : public Shape {
public:
    TorusShape(const std::vector<std::uint32_t>& dimensions, const TopologyOptions& options)
        : Shape(checked_product(dimensions, "a torus' nodes"), options.first_node_number), dimensions_(dimensions) {
        nodes_forward = true;
        for (std::uint32_t node = 0; node < nodes; ++node) {
            std::uint32_t stride = 1;
            for (std::size_t d = 0; d < dimensions.size(); ++d) {
                cables.push_back({node, neighbour(node, d, stride), level_link(options, d), options.shared});
                stride *= dimensions[d];
            }
        }
    }

    bool route(Vertex a, Vertex b, std::vector<Arc>& arcs) const override {
        const auto count = static_cast<std::uint32_t>(dimensions_.size());
        std::uint32_t at = a;
        std::uint32_t stride = 1;
        for (std::uint32_t d = 0; d < count; ++d) {
            const std::uint32_t size = dimensions_[d];
            std::uint32_t here = a / stride % size;
            const std::uint32_t there = b / stride % size;
            // The shorter way; of two equal ones that which does not wrap when it goes up, and, going down, the wrap
            // from the upper half (SimGrid's choice).
            const bool up =
                (there > here && there - here <= size / 2) || (here > size / 2 && (here + size / 2) % size >= there);
            while (here != there) {
                if (up) {
                    arcs.push_back(forth(at * count + d));
                    at = here + 1 == size ? at - here * stride : at + stride;
                    here = here + 1 == size ? 0 : here + 1;
                } else {
                    at = here == 0 ? at + (size - 1) * stride : at - stride;
                    here = here == 0 ? size - 1 : here - 1;
                    arcs.push_back(back(at * count + d));
                }
            }
            stride *= size;
        }
        return true;
    }
    [[nodiscard]] std::string switch_name(std::uint32_t /*number*/) const override { return {}; } // it has none

private:
    [[nodiscard]] std::uint32_t neighbour(std::uint32_t node, std::size_t d, std::uint32_t stride) const noexcept {
        const std::uint32_t here = node / stride % dimensions_[d];
        return here + 1 == dimensions_[d] ? node - here * stride : node + stride;
    }

    std::vector<std::uint32_t> dimensions_;
};

} // namespace

std::unique_ptr<Shape> make_single_switch(std::uint32_t nodes, const TopologyOptions& options) {
    return std::make_unique<SingleSwitchShape>(checked_product({nodes}, "a switch's nodes"), options);
}

std::unique_ptr<Shape> make_torus(const std::vector<std::uint32_t>& dimensions, const TopologyOptions& options) {
    if (dimensions.empty()) {
        throw std::invalid_argument("a torus has at least one dimension");
    }
    std::vector<std::uint32_t> factors = dimensions;
    factors.push_back(static_cast<std::uint32_t>(dimensions.size()));
    static_cast<void>(checked_product(factors, "a torus' cables"));
    return std::make_unique<TorusShape>(dimensions, options);
}

} // namespace lepaute::net::topology

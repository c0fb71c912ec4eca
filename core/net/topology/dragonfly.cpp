// Dragonflies with minimal routing: within a chassis all routers are joined, within a group the routers of equal number
// of all chassis, and group i has one link to group j, at its router number j.

#include "checks.hpp"
#include "net/topology/shape.hpp"

#include <algorithm>
#include <stdexcept>

namespace lepaute::net::topology {

namespace {

/// Number of the pair (i, j) among the unordered pairs of n, in lexicographic order.
std::uint32_t pair_number(std::uint32_t i, std::uint32_t j, std::uint32_t n) noexcept {
    const auto [low, high] = std::minmax(i, j);
    return low * (2 * n - low - 1) / 2 + high - low - 1;
}

class DragonflyShape final : public Shape {
public:
    DragonflyShape(const Dragonfly& dragonfly, const TopologyOptions& options)
        : Shape(checked_product({dragonfly.groups, dragonfly.chassis, dragonfly.routers, dragonfly.nodes},
                                "a dragonfly's nodes"),
                options.first_node_number),
          size_(dragonfly) {
        switches = nodes / size_.nodes;
        const auto join = [&](Vertex a, Vertex b, std::size_t level, std::uint32_t count) {
            const Link one = level_link(options, level);
            cables.push_back({a, b, {std::min(one.capacity_Bps * count, most_Bps), one.latency_s}, options.shared});
        };
        for (std::uint32_t node = 0; node < nodes; ++node) {
            join(node, nodes + node / size_.nodes, 0, 1);
        }
        first_of_chassis_ = static_cast<std::uint32_t>(cables.size());
        for (std::uint32_t first = 0; first < switches; first += size_.routers) {
            for (std::uint32_t i = 0; i < size_.routers; ++i) {
                for (std::uint32_t j = i + 1; j < size_.routers; ++j) {
                    join(nodes + first + i, nodes + first + j, 1, size_.router_cables);
                }
            }
        }
        first_of_group_ = static_cast<std::uint32_t>(cables.size());
        const std::uint32_t group_size = size_.chassis * size_.routers;
        for (std::uint32_t first = 0; first < switches; first += group_size) {
            for (std::uint32_t i = 0; i < size_.chassis; ++i) {
                for (std::uint32_t j = i + 1; j < size_.chassis; ++j) {
                    for (std::uint32_t router = 0; router < size_.routers; ++router) {
                        join(nodes + first + i * size_.routers + router, nodes + first + j * size_.routers + router, 2,
                             size_.chassis_cables);
                    }
                }
            }
        }
        first_between_groups_ = static_cast<std::uint32_t>(cables.size());
        for (std::uint32_t i = 0; i < size_.groups; ++i) {
            for (std::uint32_t j = i + 1; j < size_.groups; ++j) {
                join(nodes + i * group_size + j, nodes + j * group_size + i, 3, size_.group_cables);
            }
        }
    }

    bool route(Vertex a, Vertex b, std::vector<Arc>& arcs) const override {
        const std::uint32_t group_size = size_.chassis * size_.routers;
        std::uint32_t at = a / size_.nodes;
        const std::uint32_t target = b / size_.nodes;
        const std::uint32_t from_group = at / group_size;
        const std::uint32_t to_group = target / group_size;
        arcs.push_back(forth(a));
        if (from_group != to_group) {
            walk_in_group(at, from_group * group_size + to_group, arcs);
            const std::uint32_t cable = first_between_groups_ + pair_number(from_group, to_group, size_.groups);
            arcs.push_back(from_group < to_group ? forth(cable) : back(cable));
            at = to_group * group_size + from_group;
        }
        walk_in_group(at, target, arcs);
        arcs.push_back(back(b));
        return true;
    }

    [[nodiscard]] std::string switch_name(std::uint32_t number) const override {
        return "r" + std::to_string(number / (size_.chassis * size_.routers)) + "." +
               std::to_string(number / size_.routers % size_.chassis) + "." + std::to_string(number % size_.routers);
    }

private:
    /// Along the chassis to the target's number, then to the target's chassis.
    void walk_in_group(std::uint32_t at, std::uint32_t target, std::vector<Arc>& arcs) const {
        const std::uint32_t router = at % size_.routers;
        const std::uint32_t to_router = target % size_.routers;
        const std::uint32_t chassis = at / size_.routers; // of the whole machine
        const std::uint32_t to_chassis = target / size_.routers;
        if (router != to_router) {
            const std::uint32_t pairs = size_.routers * (size_.routers - 1) / 2;
            const std::uint32_t cable =
                first_of_chassis_ + chassis * pairs + pair_number(router, to_router, size_.routers);
            arcs.push_back(router < to_router ? forth(cable) : back(cable));
        }
        if (chassis != to_chassis) {
            const std::uint32_t pairs = size_.chassis * (size_.chassis - 1) / 2;
            const std::uint32_t pair = chassis / size_.chassis * pairs +
                                       pair_number(chassis % size_.chassis, to_chassis % size_.chassis, size_.chassis);
            const std::uint32_t cable = first_of_group_ + pair * size_.routers + to_router;
            arcs.push_back(chassis < to_chassis ? forth(cable) : back(cable));
        }
    }

    Dragonfly size_;
    std::uint32_t first_of_chassis_ = 0;
    std::uint32_t first_of_group_ = 0;
    std::uint32_t first_between_groups_ = 0;
};

} // namespace

std::unique_ptr<Shape> make_dragonfly(const Dragonfly& dragonfly, const TopologyOptions& options) {
    if (dragonfly.group_cables == 0 || dragonfly.chassis_cables == 0 || dragonfly.router_cables == 0) {
        throw std::invalid_argument("a dragonfly's numbers of cables are at least 1");
    }
    const std::uint32_t longer = std::max(dragonfly.chassis, dragonfly.routers);
    static_cast<void>(
        checked_product({dragonfly.groups, dragonfly.chassis, dragonfly.routers, longer}, "a dragonfly's cables"));
    if (dragonfly.groups > dragonfly.chassis * dragonfly.routers) {
        throw std::invalid_argument(
            "a dragonfly has at most as many groups as a group has routers, one for each group; "
            "there are " +
            std::to_string(dragonfly.groups) + " groups of " + std::to_string(dragonfly.chassis * dragonfly.routers) +
            " routers");
    }
    return std::make_unique<DragonflyShape>(dragonfly, options);
}

} // namespace lepaute::net::topology

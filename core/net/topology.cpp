#include "net/topology.hpp"

#include "checks.hpp"
#include "net/topology/shape.hpp"

#include <algorithm>
#include <stdexcept>

namespace lepaute::net {

using topology::Cable;
using topology::Shape;
using topology::Vertex;

namespace {

void check_link(std::string_view name, std::optional<double> capacity_Bps, std::optional<double> latency_s) {
    check_in(name, [&] {
        check_bandwidth("bandwidth_Bps", capacity_Bps.value_or(most_Bps));
        check_seconds("latency_s", latency_s.value_or(0.0));
    });
}

} // namespace

void Graph::check() const {
    if (nodes == 0) {
        throw std::invalid_argument("a graph has at least one node");
    }
    check_number("nodes", nodes, 1U, topology::most_parts);
    check_number("switches", switches.size(), 0U, topology::most_parts - nodes);
    std::uint32_t left = topology::most_parts;
    for (const Cable& cable : cables) {
        check_number("cables", cable.count, 1U, left);
        left -= cable.count;
        check_link("cable " + cable.a + "-" + cable.b, cable.capacity_Bps, cable.latency_s);
    }
}

void TopologyOptions::check() const {
    if (levels.empty()) {
        refuse("levels", "empty", "there is one link of each level, at least one");
    }
    for (const Link& level : levels) {
        check_link("levels", level.capacity_Bps, level.latency_s);
    }
    for (const Override& entry : overrides) {
        check_link("overrides: " + entry.name, entry.capacity_Bps, entry.latency_s);
    }
    check_number("node_limiter_Bps", node_limiter_Bps, node_limiter_Bps == 0.0 ? 0.0 : least_Bps, most_Bps);
    check_number("switch_limiter_Bps", switch_limiter_Bps, switch_limiter_Bps == 0.0 ? 0.0 : least_Bps, most_Bps);
    check_number("first_node_number", first_node_number, 0U, 1U << 31U);
}

Topology Topology::single_switch(std::uint32_t nodes, const TopologyOptions& options) {
    options.check();
    Topology made(topology::make_single_switch(nodes, options), options);
    made.is_plain_switch_ = !options.shared && made.limiter_of_vertex_.empty();
    return made;
}

Topology Topology::plain_switch(std::uint32_t nodes, double link_Bps) {
    return single_switch(nodes, {.levels = {{link_Bps, 0.0}}});
}

Topology Topology::fat_tree(const FatTree& tree, const TopologyOptions& options) {
    options.check();
    return {topology::make_fat_tree(tree, options), options};
}

Topology Topology::dragonfly(const Dragonfly& dragonfly, const TopologyOptions& options) {
    options.check();
    return {topology::make_dragonfly(dragonfly, options), options};
}

Topology Topology::torus(const std::vector<std::uint32_t>& dimensions, const TopologyOptions& options) {
    options.check();
    return {topology::make_torus(dimensions, options), options};
}

Topology Topology::graph(const Graph& graph, const TopologyOptions& options) {
    options.check();
    return {topology::make_graph(graph, options), options};
}

Topology Topology::given_routes(const GivenRoutes& given, const TopologyOptions& options) {
    options.check();
    for (std::size_t link = 0; link < std::min(given.names.size(), given.links.size()); ++link) {
        check_link(given.names[link], given.links[link].capacity_Bps, given.links[link].latency_s);
    }
    return {topology::make_given_routes(given, options), options};
}

Topology::Topology(std::unique_ptr<Shape> shape, const TopologyOptions& options)
    : nodes_(shape->nodes), cables_(static_cast<std::uint32_t>(shape->cables.size())) {
    topology::apply_names(*shape, options);
    if (!shape->seal()) {
        shape = topology::make_shortest_paths(std::move(shape), false);
        shape->seal();
    }
    links_.resize(2 * static_cast<std::size_t>(cables_));
    for (std::uint32_t cable = 0; cable < cables_; ++cable) {
        const Cable& at = shape->cables[cable];
        links_[cable] = links_[cables_ + cable] = at.link;
        some_shared_ = some_shared_ || at.shared;
        has_latency_ = has_latency_ || at.link.latency_s > 0.0;
    }
    shape_ = std::move(shape);
    make_limiters(options);
    least_Bps_ = links_.empty() ? 0.0 : std::ranges::min_element(links_, {}, &Link::capacity_Bps)->capacity_Bps;
    if (!shape_->is_whole()) {
        check_connected(options);
    }
}

void Topology::make_limiters(const TopologyOptions& options) {
    if (options.node_limiter_Bps <= 0.0 && options.switch_limiter_Bps <= 0.0) {
        return;
    }
    limiter_of_vertex_.assign(shape_->vertices(), 0); // 0 is a cable: no limiter
    for (Vertex vertex = 0; vertex < shape_->vertices(); ++vertex) {
        const double limit_Bps = vertex < nodes_ ? options.node_limiter_Bps : options.switch_limiter_Bps;
        if (limit_Bps > 0.0) {
            limiter_of_vertex_[vertex] = static_cast<LinkId>(links_.size());
            links_.push_back({limit_Bps, 0.0});
        }
    }
}

void Topology::route(std::uint32_t a, std::uint32_t b, std::vector<LinkId>& route) const {
    const std::size_t before = route.size();
    if (!shape_->route(a, b, route)) {
        throw std::invalid_argument("there is no route from node " + shape_->vertex_name(a) + " to node " +
                                    shape_->vertex_name(b));
    }
    if (!limiter_of_vertex_.empty()) {
        std::vector<LinkId> with_limiters;
        const auto pass = [&](Vertex vertex) {
            if (limiter_of_vertex_[vertex] != 0) {
                with_limiters.push_back(limiter_of_vertex_[vertex]);
            }
        };
        pass(a);
        for (std::size_t hop = before; hop < route.size(); ++hop) {
            const LinkId arc = route[hop];
            with_limiters.push_back(arc);
            pass(arc < cables_ ? shape_->cables[arc].b : shape_->cables[arc - cables_].a);
        }
        route.resize(before);
        route.insert(route.end(), with_limiters.begin(), with_limiters.end());
    }
    if (some_shared_) {
        for (std::size_t hop = before; hop < route.size(); ++hop) {
            const LinkId arc = route[hop];
            if (arc >= cables_ && arc < 2 * cables_ && shape_->cables[arc - cables_].shared) {
                route[hop] = arc - cables_;
            }
        }
    }
}

void Topology::check_connected(const TopologyOptions& options) const {
    // Nodes that hang at the same switches by all their cables reach and are reached alike: one stands for them.
    std::vector<std::vector<Vertex>> neighbours(nodes_);
    for (const Cable& cable : shape_->cables) {
        if (!cable.removed) {
            if (cable.a < nodes_) {
                neighbours[cable.a].push_back(cable.b);
            }
            if (cable.b < nodes_) {
                neighbours[cable.b].push_back(cable.a);
            }
        }
    }
    std::vector<std::uint32_t> speakers;
    for (std::uint32_t node = 0; node < nodes_; ++node) {
        if (speakers.empty() || neighbours[node].empty() || neighbours[node] != neighbours[speakers.back()]) {
            speakers.push_back(node);
        }
    }
    std::vector<LinkId> route;
    const std::size_t sources = shape_->is_transitive() ? std::min<std::size_t>(1, speakers.size()) : speakers.size();
    for (std::size_t i = 0; i < sources; ++i) {
        for (const std::uint32_t other : speakers) {
            route.clear();
            if (other != speakers[i] && !shape_->route(speakers[i], other, route)) {
                std::string cause;
                for (const std::string& name : options.removed) {
                    cause += (cause.empty() ? " once these are removed: " : ", ") + name;
                }
                throw std::invalid_argument("there is no route from node " + shape_->vertex_name(speakers[i]) +
                                            " to node " + shape_->vertex_name(other) + cause);
            }
        }
    }
}

double Topology::latency_s(std::span<const LinkId> route) const noexcept {
    double sum_s = 0.0;
    for (const LinkId link : route) {
        sum_s += links_[link].latency_s;
    }
    return sum_s;
}

std::string Topology::link_name(LinkId link) const {
    if (link >= 2 * cables_) {
        const auto found = std::ranges::find(limiter_of_vertex_, link);
        return "limiter of " + shape_->vertex_name(static_cast<Vertex>(found - limiter_of_vertex_.begin()));
    }
    const std::uint32_t cable = link < cables_ ? link : link - cables_;
    const Cable& at = shape_->cables[cable];
    if (at.a == at.b) { // of routes that are given
        return shape_->vertex_name(at.a);
    }
    std::uint32_t number = 0;
    std::uint32_t parallel = 0;
    for (std::uint32_t other = 0; other < cables_; ++other) {
        if (std::minmax(shape_->cables[other].a, shape_->cables[other].b) == std::minmax(at.a, at.b)) {
            number += other < cable ? 1 : 0;
            ++parallel;
        }
    }
    const std::string from = shape_->vertex_name(link < cables_ ? at.a : at.b);
    const std::string to = shape_->vertex_name(link < cables_ ? at.b : at.a);
    const std::string way = at.shared ? "-" : ">";
    return from + way + to + (parallel > 1 ? "#" + std::to_string(number) : "");
}

std::size_t Topology::state_bytes() const noexcept {
    return links_.size() * sizeof(Link) + limiter_of_vertex_.size() * sizeof(LinkId) + shape_->state_bytes();
}

} // namespace lepaute::net

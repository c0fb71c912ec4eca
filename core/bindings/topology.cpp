#include "net/topology.hpp"

#include "checks.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

namespace nb = nanobind;
using namespace lepaute;

namespace {

using LinkValue = std::pair<double, double>; // bandwidth in bytes/s, latency in seconds
using GraphCable = std::tuple<std::string, std::string, double, double, bool, std::uint32_t>;

std::vector<LinkValue> values_of(std::span<const net::Link> links) {
    std::vector<LinkValue> values;
    for (const net::Link& link : links) {
        values.emplace_back(link.capacity_Bps, link.latency_s);
    }
    return values;
}

std::vector<net::Link> links_of(const std::vector<LinkValue>& values) {
    std::vector<net::Link> links;
    for (const auto& [capacity_Bps, latency_s] : values) {
        links.push_back({capacity_Bps, latency_s});
    }
    return links;
}

net::Topology dragonfly(const std::vector<std::uint32_t>& sizes, const net::TopologyOptions& options) {
    if (sizes.size() != 7) {
        throw std::invalid_argument("a dragonfly is 7 numbers");
    }
    return net::Topology::dragonfly({sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6]}, options);
}

net::Topology graph(std::uint32_t nodes, std::vector<std::string> switches, const std::vector<GraphCable>& cables,
                    bool by_latency, const net::TopologyOptions& options) {
    net::Graph graph{nodes, std::move(switches), {}, by_latency};
    for (const auto& [a, b, capacity_Bps, latency_s, shared, count] : cables) {
        graph.cables.push_back({a, b, capacity_Bps, latency_s, shared, count});
    }
    return net::Topology::graph(graph, options);
}

} // namespace

void bind_topology(nb::module_& m) {
    nb::class_<net::TopologyOptions>(m, "TopologyOptions")
        .def(nb::init<>())
        .def_prop_rw(
            "levels", [](const net::TopologyOptions& options) { return values_of(options.levels); },
            [](net::TopologyOptions& options, const std::vector<LinkValue>& levels) {
                options.levels = links_of(levels);
            })
        .def_rw("shared", &net::TopologyOptions::shared)
        .def_rw("node_limiter_Bps", &net::TopologyOptions::node_limiter_Bps)
        .def_rw("switch_limiter_Bps", &net::TopologyOptions::switch_limiter_Bps)
        .def_rw("first_node_number", &net::TopologyOptions::first_node_number)
        .def_rw("removed", &net::TopologyOptions::removed)
        .def_prop_rw(
            "overrides", [](const net::TopologyOptions& options) { return options.overrides.size(); },
            [](net::TopologyOptions& options,
               const std::vector<std::tuple<std::string, std::optional<double>, std::optional<double>>>& overrides) {
                options.overrides.clear();
                for (const auto& [name, capacity_Bps, latency_s] : overrides) {
                    options.overrides.push_back({name, capacity_Bps, latency_s});
                }
            });
    nb::class_<net::Topology>(m, "Topology")
        .def_static("single_switch", &net::Topology::single_switch, nb::arg("nodes"), nb::arg("options"))
        .def_static(
            "fat_tree",
            [](std::vector<std::uint32_t> down, std::vector<std::uint32_t> up, std::vector<std::uint32_t> cables,
               bool first_cable_only, const net::TopologyOptions& options) {
                return net::Topology::fat_tree({std::move(down), std::move(up), std::move(cables), first_cable_only},
                                               options);
            },
            nb::arg("down"), nb::arg("up"), nb::arg("cables"), nb::arg("first_cable_only"), nb::arg("options"))
        .def_static("dragonfly", &dragonfly, nb::arg("sizes"), nb::arg("options"))
        .def_static("torus", &net::Topology::torus, nb::arg("dimensions"), nb::arg("options"))
        .def_static("graph", &graph, nb::arg("nodes"), nb::arg("switches"), nb::arg("cables"), nb::arg("by_latency"),
                    nb::arg("options"))
        .def_static(
            "given_routes",
            [](std::uint32_t nodes, std::vector<std::string> names, const std::vector<LinkValue>& links,
               std::vector<std::vector<std::uint32_t>> routes, const net::TopologyOptions& options) {
                return net::Topology::given_routes({nodes, std::move(names), links_of(links), std::move(routes)},
                                                   options);
            },
            nb::arg("nodes"), nb::arg("names"), nb::arg("links"), nb::arg("routes"), nb::arg("options"))
        .def_prop_ro("nodes", &net::Topology::nodes)
        .def_prop_ro("links", [](const net::Topology& topology) { return values_of(topology.links()); })
        .def(
            "route",
            [](const net::Topology& topology, std::uint32_t a, std::uint32_t b) {
                if (a >= topology.nodes() || b >= topology.nodes() || a == b) {
                    throw std::invalid_argument("a route leads from one node to another");
                }
                std::vector<net::LinkId> route;
                topology.route(a, b, route);
                return route;
            },
            nb::arg("a"), nb::arg("b"))
        .def(
            "link_name",
            [](const net::Topology& topology, net::LinkId link) {
                check_number("link", link, 0U, static_cast<net::LinkId>(topology.links().size() - 1));
                return topology.link_name(link);
            },
            nb::arg("link"))
        .def_prop_ro("state_bytes", &net::Topology::state_bytes);
}

// Arbitrary graphs, and any shape with parts removed: shortest paths from tables. For each vertex where messages leave
// the network (a switch with nodes, or a node of several cables) and each vertex on the way, the table holds the set of
// next cables that are equally good. Among them the destination's number chooses, modulo their number, and what is left
// of the division chooses at the next tie: in a fat tree this is D-mod-K.

#include "net/topology/shape.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <stdexcept>
#include <tuple>

namespace lepaute::net::topology {

namespace {

class GraphShape final : public Shape {
public:
    GraphShape(const Graph& graph, const TopologyOptions& options)
        : Shape(graph.nodes, options.first_node_number), names_(graph.switches), by_latency_(graph.by_latency) {
        switches = static_cast<std::uint32_t>(names_.size());
        std::map<std::string, Vertex> vertex_of;
        for (Vertex vertex = 0; vertex < vertices(); ++vertex) {
            if (!vertex_of.emplace(vertex_name(vertex), vertex).second) {
                throw std::invalid_argument("two parts of the topology are named " + vertex_name(vertex));
            }
        }
        const auto find = [&](const std::string& name) {
            const auto found = vertex_of.find(name);
            if (found == vertex_of.end()) {
                throw std::invalid_argument("a cable leads to " + name + ", which is neither a switch nor a node (" +
                                            vertex_name(0) + " to " + vertex_name(nodes - 1) + ")");
            }
            return found->second;
        };
        const Link standard = level_link(options, 0);
        for (const Graph::Cable& cable : graph.cables) {
            const Vertex a = find(cable.a);
            const Vertex b = find(cable.b);
            if (a == b) {
                throw std::invalid_argument("a cable leads from " + cable.a + " to itself");
            }
            const Link link{cable.capacity_Bps.value_or(standard.capacity_Bps),
                            cable.latency_s.value_or(standard.latency_s)};
            for (std::uint32_t i = 0; i < cable.count; ++i) {
                cables.push_back({a, b, link, cable.shared || options.shared});
            }
        }
    }

    GraphShape(std::unique_ptr<Shape> wiring, bool by_latency)
        : Shape(wiring->nodes, wiring->first_node_number), by_latency_(by_latency), wiring_(std::move(wiring)) {
        switches = wiring_->switches;
        nodes_forward = wiring_->nodes_forward;
        cables = wiring_->cables;
    }

    [[nodiscard]] bool is_whole() const noexcept override { return false; }

    bool route(Vertex a, Vertex b, std::vector<Arc>& arcs) const override {
        const Place& from = place_[a];
        const Place& to = place_[b];
        if (from.table == none || to.table == none) {
            return false;
        }
        if (from.arc != none) {
            arcs.push_back(from.arc);
        }
        std::uint32_t choice = b;
        for (Vertex at = from.vertex; at != to.vertex;) {
            const std::uint16_t number = table_[static_cast<std::size_t>(to.table) * vertices() + at];
            if (number == unreachable) {
                return false;
            }
            const std::vector<Arc>& next = ways_[at][number];
            const auto ties = static_cast<std::uint32_t>(next.size());
            const Arc arc = next[ties == 1 ? 0 : choice % ties];
            choice = ties == 1 ? choice : choice / ties;
            arcs.push_back(arc);
            at = head(arc);
        }
        if (to.arc != none) {
            arcs.push_back(reverse(to.arc));
        }
        return true;
    }

    [[nodiscard]] std::string switch_name(std::uint32_t number) const override {
        return wiring_ ? wiring_->switch_name(number) : names_[number];
    }
    [[nodiscard]] std::size_t state_bytes() const noexcept override {
        return Shape::state_bytes() + table_.size() * sizeof(std::uint16_t);
    }

private:
    static constexpr std::uint32_t none = 0xFFFFFFFFU;
    static constexpr std::uint16_t unreachable = 0xFFFFU;
    static constexpr std::size_t most_entries = std::size_t{1} << 31U; // of the table; four gigabytes

    /// Where a node joins the network: a switch, over its only cable, or the node itself.
    struct Place {
        Vertex vertex = none;
        Arc arc = none;             // from the node to the switch
        std::uint32_t table = none; // row of the tables that leads to `vertex`; none: the node has no cable
    };
    struct Distance {
        double latency_s = std::numeric_limits<double>::infinity();
        std::uint32_t links = none;
        bool operator==(const Distance&) const = default;
        bool operator>(const Distance& other) const noexcept {
            return std::tie(latency_s, links) > std::tie(other.latency_s, other.links);
        }
    };

    [[nodiscard]] Vertex head(Arc arc) const noexcept {
        return arc < cables.size() ? cables[arc].b : cables[arc - cables.size()].a;
    }
    [[nodiscard]] Arc reverse(Arc arc) const noexcept {
        const auto count = static_cast<Arc>(cables.size());
        return arc < count ? arc + count : arc - count;
    }
    [[nodiscard]] bool forwards(Vertex vertex) const noexcept { return nodes_forward || vertex >= nodes; }
    [[nodiscard]] Distance after(Arc arc, const Distance& rest) const noexcept {
        const double latency_s = cables[arc % cables.size()].link.latency_s;
        return {(by_latency_ ? latency_s : 0.0) + rest.latency_s, rest.links + 1};
    }

    /// Makes the tables.
    bool seal() override {
        std::vector<std::vector<Arc>> out(vertices());
        for (std::uint32_t cable = 0; cable < cables.size(); ++cable) {
            if (!cables[cable].removed && cables[cable].a != cables[cable].b) {
                out[cables[cable].a].push_back(forth(cable));
                out[cables[cable].b].push_back(back(cable));
            }
        }
        place_.assign(nodes, {});
        std::vector<std::uint32_t> table_of(vertices(), none);
        std::vector<Vertex> targets;
        for (Vertex node = 0; node < nodes; ++node) {
            if (out[node].empty()) {
                continue;
            }
            const bool leaf = !nodes_forward && out[node].size() == 1 && head(out[node][0]) >= nodes;
            Place& place = place_[node];
            place.vertex = leaf ? head(out[node][0]) : node;
            place.arc = leaf ? out[node][0] : none;
            if (table_of[place.vertex] == none) {
                table_of[place.vertex] = static_cast<std::uint32_t>(targets.size());
                targets.push_back(place.vertex);
            }
            place.table = table_of[place.vertex];
        }
        if (targets.size() * std::size_t{vertices()} > most_entries) {
            throw std::invalid_argument("the shortest paths to " + std::to_string(targets.size()) + " parts from " +
                                        std::to_string(vertices()) + " are too many");
        }
        table_.assign(targets.size() * vertices(), unreachable);
        ways_.assign(vertices(), {});
        std::vector<std::map<std::vector<Arc>, std::uint16_t>> known(vertices());
        for (std::size_t row = 0; row < targets.size(); ++row) {
            const std::vector<Distance> distance = distances_to(targets[row], out);
            for (Vertex vertex = 0; vertex < vertices(); ++vertex) {
                if (vertex == targets[row] || distance[vertex].links == none) {
                    continue;
                }
                std::vector<Arc> best;
                for (const Arc arc : out[vertex]) {
                    const Vertex next = head(arc);
                    if ((next == targets[row] || forwards(next)) && distance[next].links != none &&
                        after(arc, distance[next]) == distance[vertex]) {
                        best.push_back(arc);
                    }
                }
                if (known[vertex].size() == unreachable) {
                    throw std::invalid_argument("the ways on from " + vertex_name(vertex) + " are too many");
                }
                const auto [entry, is_new] =
                    known[vertex].emplace(best, static_cast<std::uint16_t>(known[vertex].size()));
                if (is_new) {
                    ways_[vertex].push_back(std::move(best));
                }
                table_[row * vertices() + vertex] = entry->second;
            }
        }
        return true;
    }

    /// Dijkstra from the target backwards; cables lead both ways, so that distances are the same either way.
    [[nodiscard]] std::vector<Distance> distances_to(Vertex target, const std::vector<std::vector<Arc>>& out) const {
        std::vector<Distance> distance(vertices());
        using Entry = std::pair<Distance, Vertex>;
        const auto later = [](const Entry& x, const Entry& y) { return x.first > y.first; };
        std::priority_queue<Entry, std::vector<Entry>, decltype(later)> open(later);
        distance[target] = {0.0, 0};
        open.emplace(distance[target], target);
        while (!open.empty()) {
            const auto [reached, vertex] = open.top();
            open.pop();
            if (reached > distance[vertex] || (vertex != target && !forwards(vertex))) {
                continue;
            }
            for (const Arc arc : out[vertex]) { // from its head to `vertex` by the same cable
                const Vertex previous = head(arc);
                const Distance candidate = after(arc, reached);
                if (distance[previous] > candidate) {
                    distance[previous] = candidate;
                    open.emplace(candidate, previous);
                }
            }
        }
        return distance;
    }

    std::vector<std::string> names_;
    bool by_latency_;
    std::unique_ptr<Shape> wiring_; // whose cables these are, for names; null for a graph
    std::vector<Place> place_;
    std::vector<std::uint16_t> table_;                // of target and vertex: which of ways_[vertex]
    std::vector<std::vector<std::vector<Arc>>> ways_; // of vertex: sets of equally good next arcs
};

} // namespace

std::unique_ptr<Shape> make_graph(const Graph& graph, const TopologyOptions& options) {
    graph.check();
    return std::make_unique<GraphShape>(graph, options);
}

std::unique_ptr<Shape> make_shortest_paths(std::unique_ptr<Shape> wiring, bool by_latency) {
    return std::make_unique<GraphShape>(std::move(wiring), by_latency);
}

} // namespace lepaute::net::topology

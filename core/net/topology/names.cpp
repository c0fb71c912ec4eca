// Parts of a topology by name: a node n<number>, a switch, or the cables between two of them, <one>-<other>, of
// parallel ones a single one with #<number>.

#include "net/topology/shape.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace lepaute::net::topology {

namespace {

class Names {
public:
    explicit Names(const Shape& shape) : shape_(shape) {
        for (Vertex vertex = 0; vertex < shape.vertices(); ++vertex) {
            vertex_of_[shape.vertex_name(vertex)] = vertex;
        }
        for (std::uint32_t cable = 0; cable < shape.cables.size(); ++cable) {
            const Cable& at = shape.cables[cable];
            of_pair_[std::minmax(at.a, at.b)].push_back(cable);
            of_vertex_[at.a].push_back(cable);
            of_vertex_[at.b].push_back(cable);
        }
    }

    /// The cables of a switch or of a name such as n0-s1.0#2; throws std::invalid_argument where there are none.
    [[nodiscard]] std::vector<std::uint32_t> find(const std::string& name) const {
        if (const auto vertex = vertex_of_.find(name); vertex != vertex_of_.end()) {
            const auto cables = of_vertex_.find(vertex->second);
            return cables == of_vertex_.end() ? std::vector<std::uint32_t>{} : cables->second;
        }
        const std::size_t hash = name.find('#');
        const std::string pair = name.substr(0, hash);
        // names of a graph's switches may have dashes themselves
        for (std::size_t dash = pair.find('-'); dash != std::string::npos; dash = pair.find('-', dash + 1)) {
            const auto a = vertex_of_.find(pair.substr(0, dash));
            const auto b = vertex_of_.find(pair.substr(dash + 1));
            if (a == vertex_of_.end() || b == vertex_of_.end()) {
                continue;
            }
            const auto cables = of_pair_.find(std::minmax(a->second, b->second));
            if (cables == of_pair_.end()) {
                throw std::invalid_argument("no cable joins " + a->first + " and " + b->first + ", named '" + name +
                                            "'");
            }
            return hash == std::string::npos ? cables->second : one_of(cables->second, name, name.substr(hash + 1));
        }
        std::string known = "nodes are " + shape_.vertex_name(0) + " to " + shape_.vertex_name(shape_.nodes - 1);
        if (shape_.switches > 0) {
            known +=
                ", switches " + shape_.vertex_name(shape_.nodes) + " to " + shape_.vertex_name(shape_.vertices() - 1);
        }
        if (!shape_.cables.empty()) {
            const Cable& first = shape_.cables.front();
            known += ", cables such as " + shape_.vertex_name(first.a) + "-" + shape_.vertex_name(first.b);
        }
        throw std::invalid_argument("the topology has no part named '" + name + "'; " + known);
    }

private:
    static std::vector<std::uint32_t> one_of(const std::vector<std::uint32_t>& cables, const std::string& name,
                                             const std::string& digits) {
        const bool is_number = !digits.empty() && digits.size() < 9 &&
                               std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
        if (!is_number || std::stoul(digits) >= cables.size()) {
            throw std::invalid_argument("there is no cable '" + name + "'; its number is 0 to " +
                                        std::to_string(cables.size() - 1));
        }
        return {cables[std::stoul(digits)]};
    }

    const Shape& shape_;
    std::map<std::string, Vertex> vertex_of_;
    std::map<std::pair<Vertex, Vertex>, std::vector<std::uint32_t>> of_pair_;
    std::map<Vertex, std::vector<std::uint32_t>> of_vertex_;
};

} // namespace

void apply_names(Shape& shape, const TopologyOptions& options) {
    if (options.overrides.empty() && options.removed.empty()) {
        return;
    }
    const Names names(shape);
    for (const TopologyOptions::Override& entry : options.overrides) {
        for (const std::uint32_t cable : names.find(entry.name)) {
            Link& link = shape.cables[cable].link;
            link = {entry.capacity_Bps.value_or(link.capacity_Bps), entry.latency_s.value_or(link.latency_s)};
        }
    }
    for (const std::string& name : options.removed) {
        for (const std::uint32_t cable : names.find(name)) {
            shape.cables[cable].removed = true;
        }
    }
}

std::uint32_t checked_product(const std::vector<std::uint32_t>& factors, std::string_view what) {
    std::uint64_t product = 1;
    for (const std::uint32_t factor : factors) {
        product *= factor;
        if (product == 0 || product > most_parts) {
            throw std::invalid_argument(std::string(what) +
                                        (product == 0 ? ": a number of them is 0" : ": there are too many of them"));
        }
    }
    return static_cast<std::uint32_t>(product);
}

} // namespace lepaute::net::topology

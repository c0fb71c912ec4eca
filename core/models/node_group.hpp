#pragma once
// Nodes of a machine whose nodes differ: groups of nodes that are alike, one after the other.

#include "checks.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace lepaute::models {

/// How the cores of a node are laid out, and how many such nodes follow each other.
struct NodeGroup {
    std::uint32_t nodes = 1;
    std::uint32_t cores = 1;
    std::uint32_t cpus = 1;
    bool cpu_is_core_modulo = true; // else core divided by the cores of a cpu
    std::uint32_t sockets = 1;
    double slowness = 1.0; // what code whose seconds are said takes here, over what it takes on a mean node

    [[nodiscard]] std::uint32_t cpu_of_core(std::uint32_t core) const noexcept {
        return cpu_is_core_modulo ? core % cpus : core / (cores / cpus);
    }
    /// CPUs of a socket are consecutive, or the cores where all have one CPU.
    [[nodiscard]] std::uint32_t socket_of_core(std::uint32_t core) const noexcept {
        return cpus % sockets != 0 ? core / (cores / sockets) : cpu_of_core(core) / (cpus / sockets);
    }

    /// `cpus_name`, `sockets_name`: what a refusal calls these numbers.
    void check_parts(std::string_view cpus_name, std::string_view sockets_name) const {
        for (const auto& [name, parts] : {std::pair{cpus_name, cpus}, std::pair{sockets_name, sockets}}) {
            check_number(name, parts, 1U, cores);
            if (cores % parts != 0) {
                refuse(name, text_of(parts), text_of(cores) + " cores cannot be divided evenly among them");
            }
        }
    }
    void check() const { check_parts("cpus", "sockets"); }
    template <class Visit>
    static void fields(Visit visit) {
        visit("nodes", &NodeGroup::nodes, 1, 1U << 20U);
        visit("cores", &NodeGroup::cores, 1, 1U << 16U);
        visit("cpus", &NodeGroup::cpus);
        visit("cpu_is_core_modulo", &NodeGroup::cpu_is_core_modulo);
        visit("sockets", &NodeGroup::sockets);
        visit("slowness", &NodeGroup::slowness, 1e-9, 1e9);
    }
};

/// The number of the group that `node` is in, 0 where there are none.
[[nodiscard]] inline std::uint32_t group_of_node(std::span<const NodeGroup> groups, std::uint32_t node) noexcept {
    std::uint32_t number = 0;
    for (std::uint32_t end = 0; number + 1 < groups.size(); ++number) {
        end += groups[number].nodes;
        if (node < end) {
            break;
        }
    }
    return number;
}

} // namespace lepaute::models

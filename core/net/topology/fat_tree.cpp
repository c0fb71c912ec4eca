// Fat trees: parallel-port generalised fat trees with D-mod-K routing (E. Zahavi, "D-Mod-K routing providing
// non-blocking traffic for shift permutations on real life fat trees", 2010).
//
// A vertex of level l has the digits (x_0, ..., x_h-1), digit i counting to up[i] for i < l and to down[i] for i >= l,
// the first digit the fastest in its position. A parent differs from its child in digit l alone.

#include "net/topology/shape.hpp"

#include <stdexcept>

namespace lepaute::net::topology {

namespace {

class FatTreeShape final : public Shape {
public:
    FatTreeShape(const FatTree& tree, const TopologyOptions& options)
        : Shape(checked_product(tree.down, "a fat tree's children"), options.first_node_number) {
        const std::size_t height = tree.down.size();
        std::uint32_t below = 1; // product of down
        std::uint32_t above = 1; // product of up
        std::uint32_t spread = 1;
        first_vertex_.push_back(0);
        std::uint32_t vertices_of_level = nodes;
        for (std::size_t l = 0; l < height; ++l) {
            const std::uint32_t used = tree.first_cable_only ? 1 : tree.cables[l];
            levels_.push_back({tree.down[l], tree.up[l], tree.cables[l], used, below, above, spread,
                               static_cast<std::uint32_t>(cables.size())});
            const std::uint32_t first_parent = first_vertex_[l] + vertices_of_level;
            for (std::uint32_t child = 0; child < vertices_of_level; ++child) {
                for (std::uint32_t x = 0; x < tree.up[l]; ++x) {
                    for (std::uint32_t cable = 0; cable < tree.cables[l]; ++cable) {
                        cables.push_back({first_vertex_[l] + child, first_parent + parent(l, child, x),
                                          level_link(options, l), options.shared});
                    }
                }
            }
            first_vertex_.push_back(first_parent);
            vertices_of_level = vertices_of_level / tree.down[l] * tree.up[l];
            switches += vertices_of_level;
            below *= tree.down[l];
            above *= tree.up[l];
            spread *= tree.up[l] * used;
        }
    }

    bool route(Vertex a, Vertex b, std::vector<Arc>& arcs) const override {
        std::size_t top = 1; // level of the nearest common ancestors
        while (top < levels_.size() && a / levels_[top].below != b / levels_[top].below) {
            ++top;
        }
        std::uint32_t at = a;
        for (std::size_t l = 0; l < top; ++l) {
            const Level& level = levels_[l];
            const std::uint32_t wanted = b / level.spread; // as in D-mod-K
            const std::uint32_t port =
                with_removals_ ? surviving_port(l, at, top, b, wanted) : wanted % (level.up * level.used);
            if (port == none) {
                return false;
            }
            const std::uint32_t x = port % level.up;
            arcs.push_back(forth(first_cable(l, at, x) + port / level.up));
            at = parent(l, at, x);
        }
        for (std::size_t l = top; l-- > 0;) {
            const Level& level = levels_[l];
            const std::uint32_t x = at / level.above % level.up;
            at = child(l, at, b);
            const std::uint32_t first = first_cable(l, at, x);
            const std::uint32_t cable = with_removals_ ? surviving_cable(l, first, a) : a % level.used;
            if (cable == none) {
                return false;
            }
            arcs.push_back(back(first + cable));
        }
        return true;
    }

    [[nodiscard]] std::string switch_name(std::uint32_t number) const override {
        std::size_t level = 1;
        while (level < levels_.size() && nodes + number >= first_vertex_[level + 1]) {
            ++level;
        }
        return "s" + std::to_string(level) + "." + std::to_string(nodes + number - first_vertex_[level]);
    }

    bool seal() override {
        with_removals_ = some_removed();
        if (with_removals_) {
            left_.assign(cables.size(), 0);
            for (const Level& level : levels_) {
                const std::size_t end = &level == &levels_.back() ? cables.size() : (&level + 1)->first_cable;
                for (std::size_t first = level.first_cable; first < end; first += level.cables) {
                    for (std::size_t cable = first; cable < first + level.used; ++cable) {
                        left_[first] += cables[cable].removed ? 0 : 1;
                    }
                }
            }
        }
        return true;
    }
    [[nodiscard]] bool is_transitive() const noexcept override { return false; } // no way down and up again

private:
    static constexpr std::uint32_t none = 0xFFFFFFFFU;

    struct Level {
        std::uint32_t down;
        std::uint32_t up;
        std::uint32_t cables;
        std::uint32_t used;   // of the parallel cables
        std::uint32_t below;  // product of down[i], i < l
        std::uint32_t above;  // product of up[i], i < l
        std::uint32_t spread; // product of up[i] * used[i], i < l
        std::uint32_t first_cable;
    };

    [[nodiscard]] std::uint32_t first_cable(std::size_t l, std::uint32_t child, std::uint32_t x) const noexcept {
        return levels_[l].first_cable + (child * levels_[l].up + x) * levels_[l].cables;
    }
    /// Position, in level l + 1, of parent x of the vertex at position `at` of level l.
    [[nodiscard]] std::uint32_t parent(std::size_t l, std::uint32_t at, std::uint32_t x) const noexcept {
        const Level& level = levels_[l];
        return at % level.above + level.above * (x + level.up * (at / (level.above * level.down)));
    }
    /// Position, in level l, of the child that leads to node b from the vertex at position `at` of level l + 1.
    [[nodiscard]] std::uint32_t child(std::size_t l, std::uint32_t at, std::uint32_t b) const noexcept {
        const Level& level = levels_[l];
        const std::uint32_t digit = b / level.below % level.down;
        return at % level.above + level.above * (digit + level.down * (at / (level.above * level.up)));
    }

    // With cables removed: the same rule among the cables that are left and lead to the destination.
    [[nodiscard]] std::uint32_t surviving_cable(std::size_t l, std::uint32_t first, std::uint32_t wanted) const {
        if (left_[first] == 0 || left_[first] == levels_[l].used) {
            return left_[first] == 0 ? none : wanted % levels_[l].used;
        }
        std::uint32_t skip = wanted % left_[first];
        std::uint32_t cable = 0;
        while (cables[first + cable].removed || skip-- > 0) {
            ++cable;
        }
        return cable;
    }
    /// Is there a way from position `at` of level l up to level `top` and down to b?
    [[nodiscard]] bool leads(std::size_t l, std::uint32_t at, std::size_t top, std::uint32_t b) const {
        if (l < top) {
            for (std::uint32_t x = 0; x < levels_[l].up; ++x) {
                if (left_[first_cable(l, at, x)] > 0 && leads(l + 1, parent(l, at, x), top, b)) {
                    return true;
                }
            }
            return false;
        }
        while (l-- > 0) {
            const std::uint32_t x = at / levels_[l].above % levels_[l].up;
            at = child(l, at, b);
            if (left_[first_cable(l, at, x)] == 0) {
                return false;
            }
        }
        return true;
    }
    [[nodiscard]] std::uint32_t surviving_port(std::size_t l, std::uint32_t at, std::size_t top, std::uint32_t b,
                                               std::uint32_t wanted) const {
        const Level& level = levels_[l];
        const auto open = [&](std::uint32_t x) {
            return left_[first_cable(l, at, x)] > 0 && leads(l + 1, parent(l, at, x), top, b);
        };
        std::uint64_t is_open = 0; // of the first 64 parents, so that they are followed only once
        std::uint32_t left = 0;
        for (std::uint32_t x = 0; x < level.up; ++x) {
            if (open(x)) {
                left += left_[first_cable(l, at, x)];
                is_open |= x < 64 ? std::uint64_t{1} << x : 0;
            }
        }
        if (left == level.up * level.used || left == 0) {
            return left == 0 ? none : wanted % left;
        }
        std::uint32_t skip = wanted % left;
        for (std::uint32_t cable = 0;; ++cable) {
            for (std::uint32_t x = 0; x < level.up; ++x) {
                if ((x < 64 ? (is_open >> x & 1) != 0 : open(x)) && !cables[first_cable(l, at, x) + cable].removed &&
                    skip-- == 0) {
                    return cable * level.up + x;
                }
            }
        }
    }

    std::vector<Level> levels_;
    std::vector<Vertex> first_vertex_; // of each level, the nodes' first
    bool with_removals_ = false;
    std::vector<std::uint32_t> left_; // at the first of parallel cables: how many of those in use are not removed
};

} // namespace

std::unique_ptr<Shape> make_fat_tree(const FatTree& tree, const TopologyOptions& options) {
    if (tree.down.empty() || tree.up.size() != tree.down.size() || tree.cables.size() != tree.down.size()) {
        throw std::invalid_argument("a fat tree has as many numbers of children, parents and cables as levels, "
                                    "at least one");
    }
    for (std::size_t l = 0; l < tree.down.size(); ++l) {
        // cables of level l: vertices of level l, times parents, times cables
        std::vector<std::uint32_t> factors{tree.cables[l]};
        factors.insert(factors.end(), tree.up.begin(), tree.up.begin() + static_cast<std::ptrdiff_t>(l) + 1);
        factors.insert(factors.end(), tree.down.begin() + static_cast<std::ptrdiff_t>(l), tree.down.end());
        static_cast<void>(checked_product(factors, "a fat tree's cables"));
    }
    return std::make_unique<FatTreeShape>(tree, options);
}

} // namespace lepaute::net::topology

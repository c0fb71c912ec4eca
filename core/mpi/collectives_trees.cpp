// Collective operations along trees, in segments, and those between the root and each other member.

#include "mpi/collectives.hpp"

#include <algorithm>
#include <bit>

namespace lepaute::mpi {

namespace {

/// Of chains below place 0, the first ones a member longer where they cannot be equal.
Node in_chains(std::uint32_t place, std::uint32_t size, std::uint32_t chains) {
    Node node{place == 0 ? 0 : place - 1, {}};
    bool ends = place == 0 || place + 1 == size;
    for (std::uint32_t chain = 0; chain < chains; ++chain) {
        const std::uint32_t head = 1 + chain * ((size - 1) / chains) + std::min(chain, (size - 1) % chains);
        ends = ends || head == place + 1;
        if (place == 0) {
            node.children.push_back(head);
        } else if (place == head) {
            node.parent = 0;
        }
    }
    if (!ends) {
        node.children.push_back(place + 1);
    }
    return node;
}

/// The root of a subtree is its last member; its children are the one before it, and the last of the lower half.
Node in_order(std::uint32_t member, std::uint32_t size) {
    Node node{size - 1, {}};
    std::uint32_t first = 0; // member of the subtree
    std::uint32_t count = size;
    while (member != first + count - 1) {
        const std::uint32_t lower = count > 2 ? count / 2 : 0;
        node.parent = first + count - 1;
        if (member < first + lower) {
            count = lower;
        } else {
            first += lower;
            count -= lower + 1;
        }
    }
    if (count > 1) {
        node.children.push_back(member - 1);
    }
    if (count > 2) {
        node.children.push_back(first + count / 2 - 1);
    }
    return node;
}

/// Of members numbered from the root on.
Node node_of(const Shape& shape, std::uint32_t place, std::uint32_t size) {
    Node node;
    const auto add = [&](std::uint32_t child) {
        if (child < size) {
            node.children.push_back(child);
        }
    };
    std::uint32_t step = std::bit_floor(place + 1); // of a binary tree, members of the level
    switch (shape.tree) {
    case Algorithm::chains:
        return in_chains(place, size, std::clamp(shape.fan_out, 1U, size - 1));
    case Algorithm::binary:
        node.parent = place == 0 ? 0 : place - (place + 1 - step < step / 2 ? step / 2 : step);
        add(place + step);
        add(place + 2 * step);
        break;
    case Algorithm::near_first:
        node.parent = place == 0 ? 0 : place - std::bit_floor(place);
        for (step = std::bit_ceil(place + 1); step < size; step *= 2) {
            add(place + step);
        }
        break;
    case Algorithm::binomial: {
        const Node far_first = node_of({Algorithm::k_nomial, 0.0, 2}, place, size);
        return {far_first.parent, {far_first.children.rbegin(), far_first.children.rend()}};
    }
    case Algorithm::k_nomial:
        for (step = 1; step < size && place % (shape.fan_out * step) == 0;) {
            step *= shape.fan_out;
        }
        node.parent = place - place % (shape.fan_out * step);
        for (step /= shape.fan_out; step > 0; step /= shape.fan_out) {
            for (std::uint32_t nth = 1; nth < shape.fan_out; ++nth) {
                add(place + nth * step);
            }
        }
        break;
    default: // linear
        for (std::uint32_t child = 1; place == 0 && child < size; ++child) {
            add(child);
        }
        break;
    }
    return node;
}

/// Bytes of the message to or from the subtree of a member in the binomial tree of `root`.
double carried(const Member& me, double bytes, std::uint32_t root, std::uint32_t index, Carried what) {
    const std::uint32_t size = me.communicator.size();
    const std::uint32_t place = (index + size - root) % size;
    return what == Carried::whole ? bytes : std::min(place & (~place + 1U), size - place) * bytes;
}

struct Segments {
    Segments(double bytes, double segment_bytes)
        : each(segment_bytes > 0.0 ? std::min(segment_bytes, bytes) : bytes),
          count(each > 0.0 ? static_cast<std::uint32_t>(std::ceil(bytes / each)) : 1),
          last(bytes - (count - 1) * each) {}
    [[nodiscard]] double of(std::uint32_t segment) const { return segment + 1 == count ? last : each; }

    double each;
    std::uint32_t count;
    double last;
};

/// What comes from the parent goes to all children at once, or (by_send) to one after the other. Each child of the root
/// gets segments of its own; the others those of `own`.
Task pass_down(Member me, Node node, std::array<Segments, 2> segments, std::size_t own, bool by_send) {
    const bool is_root = node.parent == me.index;
    const std::uint32_t count = is_root ? std::max(segments[0].count, segments[1].count) : segments.at(own).count;
    Posted posted(me, 2);
    if (!is_root) {
        co_await posted.receive(0, node.parent);
    }
    for (std::uint32_t segment = 0; segment < count; ++segment) {
        if (!is_root) {
            if (segment + 1 < count) {
                co_await posted.receive((segment + 1) % 2, node.parent);
            }
            co_await posted.wait(segment % 2);
        }
        for (std::size_t nth = 0; nth < node.children.size(); ++nth) {
            const Segments& passed = segments.at(is_root && by_send ? nth : own);
            if (segment < passed.count && by_send) {
                co_await send(me, node.children[nth], passed.of(segment));
            } else if (segment < passed.count) {
                co_await posted.send(node.children[nth], passed.of(segment));
            }
        }
        if (!node.children.empty() && !by_send) {
            co_await posted.wait_sent();
        }
    }
}

} // namespace

Node node_of(const Member& me, const Shape& shape, std::uint32_t root) {
    const std::uint32_t size = me.communicator.size();
    if (shape.tree == Algorithm::in_order_binary) {
        return in_order(me.index, size);
    }
    Node node = node_of(shape, (me.index + size - root) % size, size);
    node.parent = (node.parent + root) % size;
    for (std::uint32_t& child : node.children) {
        child = (child + root) % size;
    }
    if (shape.tree == Algorithm::linear) {
        std::ranges::sort(node.children);
    }
    return node;
}

Task broadcast_tree(Member me, double bytes, std::uint32_t root, Shape shape) {
    const Segments segments(bytes, shape.segment_bytes);
    return pass_down(me, node_of(me, shape, root), {segments, segments}, 0, false);
}

Task broadcast_split_binary(Member me, double bytes, std::uint32_t root, double segment_bytes) {
    const std::uint32_t size = me.communicator.size();
    const std::uint32_t place = (me.index + size - root) % size;
    const std::array<double, 2> halves{std::ceil(bytes / 2.0), std::floor(bytes / 2.0)};
    const std::uint32_t side = (place + 1) % 2; // odd places are in the left subtree
    co_await pass_down(me, node_of(me, {Algorithm::binary}, root),
                       {Segments(halves[0], segment_bytes), Segments(halves[1], segment_bytes)}, side, true);
    // The other half from the member at the same place of the other subtree, or from the root.
    const bool root_has_partner = size % 2 == 0;
    const std::uint32_t partner = (me.index + (side == 0 ? 1 : size - 1)) % size;
    if (place != 0 && !(root_has_partner && place + 1 == size)) {
        co_await exchange(me, with(partner, halves.at(side)));
    } else if (place != 0) {
        co_await receive(me, root);
    } else if (root_has_partner) {
        co_await send(me, partner, halves[1]);
    }
}

Task reduce_tree(Member me, double bytes, std::uint32_t root, Shape shape) {
    const Node node = node_of(me, shape, root);
    const Segments segments(bytes, shape.segment_bytes);
    const bool sends = node.parent != me.index;
    Posted posted(me, 2);
    const std::size_t children = node.children.size();
    const std::size_t each = std::max<std::size_t>(children, 1); // segment
    for (std::size_t step = 0; step <= segments.count * each; ++step) {
        const auto slot = static_cast<std::uint32_t>(step % 2);
        if (children > 0 && step < segments.count * each) {
            co_await posted.receive(slot, node.children[step % each]);
        }
        if (children > 0 && step > 0) { // the receive before
            co_await posted.wait(1 - slot);
        }
        if (sends && step > 0 && step % each == 0) {
            co_await send(me, node.parent, segments.of(static_cast<std::uint32_t>(step / each - 1)));
        }
    }
    if (shape.tree == Algorithm::in_order_binary && root + 1 != me.communicator.size()) {
        if (!sends) {
            co_await send(me, root, bytes);
        } else if (me.index == root) {
            co_await receive(me, me.communicator.size() - 1);
        }
    }
}

Task along_tree(Member me, double bytes, std::uint32_t root, Algorithm tree, Direction direction, Carried what,
                bool last_first) {
    const bool up = direction == Direction::to_root;
    Node node = node_of(me, {tree}, root);
    if (last_first) {
        std::ranges::reverse(node.children);
    }
    const auto count = static_cast<std::uint32_t>(node.children.size());
    return in_rounds(me, count + 1, [=](std::uint32_t round) {
        const bool of_parent = round == (up ? count : 0);
        const std::uint32_t peer = of_parent ? node.parent : node.children[up ? round : round - 1];
        return peer == me.index  ? Exchange{}
               : up != of_parent ? Exchange{.from = peer}
                                 : Exchange{peer, carried(me, bytes, root, up ? me.index : peer, what)};
    });
}

Task gather_posted(Member me, double bytes, std::uint32_t root, bool on_request, double first_bytes) {
    const std::uint32_t size = me.communicator.size();
    first_bytes = first_bytes > 0.0 ? std::min(first_bytes, bytes) : bytes;
    if (me.index != root) {
        if (on_request) {
            co_await receive(me, root);
            co_await send(me, root, first_bytes);
        }
        co_await send(me, root, on_request ? bytes - first_bytes : bytes);
        co_return;
    }
    Posted posted(me, size + 1);
    for (std::uint32_t index = 0; index < size; ++index) {
        if (index == root) {
            continue;
        }
        if (on_request) {
            co_await posted.receive(size, index);
            co_await send(me, index, 0.0);
        }
        co_await posted.receive(index, index);
        if (on_request) {
            co_await posted.wait(size);
        }
    }
    co_await posted.wait_all();
}

Task alltoall_linear(Member me, double bytes, std::uint32_t at_once) {
    const std::uint32_t size = me.communicator.size();
    const std::uint32_t count = at_once > 0 ? std::min(at_once, size) : size;
    Posted posted(me, count);
    for (std::uint32_t first = 0; first < size; first += count) { // a member counts itself, and copies
        const std::uint32_t end = std::min(first + count, size);
        for (std::uint32_t step = std::max(first, 1U); step < end; ++step) {
            co_await posted.receive(step - first, (me.index + step) % size);
        }
        for (std::uint32_t step = std::max(first, 1U); step < end; ++step) {
            co_await posted.send((me.index + size - step) % size, bytes);
        }
        co_await posted.wait_all();
    }
}

} // namespace lepaute::mpi

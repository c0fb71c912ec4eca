#include "net/exact_sharing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace lepaute::net {

namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();
/// What differs by less is the same level: rounding must not set links moving. Far below what anyone asks for (1e-9),
/// far above what a sum of some hundred terms loses.
constexpr double same_level = 1e-13;

bool is_same(double x_Bps, double y_Bps) noexcept {
    return x_Bps == y_Bps || std::abs(x_Bps - y_Bps) <= same_level * std::min(x_Bps, y_Bps);
}

} // namespace

ExactSharing::ExactSharing(std::span<const double> capacity_Bps, double patience) : patience_(patience) {
    links_.reserve(capacity_Bps.size());
    for (const double capacity : capacity_Bps) {
        links_.push_back({capacity, unlimited, false, {}});
    }
}

ExactSharing::BundleId ExactSharing::add_bundle(std::span<const LinkId> route, double cap_Bps) {
    const auto id = static_cast<BundleId>(bundles_.size());
    bundles_.push_back(
        {cap_Bps, 0.0, static_cast<std::uint32_t>(hops_.size()), static_cast<std::uint32_t>(route.size())});
    is_touched_.push_back(false);
    for (const LinkId link : route) {
        hops_.push_back({link, 0});
    }
    return id;
}

void ExactSharing::set_count(BundleId bundle, std::uint32_t count) {
    Bundle& state = bundles_[bundle];
    if (count == state.count) {
        return;
    }
    const std::uint32_t before = state.count;
    state.count = count;
    if (count == 0) {
        leave(bundle);
        return;
    }
    if (before == 0) {
        join(bundle);
        touch(bundle);
    }
    for (const Hop& hop : route(state)) {
        links_[hop.link].members[hop.position].count = count;
        enqueue(links_[hop.link], hop.link);
    }
}

void ExactSharing::join(BundleId id) {
    const Bundle& bundle = bundles_[id];
    const std::span<Hop> hops = route(bundle);
    for (Hop& hop : hops) {
        hop.position = static_cast<std::uint32_t>(links_[hop.link].members.size());
    }
    for (std::uint32_t number = 0; number < hops.size(); ++number) {
        std::vector<Member>& members = links_[hops[number].link].members;
        const Hop peer = hops.size() == 2 ? hops[1 - number] : Hop{no_link, 0};
        busy_links_ += members.empty() ? 1 : 0;
        members.push_back({0.0, limit_without(bundle, hops[number].link), bundle.cap_Bps, id, bundle.first_hop + number,
                           peer.link, peer.position});
    }
}

void ExactSharing::leave(BundleId id) {
    Bundle& bundle = bundles_[id];
    bundle.rate_Bps = 0.0;
    for (const Hop& hop : route(bundle)) {
        std::vector<Member>& members = links_[hop.link].members;
        const Member last = members.back();
        members[hop.position] = last; // the last takes its place
        members.pop_back();
        hops_[last.hop].position = hop.position;
        if (last.peer != no_link && last.bundle != id) {
            links_[last.peer].members[last.peer_position].peer_position = hop.position;
        }
        busy_links_ -= members.empty() ? 1 : 0;
        enqueue(links_[hop.link], hop.link);
    }
}

void ExactSharing::touch(BundleId id) {
    if (!is_touched_[id]) {
        is_touched_[id] = true;
        touched_.push_back(id);
    }
}

void ExactSharing::enqueue(LinkState& state, LinkId link) {
    if (!state.queued) {
        state.queued = true;
        queue_.push_back({state.level_Bps, link});
    }
}

/// The link of lowest level first: what is decided there holds for the others, so that few links come twice (15.6
/// instead of 23.3 computations a change, first in first out, with 1000 flows among 32 nodes). The queue is short.
LinkId ExactSharing::dequeue() {
    std::size_t lowest = 0;
    double lowest_Bps = queue_[0].level_Bps;
    for (std::size_t i = 1; i < queue_.size(); ++i) {
        const double level_Bps = queue_[i].level_Bps;
        lowest = level_Bps < lowest_Bps ? i : lowest;
        lowest_Bps = std::min(lowest_Bps, level_Bps);
    }
    const LinkId link = queue_[lowest].link;
    queue_[lowest] = queue_.back();
    queue_.pop_back();
    links_[link].queued = false;
    return link;
}

double ExactSharing::limit_without(const Bundle& bundle, LinkId link) noexcept {
    double limit_Bps = bundle.cap_Bps;
    for (const Hop& hop : route(bundle)) {
        if (hop.link != link) {
            limit_Bps = std::min(limit_Bps, links_[hop.link].level_Bps);
        }
    }
    return limit_Bps;
}

/// The level at which the members fill the link: the root of sum(count * min(limit, level)) = capacity, infinite where
/// all the limits together do not reach it. Newton's method from the present level; the sum is concave and piecewise
/// linear in the level, so that after the first step the iterates rise to the root and end in it exactly.
double ExactSharing::fitting_level(const LinkState& link) noexcept {
    double level_Bps = link.level_Bps;
    bool is_below_root = false;
    for (;;) {
        double held_Bps = 0.0; // rate of the members that their limits hold below the level
        double free = 0.0;     // flows of the others
        double highest_held_Bps = 0.0;
        double lowest_free_Bps = unlimited;
        for (const Member& member : link.members) {
            const bool is_held = member.limit_Bps < level_Bps;
            held_Bps += is_held ? member.count * member.limit_Bps : 0.0;
            free += is_held ? 0.0 : member.count;
            highest_held_Bps = is_held ? std::max(highest_held_Bps, member.limit_Bps) : highest_held_Bps;
            lowest_free_Bps = is_held ? lowest_free_Bps : std::min(lowest_free_Bps, member.limit_Bps);
        }
        if (free == 0.0) {
            if (held_Bps <= link.capacity_Bps * (1.0 + same_level)) {
                return unlimited;
            }
            level_Bps = highest_held_Bps;
            is_below_root = false;
            continue;
        }
        const double next_Bps = (link.capacity_Bps - held_Bps) / free;
        if (next_Bps > highest_held_Bps && next_Bps <= lowest_free_Bps) {
            return next_Bps;
        }
        if (is_below_root && next_Bps <= level_Bps) { // a limit within rounding of the root
            return level_Bps;
        }
        level_Bps = next_Bps;
        is_below_root = true;
    }
}

void ExactSharing::set_level(LinkId link, double level_Bps) {
    LinkState& state = links_[link];
    const double lower_Bps = std::min(state.level_Bps, level_Bps);
    state.level_Bps = level_Bps;
    for (const Member& member : state.members) {
        if (lower_Bps < member.limit_Bps) { // else it is held elsewhere, before and after
            touch(member.bundle);
        }
        if (member.peer != no_link) {
            limit_changes(member.peer, member.peer_position, std::min(member.cap_Bps, level_Bps));
            continue;
        }
        const Bundle& bundle = bundles_[member.bundle];
        for (const Hop& hop : route(bundle)) {
            if (hop.link != link) {
                limit_changes(hop.link, hop.position, limit_without(bundle, hop.link));
            }
        }
    }
}

void ExactSharing::limit_changes(LinkId link, std::uint32_t position, double limit_Bps) {
    LinkState& state = links_[link];
    const double before_Bps = std::exchange(state.members[position].limit_Bps, limit_Bps);
    // a flow that the link holds below both limits is no news to it
    if (before_Bps != limit_Bps && std::min(before_Bps, limit_Bps) < state.level_Bps) {
        enqueue(state, link);
    }
}

std::span<const ExactSharing::BundleId> ExactSharing::settle() {
    changed_.clear();
    const auto bound = static_cast<std::uint64_t>(patience_ * static_cast<double>(busy_links_ + 1));
    std::uint64_t levels = 0;
    while (!queue_.empty() && levels < bound) {
        const LinkId link = dequeue();
        ++levels;
        const double level_Bps = fitting_level(links_[link]);
        if (!is_same(level_Bps, links_[link].level_Bps)) {
            set_level(link, level_Bps);
        }
    }
    effort_.levels += levels;
    if (!queue_.empty()) {
        for (const Queued& left : queue_) {
            links_[left.link].queued = false;
        }
        queue_.clear();
        refill();
    }
    for (const BundleId id : touched_) {
        Bundle& bundle = bundles_[id];
        is_touched_[id] = false;
        if (bundle.count == 0) {
            continue;
        }
        const double rate_Bps = limit_without(bundle, static_cast<LinkId>(links_.size())); // without none
        if (rate_Bps != bundle.rate_Bps) {
            bundle.rate_Bps = rate_Bps;
            changed_.push_back(id);
        }
    }
    touched_.clear();
    return changed_;
}

/// Progressive filling of everything: the link of lowest fair share is full, its flows are fixed there, and so on.
void ExactSharing::refill() {
    ++effort_.refilled;
    struct Filling {
        double left_Bps;
        double open; // flows not yet fixed
    };
    std::vector<Filling> fillings(links_.size());
    std::vector<BundleId> open;
    for (std::size_t link = 0; link < links_.size(); ++link) {
        links_[link].level_Bps = unlimited;
        fillings[link] = {links_[link].capacity_Bps, 0.0};
    }
    for (BundleId id = 0; id < bundles_.size(); ++id) {
        if (bundles_[id].count > 0) {
            open.push_back(id);
            for (const Hop& hop : route(bundles_[id])) {
                fillings[hop.link].open += bundles_[id].count;
            }
        }
    }
    while (!open.empty()) {
        double lowest_Bps = unlimited;
        for (const BundleId id : open) {
            lowest_Bps = std::min(lowest_Bps, bundles_[id].cap_Bps);
            for (const Hop& hop : route(bundles_[id])) {
                lowest_Bps = std::min(lowest_Bps, fillings[hop.link].left_Bps / fillings[hop.link].open);
            }
        }
        for (std::size_t link = 0; link < links_.size(); ++link) {
            const Filling& filling = fillings[link];
            if (filling.open > 0.0 && filling.left_Bps / filling.open <= lowest_Bps * (1.0 + same_level)) {
                links_[link].level_Bps = lowest_Bps;
            }
        }
        std::erase_if(open, [&](BundleId id) {
            if (limit_without(bundles_[id], static_cast<LinkId>(links_.size())) > lowest_Bps) {
                return false;
            }
            for (const Hop& hop : route(bundles_[id])) {
                Filling& filling = fillings[hop.link];
                filling.left_Bps = std::max(0.0, filling.left_Bps - lowest_Bps * bundles_[id].count);
                filling.open -= bundles_[id].count;
            }
            return true;
        });
    }
    for (BundleId id = 0; id < bundles_.size(); ++id) {
        if (bundles_[id].count > 0) {
            touch(id);
            for (const Hop& hop : route(bundles_[id])) {
                links_[hop.link].members[hop.position].limit_Bps = limit_without(bundles_[id], hop.link);
            }
        }
    }
}

std::size_t ExactSharing::state_bytes() const noexcept {
    std::size_t bytes = links_.size() * sizeof(LinkState) + bundles_.capacity() * sizeof(Bundle) +
                        hops_.capacity() * sizeof(Hop) + queue_.capacity() * sizeof(Queued) +
                        (touched_.capacity() + changed_.capacity()) * sizeof(BundleId);
    for (const LinkState& link : links_) {
        bytes += link.members.capacity() * sizeof(Member);
    }
    return bytes;
}

} // namespace lepaute::net

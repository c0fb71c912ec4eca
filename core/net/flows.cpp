#include "net/flows.hpp"

#include <algorithm>
#include <functional>

namespace lepaute::net {

Flows::Flows(const std::vector<double>& capacity_Bps, std::uint32_t sources, Sharing sharing, Route route,
             bool on_plain_switch)
    : links_(capacity_Bps.size()), sources_(sources), lones_(sources), next_ends_(sources),
      on_plain_switch_(on_plain_switch), queue_(sources), unsettled_(sources), route_(std::move(route)) {
    if (sharing == Sharing::exact) {
        exact_.emplace(capacity_Bps);
    }
    for (std::size_t link = 0; link < links_.size(); ++link) {
        links_[link].capacity_Bps = capacity_Bps[link];
        links_[link].fair_share_Bps = capacity_Bps[link];
    }
}

void Flows::start(double date_s, std::uint32_t tag, double work_bytes, std::uint32_t source, std::uint32_t destination,
                  double cap_Bps) {
    if (start_lone(date_s, tag, work_bytes, source, destination, cap_Bps)) {
        return;
    }
    const std::uint32_t id = bundle_of(source, destination, cap_Bps, date_s);
    count(id, 1);
    share(id, date_s);
    Bundle& bundle = bundles_[id];
    const double served = bundle.served_bytes + bundle.rate_Bps * (date_s - bundle.served_s);
    add_end(bundle, {served + work_bytes, sequence_++, tag});
    bundle.stale = true;
    mark(source);
    settle();
}

bool Flows::start_lone(double date_s, std::uint32_t tag, double work_bytes, std::uint32_t source,
                       std::uint32_t destination, double cap_Bps) {
    Lone& lone = lones_[source];
    if (exact_ || lone.rate_Bps > 0.0 || !sources_[source].bundles.items().empty()) {
        return false;
    }
    const std::span<const LinkId> way = way_between(source, destination);
    Link& first = links_[way.front()];
    Link& last = links_[way.back()];
    if (way.size() > 2 || first.flows > 0 || last.flows > 0) {
        return false;
    }
    first.flows = last.flows = 1;
    first.lone_source = last.lone_source = source;
    lone = {.start_s = date_s,
            .work_bytes = work_bytes,
            .cap_Bps = cap_Bps,
            .sequence = sequence_++,
            .rate_Bps = std::min(std::min(cap_Bps, first.fair_share_Bps), last.fair_share_Bps),
            .end_links = {way.front(), way.back()},
            .destination = destination,
            .ends_of_route = static_cast<std::uint8_t>(way.size())};
    next_ends_[source] = {0, tag};
    queue_.set(source, date_s + work_bytes / lone.rate_Bps);
    return true;
}

void Flows::join_others(std::uint32_t source) {
    Lone& lone = lones_[source];
    const std::uint32_t id = free_bundle();
    Bundle& bundle = bundles_[id];
    bundle.cap_Bps = lone.cap_Bps;
    bundle.rate_Bps = lone.rate_Bps;
    bundle.served_bytes = 0.0;
    bundle.served_s = lone.start_s;
    bundle.next_end_s = queue_.date_s(source);
    bundle.stale = false;
    bundle.ends_of_route = lone.ends_of_route;
    bundle.end_links = lone.end_links;
    bundle.source = source;
    bundle.destination = lone.destination;
    bundle.flows = 1;
    bundle.first_end = {lone.work_bytes, lone.sequence, next_ends_[source].tag};
    next_ends_[source].bundle = id;
    enter(id);
    forget_lone(lone);
}

void Flows::forget_lone(Lone& lone) noexcept {
    lone.rate_Bps = 0.0;
    for (const LinkId link : lone.end_links) {
        links_[link].lone_source = nobody;
    }
}

std::uint32_t Flows::finish_next() {
    const std::uint32_t source = queue_.next_source();
    if (Lone& lone = lones_[source]; lone.rate_Bps > 0.0) {
        for (const LinkId link : lone.end_links) {
            links_[link].flows = 0;
        }
        forget_lone(lone);
        queue_.set(source, never);
        return next_ends_[source].tag;
    }
    const std::uint32_t id = next_ends_[source].bundle;
    const double date_s = queue_.next_date_s();
    Bundle& bundle = bundles_[id];
    const End end = bundle.first_end;
    remove_first_end(bundle);
    bundle.served_bytes = end.served_bytes; // exactly, whatever rounding the date had
    bundle.served_s = date_s;
    bundle.stale = true;
    count(id, -1);
    if (bundle.flows == 0) {
        sources_[source].bundles.forget(id);
        for (const LinkId link : bundle.route()) {
            links_[link].bundles.forget(id);
        }
        if (!exact_) {
            free_bundles_.push_back(id);
        }
    }
    share(id, date_s);
    mark(source);
    settle();
    return end.tag;
}

std::size_t Flows::state_bytes() const noexcept {
    std::size_t bytes = links_.size() * sizeof(Link) + sources_.size() * (sizeof(Source) + sizeof(Lone));
    for (const Link& link : links_) {
        bytes += link.bundles.heap_bytes();
    }
    for (const Source& source : sources_) {
        bytes += source.bundles.heap_bytes();
    }
    for (const Bundle& bundle : bundles_) {
        bytes +=
            sizeof(Bundle) + bundle.further_ends.capacity() * sizeof(End) + bundle.links.capacity() * sizeof(LinkId);
    }
    return bytes + (exact_ ? exact_->state_bytes() : 0);
}

std::uint32_t Flows::bundle_of(std::uint32_t source, std::uint32_t destination, double cap_Bps, double date_s) {
    if (lones_[source].rate_Bps > 0.0) {
        join_others(source);
    }
    for (const std::uint32_t id : sources_[source].bundles.items()) {
        if (bundles_[id].destination == destination && bundles_[id].cap_Bps == cap_Bps) {
            return id;
        }
    }
    const std::uint32_t id = new_bundle(source, destination, cap_Bps);
    Bundle& bundle = bundles_[id];
    bundle.rate_Bps = 0.0;
    bundle.served_bytes = 0.0;
    bundle.served_s = date_s;
    enter(id);
    return id;
}

/// The bundle begins to flow: after lone flows that it meets.
void Flows::enter(std::uint32_t id) {
    sources_[bundles_[id].source].bundles.push_back(id);
    for (const LinkId link : bundles_[id].route()) {
        links_[link].bundles.push_back(id);
    }
}

std::uint32_t Flows::free_bundle() {
    if (free_bundles_.empty()) {
        bundles_.emplace_back();
        return static_cast<std::uint32_t>(bundles_.size() - 1);
    }
    const std::uint32_t id = free_bundles_.back();
    free_bundles_.pop_back();
    return id;
}

std::uint32_t Flows::new_bundle(std::uint32_t source, std::uint32_t destination, double cap_Bps) {
    const Key key{std::uint64_t{source} << 32U | destination, cap_Bps};
    if (exact_) {
        if (const auto known = exact_bundles_.find(key); known != exact_bundles_.end()) {
            return known->second;
        }
    }
    const std::span<const LinkId> way = way_between(source, destination);
    for (const LinkId link : way) {
        if (links_[link].lone_source != nobody) {
            join_others(links_[link].lone_source);
        }
    }
    const std::uint32_t id = free_bundle();
    Bundle& bundle = bundles_[id];
    bundle.cap_Bps = cap_Bps;
    bundle.source = source;
    bundle.destination = destination;
    bundle.end_links = {way.front(), way.back()};
    bundle.ends_of_route = way.size() > 2 ? 0 : static_cast<std::uint8_t>(way.size());
    if (way.size() > 2) {
        bundle.links.assign(way.begin(), way.end());
    }
    if (exact_) {
        exact_->add_bundle(way, cap_Bps); // gets the same number: none is ever given back
        exact_bundles_.emplace(key, id);
    }
    return id;
}

/// Of a flow that has been counted.
void Flows::add_end(Bundle& bundle, End end) {
    if (bundle.flows == 1) {
        bundle.first_end = end;
        return;
    }
    if (bundle.first_end > end) {
        std::swap(bundle.first_end, end);
    }
    bundle.further_ends.push_back(end);
    std::push_heap(bundle.further_ends.begin(), bundle.further_ends.end(), std::greater<>());
}

void Flows::remove_first_end(Bundle& bundle) noexcept {
    if (bundle.flows > 1) {
        bundle.first_end = bundle.further_ends.front();
        std::pop_heap(bundle.further_ends.begin(), bundle.further_ends.end(), std::greater<>());
        bundle.further_ends.pop_back();
    }
}

void Flows::count(std::uint32_t id, std::int32_t more) {
    bundles_[id].flows += static_cast<std::uint32_t>(more);
    for (const LinkId which : bundles_[id].route()) {
        Link& link = links_[which];
        link.flows += static_cast<std::uint32_t>(more);
        link.fair_share_Bps = link.flows > 1 ? link.capacity_Bps / link.flows : link.capacity_Bps;
    }
    if (exact_) {
        exact_->set_count(id, bundles_[id].flows);
    }
}

void Flows::share(std::uint32_t id, double date_s) {
    if (exact_) {
        for (const std::uint32_t changed : exact_->settle()) {
            set_rate(bundles_[changed], exact_->rate(changed), date_s);
        }
        return;
    }
    for (const LinkId which : bundles_[id].route()) {
        for (const std::uint32_t other : links_[which].bundles.items()) {
            Bundle& bundle = bundles_[other];
            double rate_Bps = std::min({bundle.cap_Bps, links_[bundle.end_links[0]].fair_share_Bps,
                                        links_[bundle.end_links[1]].fair_share_Bps});
            if (bundle.ends_of_route == 0) {
                for (const LinkId link : bundle.links) {
                    rate_Bps = std::min(rate_Bps, links_[link].fair_share_Bps);
                }
            }
            set_rate(bundle, rate_Bps, date_s);
        }
    }
}

void Flows::set_rate(Bundle& bundle, double rate_Bps, double date_s) {
    if (rate_Bps == bundle.rate_Bps) {
        return;
    }
    bundle.served_bytes += bundle.rate_Bps * (date_s - bundle.served_s);
    bundle.served_s = date_s;
    bundle.rate_Bps = rate_Bps;
    bundle.stale = true;
    mark(bundle.source);
}

void Flows::mark(std::uint32_t source) {
    if (!sources_[source].unsettled) {
        sources_[source].unsettled = true;
        unsettled_[unsettled_count_++] = source;
    }
}

void Flows::settle() {
    for (const std::uint32_t which : std::span(unsettled_).first(unsettled_count_)) {
        Source& source = sources_[which];
        source.unsettled = false;
        double next_s = never;
        for (const std::uint32_t id : source.bundles.items()) {
            Bundle& bundle = bundles_[id];
            if (bundle.stale) {
                bundle.stale = false;
                bundle.next_end_s =
                    bundle.served_s + (bundle.first_end.served_bytes - bundle.served_bytes) / bundle.rate_Bps;
            }
            if (bundle.next_end_s < next_s) {
                next_s = bundle.next_end_s;
                next_ends_[which] = {id, bundle.first_end.tag};
            }
        }
        if (next_s != queue_.date_s(which)) {
            queue_.set(which, next_s);
        }
    }
    unsettled_count_ = 0;
}

} // namespace lepaute::net

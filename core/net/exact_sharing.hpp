#pragma once
// Max-min fair sharing kept exact while flows come and go.
//
// Flows of equal route and cap form a bundle. Every link has a level: the rate that no flow on it exceeds, infinite
// where the link is not full. A flow's rate is the least of its cap and the levels on its route, and the levels are
// max-min fair exactly if each fits the others: the flows of a link, each held by what its cap and its other links
// allow, fill it up to its level. So after a change only links whose own inputs changed are computed again, until
// nothing moves. That this ends: no level ever lies below the lowest fair share of all; so the links that have it
// settle at once, then, with their flows as good as fixed, those of the next share, and so on (the argument of A.
// Charny, D. Clark, R. Jain, "Congestion control with explicit rate indication", ICC 1995). Should it take too long,
// the whole is filled anew.

#include "net/links.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lepaute::net {

/// Rates of bundles of flows on shared links; values only, no time.
class ExactSharing {
public:
    using BundleId = std::uint32_t;

    /// capacity_Bps: one per link, > 0. patience: how many computations of a link's level, per link with flows, a
    /// change may take before all is filled anew.
    explicit ExactSharing(std::span<const double> capacity_Bps, double patience = 50.0);

    /// A bundle of flows, none yet, that cross each link of `route` once and never exceed cap_Bps > 0 each.
    BundleId add_bundle(std::span<const LinkId> route, double cap_Bps);
    /// The bundle has `count` flows from now on. Rates are valid again after settle().
    void set_count(BundleId bundle, std::uint32_t count);
    /// Brings the rates up to date. Returns the bundles with flows whose rate per flow is another one now (new ones
    /// among them), in an order that depends on the calls alone; valid until the next settle().
    std::span<const BundleId> settle();

    /// Bytes/s of each flow of the bundle; 0 while it has none.
    [[nodiscard]] double rate(BundleId bundle) const noexcept { return bundles_[bundle].rate_Bps; }
    [[nodiscard]] std::size_t state_bytes() const noexcept;

    struct Effort {
        std::uint64_t levels = 0;   // computations of a link's level
        std::uint64_t refilled = 0; // settlements that filled all anew
    };
    [[nodiscard]] const Effort& effort() const noexcept { return effort_; }

private:
    /// A bundle with flows, as one of its links sees it.
    struct Member {
        double count;
        double limit_Bps; // least of its cap and the levels of its other links
        double cap_Bps;
        BundleId bundle;
        std::uint32_t hop;           // index into hops_
        LinkId peer;                 // the other link of a route of two; no_link for other routes
        std::uint32_t peer_position; // in the members of that link
    };
    struct LinkState {
        double capacity_Bps;
        double level_Bps;
        bool queued = false;
        std::vector<Member> members;
    };
    struct Hop {
        LinkId link;
        std::uint32_t position; // in the members of the link, while the bundle has flows
    };
    struct Bundle {
        double cap_Bps = 0.0;
        double rate_Bps = 0.0;
        std::uint32_t first_hop = 0;
        std::uint32_t hop_count = 0;
        std::uint32_t count = 0;
    };
    static constexpr LinkId no_link = 0xFFFFFFFFU;

    [[nodiscard]] std::span<Hop> route(const Bundle& bundle) noexcept {
        return {hops_.data() + bundle.first_hop, bundle.hop_count};
    }
    [[nodiscard]] double limit_without(const Bundle& bundle, LinkId link) noexcept;
    [[nodiscard]] static double fitting_level(const LinkState& link) noexcept;
    void join(BundleId id);
    void leave(BundleId id);
    void touch(BundleId id);
    void enqueue(LinkState& state, LinkId link);
    LinkId dequeue();
    void limit_changes(LinkId link, std::uint32_t position, double limit_Bps);
    void set_level(LinkId link, double level_Bps);
    void refill();

    std::vector<LinkState> links_;
    std::vector<Bundle> bundles_;
    std::vector<Hop> hops_;
    struct Queued {
        double level_Bps;
        LinkId link;
    };
    std::vector<Queued> queue_;     // links whose inputs have changed, in no order
    std::vector<BundleId> touched_; // whose rates may have changed
    std::vector<bool> is_touched_;
    std::vector<BundleId> changed_;
    std::size_t busy_links_ = 0;
    double patience_;
    Effort effort_;
};

} // namespace lepaute::net

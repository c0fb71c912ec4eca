#pragma once
// Flows in progress over shared links: who transfers how much, and which one ends next. Flows of one pair of nodes and
// one cap always have the same rate: a bundle has one counter of bytes served to each of its flows, and a flow ends
// when the counter reaches what it was at its start plus the size of the flow. A change of one flow therefore costs in
// the number of bundles that it touches, not in the number of flows.

#include "net/event_queue.hpp"
#include "net/exact_sharing.hpp"
#include "net/fetch.hpp"
#include "net/large_pages.hpp"
#include "net/short_list.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace lepaute::net {

/// How the rate of a bundle follows from the links it crosses.
enum class Sharing : std::uint8_t {
    fair, // capacity of each link divided by its flows, the least of them: never more than max-min fair, and local
    exact // max-min fair
};

class Flows {
public:
    static constexpr double never = EventQueue::never;

    /// Appends the links that a flow from a source to a destination crosses.
    using Route = std::function<void(std::uint32_t source, std::uint32_t destination, std::vector<LinkId>& links)>;

    /// sources: ends are told by these, 0 .. sources - 1. on_plain_switch: ways are `source`, `sources` + destination.
    Flows(const std::vector<double>& capacity_Bps, std::uint32_t sources, Sharing sharing, Route route,
          bool on_plain_switch = false);

    /// A flow of `work_bytes` > 0 starts at `date_s`; `tag` comes back when it ends. Dates never decrease.
    void start(double date_s, std::uint32_t tag, double work_bytes, std::uint32_t source, std::uint32_t destination,
               double cap_Bps);
    /// When the next flow ends if nothing else starts; `never` when none flows.
    [[nodiscard]] double next_end_s() const noexcept { return queue_.next_date_s(); }
    /// Its tag; one must flow.
    [[nodiscard]] std::uint32_t next_tag() const noexcept { return next_ends_[queue_.next_source()].tag; }
    /// Of the one that ends after it, if nothing else happens; any number without one. What its end touches is fetched.
    [[nodiscard]] std::uint32_t fetch_after_next() const noexcept {
        const std::uint32_t source =
            std::min(queue_.source_after_next(), static_cast<std::uint32_t>(sources_.size() - 1));
        fetch_source(source);
        const NextEnd next = next_ends_[source];
        fetch(bundles_.data() + next.bundle, sizeof(Bundle));
        return next.tag;
    }
    /// Wishes, without effect on anything but time: the memory of flows from a node, and over a link.
    void fetch_source(std::uint32_t source) const noexcept {
        fetch(&sources_[source], sizeof(Source));
        fetch(&lones_[source], sizeof(Lone));
        queue_.fetch(source);
    }
    void fetch_link(LinkId link) const noexcept { fetch(&links_[link], sizeof(Link)); }
    /// A flow that is none of these is between two nodes for `seconds` from now on: what it takes of its links, those
    /// on them lose. settle() is called after the last of them.
    void take(std::uint32_t source, std::uint32_t destination, double seconds);
    void settle();
    /// Ends that flow, at its date; returns its tag.
    std::uint32_t finish_next();
    [[nodiscard]] std::uint32_t on_link(LinkId link) const noexcept { return links_[link].flows; }
    [[nodiscard]] std::size_t state_bytes() const noexcept;

private:
    struct End {
        double served_bytes; // of the bundle, when the flow ends
        std::uint64_t sequence;
        std::uint32_t tag;
        bool operator>(const End& other) const noexcept {
            return served_bytes != other.served_bytes ? served_bytes > other.served_bytes : sequence > other.sequence;
        }
    };
    struct alignas(64) Bundle { // what others change of it in its first cache line
        double cap_Bps = 0.0;
        double rate_Bps = 0.0;
        double served_bytes = 0.0; // to each flow, at served_s
        double served_s = 0.0;
        double next_end_s = never; // of its flows; to be found anew when it is stale
        bool stale = true;
        std::uint8_t ends_of_route = 0;    // how many links it crosses, where these are its ends; else 0: see `links`
        std::array<LinkId, 2> end_links{}; // both ends of its route: all of it on a plain switch
        std::uint32_t source = 0;
        std::uint32_t destination = 0;
        std::uint32_t flows = 0;
        End first_end{};               // a bundle without flows is free
        std::vector<End> further_ends; // a heap, the first of them at the front
        std::vector<LinkId> links;     // of longer routes
        [[nodiscard]] std::span<const LinkId> route() const noexcept {
            return ends_of_route > 0 ? std::span<const LinkId>(end_links.data(), ends_of_route) : links;
        }
    };
    struct alignas(64) Link {
        double capacity_Bps = 0.0;
        double fair_share_Bps = 0.0;
        std::uint32_t flows = 0;
        std::uint32_t lone_source = nobody; // of the lone flow that crosses it
        ShortList<7> bundles;               // that cross it and flow
    };
    /// The only flow of a source, and the only one on the links of its way: until another one meets it, its end is
    /// known, and it needs no bundle.
    struct alignas(64) Lone {
        double start_s = 0.0;
        double work_bytes = 0.0;
        double cap_Bps = 0.0;
        std::uint64_t sequence = 0;
        double rate_Bps = 0.0; // 0: there is none
        std::array<LinkId, 2> end_links{};
        std::uint32_t destination = 0;
        std::uint8_t ends_of_route = 0;
    };
    struct alignas(64) Source {
        bool unsettled = false;
        ShortList<10> bundles; // that flow
    };

    struct NextEnd { // of the flows of a source; apart from it, since all of them stay in the caches
        std::uint32_t bundle = 0;
        std::uint32_t tag = 0;
    };

    static constexpr std::uint32_t nobody = ~std::uint32_t{0};

    /// The links between a source and a destination, until it is asked again.
    [[nodiscard]] std::span<const LinkId> way_between(std::uint32_t source, std::uint32_t destination) {
        if (on_plain_switch_ && source != destination) { // the most frequent
            ends_of_way_ = {source, static_cast<LinkId>(sources_.size()) + destination};
            return ends_of_way_;
        }
        way_.clear();
        route_(source, destination, way_);
        return way_;
    }

    /// False where the flow is not alone.
    bool start_lone(double date_s, std::uint32_t tag, double work_bytes, std::uint32_t source,
                    std::uint32_t destination, double cap_Bps);
    /// Gives the lone flow of `source` a bundle.
    void join_others(std::uint32_t source);
    void forget_lone(Lone& lone) noexcept;
    std::uint32_t bundle_of(std::uint32_t source, std::uint32_t destination, double cap_Bps, double date_s);
    std::uint32_t new_bundle(std::uint32_t source, std::uint32_t destination, double cap_Bps);
    std::uint32_t free_bundle();
    void enter(std::uint32_t id);
    static void add_end(Bundle& bundle, End end);
    static void remove_first_end(Bundle& bundle) noexcept;
    void count(std::uint32_t id, std::int32_t more);
    void share(std::uint32_t id, double date_s);
    void set_rate(Bundle& bundle, double rate_Bps, double date_s);
    void mark(std::uint32_t source);

    std::vector<Link, LargePages<Link>> links_;
    std::vector<Source, LargePages<Source>> sources_;
    std::vector<Lone, LargePages<Lone>> lones_; // by source
    std::vector<NextEnd> next_ends_;            // by source
    std::vector<Bundle, LargePages<Bundle>> bundles_;
    std::vector<LinkId> way_;             // of way_between()
    std::array<LinkId, 2> ends_of_way_{}; // the same, on a plain switch
    bool on_plain_switch_;
    std::vector<std::uint32_t> free_bundles_;
    EventQueue queue_;                     // of the sources
    std::vector<std::uint32_t> unsettled_; // the first of these: sources whose next end must be found anew
    std::size_t unsettled_count_ = 0;
    std::uint64_t sequence_ = 0;
    Route route_;
    /// With exact sharing, a bundle keeps its number when it has no flows.
    std::optional<ExactSharing> exact_;
    struct Key {
        std::uint64_t nodes;
        double cap_Bps;
        bool operator==(const Key&) const = default;
    };
    struct KeyHash {
        std::size_t operator()(const Key& key) const noexcept {
            return std::hash<std::uint64_t>{}(key.nodes * 0x9E3779B97F4A7C15U) ^ std::hash<double>{}(key.cap_Bps);
        }
    };
    std::unordered_map<Key, std::uint32_t, KeyHash> exact_bundles_;
};

} // namespace lepaute::net

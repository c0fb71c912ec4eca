#include "fit/group_medians.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <numeric>

namespace lepaute::fit {

namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

/// The streams of each group, group after group.
struct Members {
    std::vector<std::size_t> begin; ///< of each group, and the end of the last
    std::vector<std::size_t> streams;
};

Members members_of(std::span<const std::int64_t> group, std::size_t groups) {
    Members found{std::vector<std::size_t>(groups + 1, 0), {}};
    for (std::size_t stream = 0; stream < group.size(); ++stream) {
        if (group[stream] >= 0) {
            ++found.begin[static_cast<std::size_t>(group[stream]) + 1];
            found.streams.push_back(stream);
        }
    }
    std::partial_sum(found.begin.begin(), found.begin.end(), found.begin.begin());
    std::ranges::stable_sort(found.streams, {}, [&](std::size_t stream) { return group[stream]; });
    return found;
}

double between(std::span<const double> ranked, std::size_t low, std::size_t high) {
    return (ranked[low] + ranked[high]) / 2;
}

/// What is said of a group on a day: its streams with a value, in the order of these, and those without.
void add_group(std::span<const double> ranked, std::span<const std::size_t> known, std::span<const std::size_t> unknown,
               std::size_t fewest, double& whole, std::span<double> others) {
    const std::size_t count = ranked.size();
    const double middle = count > 0 ? between(ranked, (count - 1) / 2, count / 2) : nothing;
    whole = count > fewest ? middle : nothing;
    for (const std::size_t stream : unknown) {
        others[stream] = count >= fewest ? middle : nothing;
    }
    if (count <= fewest) {
        return; // too few others
    }
    // among the others: what has a higher rank than the stream moves down by one
    const std::size_t low = (count - 2) / 2;
    const std::size_t high = (count - 1) / 2;
    for (std::size_t rank = 0; rank < count; ++rank) {
        others[known[rank]] = between(ranked, low + (rank <= low ? 1 : 0), high + (rank <= high ? 1 : 0));
    }
}

} // namespace

GroupMedians group_medians(std::span<const double> values, std::span<const std::int64_t> group,
                           std::span<const std::int64_t> order, std::size_t groups, std::size_t fewest) {
    const std::size_t streams = group.size();
    const std::size_t days = streams > 0 ? values.size() / streams : 0;
    const Members members = members_of(group, groups);
    GroupMedians found{std::vector<double>(days * groups, nothing), std::vector<double>(days * streams, nothing)};
    std::vector<double> ranked(members.streams.size());
    std::vector<std::size_t> known(members.streams.size());
    std::vector<std::size_t> unknown;
    std::vector<std::size_t> end(groups);
    for (std::size_t day = 0; day < days; ++day) {
        const std::span<const double> today = values.subspan(day * streams, streams);
        std::copy(members.begin.begin(), members.begin.end() - 1, end.begin());
        const auto place = [&](std::size_t stream) {
            if (group[stream] >= 0 && !std::isnan(today[stream])) {
                known[end[static_cast<std::size_t>(group[stream])]++] = stream;
            }
        };
        if (order.empty()) {
            std::for_each(members.streams.begin(), members.streams.end(), place);
        } else {
            for (const std::int64_t stream : order.subspan(day * streams, streams)) {
                place(static_cast<std::size_t>(stream));
            }
        }
        for (std::size_t number = 0; number < groups; ++number) {
            const std::size_t begin = members.begin[number];
            const std::span<std::size_t> here(known.data() + begin, end[number] - begin);
            if (order.empty()) {
                std::sort(here.begin(), here.end(), [&](std::size_t a, std::size_t b) { return today[a] < today[b]; });
            }
            std::transform(here.begin(), here.end(), ranked.data() + begin,
                           [&](std::size_t each) { return today[each]; });
            unknown.clear();
            std::copy_if(members.streams.data() + begin, members.streams.data() + members.begin[number + 1],
                         std::back_inserter(unknown), [&](std::size_t each) { return std::isnan(today[each]); });
            add_group({ranked.data() + begin, here.size()}, here, unknown, fewest, found.whole[day * groups + number],
                      std::span(found.others).subspan(day * streams, streams));
        }
    }
    return found;
}

} // namespace lepaute::fit

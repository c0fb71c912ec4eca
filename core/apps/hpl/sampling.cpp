#include "apps/hpl/sampling.hpp"

#include "apps/hpl/parameters.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

namespace lepaute::hpl {

namespace {

// Chosen by the sets `chosen` of validation/sampling_error.py.
constexpr std::int64_t head_steps = 8;
constexpr std::int64_t tail_steps = 16; // at least
constexpr std::int64_t window_steps = 8;
constexpr std::int64_t least_leaps = 6;    // of q steps; with fewer, windows would not be spread over the run
constexpr std::int64_t largest_split = 96; // longer side of the grid up to which there are further windows
constexpr double certain_relative = 0.002; // root of the sum of the squares of the relative changes

/// At most so many steps are simulated: some rounds of the longer side of the grid, since stalls come once a round.
std::int64_t most_wanted(std::int64_t p, std::int64_t q) {
    return std::clamp<std::int64_t>(64 + 3 * std::max(p, q), 128, 320);
}

/// And at first: half of the windows.
std::int64_t wanted_steps(std::int64_t p, std::int64_t q) {
    const std::int64_t longer = std::max(p, q);
    return longer > largest_split ? most_wanted(p, q) : std::max<std::int64_t>(96, 48 + 3 * longer / 2);
}

void append(std::vector<std::int64_t>& steps, std::int64_t begin, std::int64_t end) {
    for (std::int64_t step = begin; step < end; ++step) {
        steps.push_back(step);
    }
}

/// Which part of the run lies before the part `share` of the windows: more of them at the beginning: long steps.
double placed(double share) { return 0.5 * (share + 1.0 - std::sqrt(1.0 - share)); }

/// Factors >= 0 of the terms that make relative deviations from the times smallest (least squares); none where no time
/// has passed. terms: by term and window.
std::optional<std::array<double, 3>> fitted(const std::array<std::vector<double>, 3>& terms,
                                            const std::vector<double>& times_s) {
    std::array<std::array<double, 3>, 3> products{}; // of terms over times
    std::array<double, 3> sums{};
    for (std::size_t window = 0; window < times_s.size(); ++window) {
        if (!(times_s[window] > 0.0)) {
            return std::nullopt;
        }
        for (std::size_t i = 0; i < 3; ++i) {
            const double one = terms[i][window] / times_s[window];
            sums[i] += one;
            for (std::size_t j = 0; j < 3; ++j) {
                products[i][j] += one * terms[j][window] / times_s[window];
            }
        }
    }
    // With three terms the best non-negative factors are the best of those subsets whose own best are not negative.
    std::optional<std::array<double, 3>> best;
    double most = 0.0; // the more, the smaller the deviations
    for (unsigned subset = 1; subset < 8; ++subset) {
        std::array<std::array<double, 4>, 3> rows{};
        for (std::size_t i = 0; i < 3; ++i) {
            for (std::size_t j = 0; j < 3; ++j) {
                const bool both = ((subset >> i) & (subset >> j) & 1U) != 0;
                rows[i][j] = both ? products[i][j] / std::sqrt(products[i][i] * products[j][j]) : i == j ? 1.0 : 0.0;
            }
            rows[i][3] = ((subset >> i) & 1U) != 0 ? sums[i] / std::sqrt(products[i][i]) : 0.0;
        }
        bool singular = false;
        for (std::size_t pivot = 0; pivot < 3; ++pivot) { // symmetric and positive: no exchange of rows
            singular = singular || rows[pivot][pivot] < 1e-9;
            for (std::size_t i = 0; i < 3 && !singular; ++i) {
                const double factor = i == pivot ? 0.0 : rows[i][pivot] / rows[pivot][pivot];
                for (std::size_t j = 0; j < 4; ++j) {
                    rows[i][j] -= factor * rows[pivot][j];
                }
            }
        }
        if (singular) {
            continue;
        }
        std::array<double, 3> factors{};
        double explained = 0.0;
        for (std::size_t i = 0; i < 3; ++i) {
            factors[i] = rows[i][3] / rows[i][i] / std::sqrt(products[i][i]);
            explained += factors[i] * sums[i];
        }
        if (*std::ranges::min_element(factors) >= 0.0 && explained > most) {
            most = explained;
            best = factors;
        }
    }
    return best;
}

/// Between the centres of windows by straight lines, beyond them as at the last: adds what each step counts for.
/// without: a window to leave out; onward: before the first centre the first line goes on.
std::vector<double> interpolated(const std::vector<double>& centres, std::int64_t from, std::int64_t to,
                                 const std::vector<double>& of_step, std::optional<std::size_t> without = {},
                                 bool onward = false) {
    std::vector<std::size_t> used;
    for (std::size_t window = 0; window < centres.size(); ++window) {
        if (window != without) {
            used.push_back(window);
        }
    }
    std::ranges::sort(used, {}, [&](std::size_t window) { return centres[window]; });
    std::vector<double> weights(centres.size(), 0.0);
    std::size_t next = 0; // the first whose centre is not before the step
    for (std::int64_t step = from; step < to; ++step) {
        const auto at = static_cast<double>(step);
        while (next < used.size() && centres[used[next]] < at) {
            ++next;
        }
        const double counts = of_step[static_cast<std::size_t>(step)];
        const std::size_t high = onward && next == 0 && used.size() > 1 ? 1 : next;
        if (high == 0 || high == used.size()) {
            weights[used[high == 0 ? 0 : high - 1]] += counts;
            continue;
        }
        const double low = centres[used[high - 1]];
        const double share = (at - low) / (centres[used[high]] - low);
        weights[used[high - 1]] += (1.0 - share) * counts;
        weights[used[high]] += share * counts;
    }
    return weights;
}

/// About `wanted` steps, a multiple of q, in windows no shorter than the first ones, half-way between these. Shorter
/// ones are too fast: what ranks have sent has been received when they begin. None where there is no room.
std::vector<Sample::Window> further_windows(const Sample& sample, std::int64_t wanted, std::int64_t q) {
    if (wanted <= 0) {
        return {};
    }
    const auto gaps = static_cast<std::int64_t>(sample.spans.size() - Sample::first_window) - 1;
    std::int64_t number = (wanted + q / 2) / q * q;
    while (number < window_steps) {
        number += q;
    }
    const std::int64_t count = std::min(number / window_steps, gaps);
    for (std::int64_t earlier = 0; earlier < gaps; ++earlier) { // than spread evenly over the gaps
        std::vector<Sample::Window> result;
        auto index = static_cast<std::int64_t>(sample.spans[Sample::tail].begin);
        for (std::int64_t gap = 0; gap < gaps; ++gap) {
            const auto i = static_cast<std::int64_t>(result.size());
            if (i == count || gap < (2 * i + 1) * gaps / (2 * count) - earlier) {
                continue;
            }
            const auto span = sample.spans.begin() + Sample::first_window + gap;
            const std::int64_t from = sample.steps[span->end - 1] + 1;
            const std::int64_t to = sample.steps[(span + 1)->begin];
            const std::int64_t length = number * (i + 1) / count - number * i / count;
            const std::int64_t first = (from + to - length) / 2;
            const std::int64_t begin = index + (first - index + q / 2) / q * q; // the same process column comes next
            if (begin >= from && begin + length <= to) {
                result.push_back({begin, length});
                index += length;
            }
        }
        if (std::ssize(result) == count) {
            return result;
        }
    }
    return {};
}

} // namespace

Sample whole(std::int64_t steps) {
    Sample sample;
    append(sample.steps, 0, steps);
    return sample;
}

Sample trial(std::int64_t steps, std::int64_t multiple, std::int64_t head, std::int64_t count) {
    if (head + count >= steps) {
        return whole(steps);
    }
    Sample sample;
    const std::int64_t places = count < 6 ? 1 : 3;
    append(sample.steps, 0, head);
    for (std::int64_t place = 0; place < places; ++place) {
        const std::int64_t length = count * (place + 1) / places - count * place / places;
        const std::int64_t centre = (2 * place + 1) * steps / (2 * places);
        const std::int64_t next = sample.steps.back() + 1;
        const std::int64_t gap = std::max<std::int64_t>(0, centre - length / 2 - next) / multiple * multiple;
        append(sample.steps, next + gap, std::min(steps, next + gap + length));
    }
    return sample;
}

Sample sampled(std::int64_t steps, std::int64_t p, std::int64_t q, std::int64_t least_head) {
    const std::int64_t head = std::max(head_steps, least_head);
    const std::int64_t wanted = wanted_steps(p, q);
    const std::int64_t leaps = std::max<std::int64_t>(0, steps - wanted + q / 2) / q; // of q steps each
    const std::int64_t simulated = steps - leaps * q;
    const std::int64_t count = (simulated - head - tail_steps) / window_steps;
    if (2 * std::max(simulated, most_wanted(p, q)) > steps || leaps < least_leaps) {
        return whole(steps);
    }
    Sample sample;
    std::int64_t leapt = 0;
    const auto simulate = [&](std::int64_t number) {
        const std::size_t begin = sample.steps.size();
        const std::int64_t first = static_cast<std::int64_t>(begin) + leapt * q;
        append(sample.steps, first, first + number);
        return begin;
    };
    simulate(head);
    sample.spans = {{0, static_cast<std::size_t>(head)}, {}};
    const std::int64_t tail = simulated - head - count * window_steps;
    for (std::int64_t i = 0; i < count; ++i) {
        const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
        const double middle = placed(share) * static_cast<double>(steps - head - tail) + static_cast<double>(head);
        const double first = middle - 0.5 * window_steps - static_cast<double>(sample.steps.size());
        leapt = std::clamp<std::int64_t>(std::llround(first / static_cast<double>(q)), leapt, leaps - 1);
        const std::size_t begin = simulate(window_steps);
        sample.spans.push_back({begin, begin + window_steps});
    }
    leapt = leaps;
    const std::size_t last = simulate(tail);
    sample.spans[Sample::tail] = {last, sample.steps.size()};
    sample.spans.push_back({last, last + static_cast<std::size_t>(tail) / 2}); // the end of the matrix is not typical
    if (std::max(p, q) <= largest_split) {
        sample.further = further_windows(sample, most_wanted(p, q) - simulated, q);
    }
    return sample;
}

Sample extended(Sample sample) {
    const Span tail = sample.spans[Sample::tail];
    std::vector<std::int64_t> steps;
    std::vector<Span> windows;
    for (const Sample::Window& window : sample.further) {
        const std::size_t begin = tail.begin + steps.size();
        append(steps, window.begin, window.begin + window.length);
        windows.push_back({begin, tail.begin + steps.size()});
    }
    for (Span& span : sample.spans) {
        if (span.begin >= tail.begin) {
            span.begin += steps.size();
            span.end += steps.size();
        }
    }
    sample.steps.insert(sample.steps.begin() + static_cast<std::ptrdiff_t>(tail.begin), steps.begin(), steps.end());
    sample.spans.insert(sample.spans.end(), windows.begin(), windows.end());
    sample.further.clear();
    return sample;
}

StepTerms step_terms(std::int64_t n, std::int64_t nb, std::int64_t p, std::int64_t q) {
    StepTerms terms;
    for (std::int64_t start = 0; start < n; start += nb) {
        const auto rows = static_cast<double>(local_count(n - start, nb, 0, p)); // the owner has the most
        const auto columns = static_cast<double>(local_count(n - start, nb, 0, q));
        terms[0].push_back(rows * columns);
        terms[1].push_back(rows);
        terms[2].push_back(1.0);
    }
    return terms;
}

Extrapolation extrapolated(const Sample& sample, const StepTerms& terms, const std::vector<double>& began_s) {
    std::vector<double> centres;
    std::vector<double> times_s; // of a step
    std::array<std::vector<double>, 3> means;
    std::vector<double> lengths;
    for (std::size_t span = Sample::first_window; span < sample.spans.size(); ++span) {
        const Span window = sample.spans[span];
        const auto count = static_cast<double>(window.end - window.begin);
        lengths.push_back(count);
        centres.push_back(0.5 * static_cast<double>(sample.steps[window.begin] + sample.steps[window.end - 1]));
        times_s.push_back((began_s[window.end] - began_s[window.begin]) / count);
        for (std::size_t term = 0; term < terms.size(); ++term) {
            double sum = 0.0;
            for (std::size_t index = window.begin; index < window.end; ++index) {
                sum += terms[term][static_cast<std::size_t>(sample.steps[index])];
            }
            means[term].push_back(sum / count);
        }
    }
    const std::size_t steps = terms[0].size();
    const std::vector<double> ones(steps, 1.0);
    std::vector<double> fit = ones;
    std::vector<double> fit_of_window(centres.size(), 1.0);
    if (const auto factors = fitted(means, times_s)) {
        const auto sum = [&](const std::array<std::vector<double>, 3>& of, std::size_t at) {
            return (*factors)[0] * of[0][at] + (*factors)[1] * of[1][at] + (*factors)[2] * of[2][at];
        };
        for (std::size_t step = 0; step < steps; ++step) {
            fit[step] = sum(terms, step);
        }
        for (std::size_t window = 0; window < centres.size(); ++window) {
            fit_of_window[window] = sum(means, window);
        }
    }
    const std::int64_t from = sample.steps[sample.spans[Sample::head].end - 1] + 1;
    const std::int64_t to = sample.steps[sample.spans[Sample::tail].begin];
    Extrapolation result{.weights = {1.0, 1.0}, .counts = {1.0, 1.0}, .changes_s = {}};
    const std::vector<double> weights = interpolated(centres, from, to, fit);
    const std::vector<double> counts = interpolated(centres, from, to, ones, {}, true);
    for (std::size_t window = 0; window < centres.size(); ++window) {
        result.weights.push_back(weights[window] / fit_of_window[window] / lengths[window]);
        result.counts.push_back(counts[window] / lengths[window]);
    }
    for (std::size_t without = 0; without < centres.size(); ++without) {
        const std::vector<double> others = interpolated(centres, from, to, fit, without);
        double change_s = 0.0;
        for (std::size_t window = 0; window < centres.size(); ++window) {
            change_s += (others[window] - weights[window]) / fit_of_window[window] * times_s[window];
        }
        result.changes_s.push_back(change_s);
    }
    return result;
}

bool uncertain(const Sample& sample, const StepTerms& terms, const std::vector<double>& began_s) {
    Sample before = sample;
    before.spans.pop_back(); // the window that is a part of the tail
    const Extrapolation found = extrapolated(before, terms, began_s);
    double time_s = 0.0;
    for (std::size_t span = Sample::first_window; span < before.spans.size(); ++span) {
        time_s += found.weights[span] * (began_s[before.spans[span].end] - began_s[before.spans[span].begin]);
    }
    double squares = 0.0;
    for (const double change_s : found.changes_s) {
        squares += change_s * change_s;
    }
    return std::sqrt(squares) > certain_relative * time_s;
}

} // namespace lepaute::hpl

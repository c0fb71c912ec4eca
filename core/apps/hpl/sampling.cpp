#include "apps/hpl/sampling.hpp"

#include <algorithm>
#include <array>

namespace lepaute::hpl {

namespace {

/// Of the polynomial that is 1 at nodes[which] and 0 at the others: the integral from `low` to `high`, by the
/// Gauss-Legendre rule with 5 points, which is exact up to degree 9.
double lagrange_integral(const std::vector<double>& nodes, std::size_t which, double low, double high) {
    static constexpr std::array<double, 5> points = {-0.90617984593866399280, -0.53846931010568309104, 0.0,
                                                     0.53846931010568309104, 0.90617984593866399280};
    static constexpr std::array<double, 5> weights = {0.23692688505618908751, 0.47862867049936646804,
                                                      0.56888888888888888889, 0.47862867049936646804,
                                                      0.23692688505618908751};
    const double middle = 0.5 * (low + high);
    const double half = 0.5 * (high - low);
    double integral = 0.0;
    for (std::size_t point = 0; point < points.size(); ++point) {
        const double at = middle + half * points[point];
        double value = 1.0;
        for (std::size_t other = 0; other < nodes.size(); ++other) {
            if (other != which) {
                value *= (at - nodes[other]) / (nodes[which] - nodes[other]);
            }
        }
        integral += half * weights[point] * value;
    }
    return integral;
}

/// A window among the simulated steps: its time is taken between two of them.
struct Window {
    std::size_t begin; // indices of simulated steps
    std::size_t end;
    double centre; // in steps of the program
};

/// The spans of a run whose first `head` and last steps, from index `tail` on, count as they are; the others follow
/// from the windows.
std::vector<Span> spans_of(const std::vector<std::int64_t>& steps, const std::vector<Window>& windows, std::size_t head,
                           std::size_t tail) {
    std::vector<double> nodes;
    nodes.reserve(windows.size());
    for (const Window& window : windows) {
        nodes.push_back(window.centre);
    }
    const auto low = static_cast<double>(steps[head - 1] + 1);
    const auto high = static_cast<double>(steps[tail]);
    std::vector<Span> spans = {{0, head, 1.0}, {tail, steps.size(), 1.0}};
    for (std::size_t i = 0; i < windows.size(); ++i) {
        const auto count = static_cast<double>(windows[i].end - windows[i].begin);
        spans.push_back({windows[i].begin, windows[i].end, lagrange_integral(nodes, i, low, high) / count});
    }
    return spans;
}

/// Cosine of x in [0, pi], to about 1e-15: that of the library differs between processors.
double cosine(double x) noexcept {
    double term = 1.0;
    double sum = 1.0;
    for (int n = 1; n < 16; ++n) {
        term *= -x * x / ((2.0 * n - 1.0) * (2.0 * n));
        sum += term;
    }
    return sum;
}

} // namespace

Sample whole(std::int64_t steps) {
    Sample sample;
    for (std::int64_t step = 0; step < steps; ++step) {
        sample.steps.push_back(step);
    }
    sample.spans = {{0, sample.steps.size(), 1.0}};
    return sample;
}

Sample trial(std::int64_t steps, std::int64_t multiple, std::int64_t head, std::int64_t count) {
    if (head + count >= steps) {
        return whole(steps);
    }
    Sample sample;
    const std::int64_t places = count < 6 ? 1 : 3;
    for (std::int64_t step = 0; step < head; ++step) {
        sample.steps.push_back(step);
    }
    for (std::int64_t place = 0; place < places; ++place) {
        const std::int64_t length = count * (place + 1) / places - count * place / places;
        const std::int64_t centre = (2 * place + 1) * steps / (2 * places);
        const std::int64_t next = sample.steps.back() + 1;
        const std::int64_t gap = std::max<std::int64_t>(0, centre - length / 2 - next) / multiple * multiple;
        for (std::int64_t step = next + gap; step < std::min(steps, next + gap + length); ++step) {
            sample.steps.push_back(step);
        }
    }
    sample.spans = {{0, sample.steps.size(), 1.0}};
    return sample;
}

Sample sampled(std::int64_t steps, std::int64_t multiple, const Windows& windows) {
    const std::int64_t length = windows.warm_up + windows.measured;
    if (windows.count < 3 || 2 * (length * windows.count + multiple) > steps) {
        return whole(steps);
    }
    Sample sample;
    std::vector<Window> taken;
    std::size_t head = 0;
    std::size_t tail = 0;
    constexpr double pi = 3.14159265358979323846;
    for (std::uint32_t i = 0; i < windows.count; ++i) {
        const double share = 0.5 - 0.5 * cosine(pi * i / (windows.count - 1));
        auto first = static_cast<std::int64_t>(share * static_cast<double>(steps - length));
        if (!sample.steps.empty()) {
            const std::int64_t next =
                sample.steps.back() + 1; // what is left out is a multiple; the last window reaches
            const std::int64_t gap = std::max<std::int64_t>(0, first - next) / multiple * multiple; // to the end
            first = next + gap;
        }
        const std::int64_t last = i + 1 == windows.count ? steps : first + length;
        const std::size_t begin = sample.steps.size();
        for (std::int64_t step = first; step < last; ++step) {
            sample.steps.push_back(step);
        }
        const auto warm = begin + static_cast<std::size_t>(windows.warm_up);
        Window window{warm, std::min(warm + static_cast<std::size_t>(windows.measured), sample.steps.size()), 0.0};
        if (i == 0) {
            head = window.end;
        } else if (i + 1 == windows.count) {
            tail = window.begin;
            window.end = window.begin + (window.end - window.begin) / 2; // the end of the matrix is not typical
        }
        window.centre = 0.5 * static_cast<double>(sample.steps[window.begin] + sample.steps[window.end - 1] + 1);
        taken.push_back(window);
    }
    sample.spans = spans_of(sample.steps, taken, head, tail);
    for (std::size_t without = 1; without + 1 < taken.size(); ++without) {
        std::vector<Window> fewer = taken;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(without));
        sample.alternatives.push_back(spans_of(sample.steps, fewer, head, tail));
    }
    return sample;
}

} // namespace lepaute::hpl

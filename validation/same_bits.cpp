// Prints runs of the core to the last bit; same_bits.py compares what different builds of it print.
//
//   same_bits THREADS CASES
//
// CASES is a file of lines, each a word and its values. `case NAME` begins a case; the others say what it is made of:
//   application hpl | stencil | program     machine FILE     topology torus | fat-tree | dragonfly NUMBER...     cores
//   NUMBER... seeds NUMBER...               without LAYER... trace all (ranks and steps)            set FIELD VALUE...
//   and of a program, the numbers of each in their order:     kernels NAME...     by_date
//   op CODE ALGORITHM PEER TAG WHICH M N K     list COUNT NUMBER... BYTES...     communicator RANK...
//   rank OPS OP... FIRST COUNT TIMES...
// The threads share the runs; a line for each run is printed in the order of the file, after one about the processor.

#include "apps/hpl/simulation.hpp"
#include "apps/program/simulation.hpp"
#include "apps/stencil/simulation.hpp"
#include "models/machine_file.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <thread>

using namespace lepaute;

namespace {

/// FNV-1a over the bits of numbers.
class Digest {
public:
    void add(std::uint64_t bits) {
        for (int byte = 0; byte < 8; ++byte) {
            value_ = (value_ ^ ((bits >> (8 * byte)) & 0xFFU)) * 0x100000001B3U;
        }
    }
    void add(double number) { add(std::bit_cast<std::uint64_t>(number)); }
    template <class... Numbers>
    void add(Numbers... numbers) {
        (add(numbers), ...);
    }
    [[nodiscard]] std::uint64_t value() const { return value_; }

private:
    std::uint64_t value_ = 0xCBF29CE484222325U;
};

Digest digest_of(const mpi::RunResult& result) {
    Digest digest;
    digest.add(result.computing_s, result.waiting_s);
    for (const mpi::Shares& shares : result.rank_shares_s) {
        for (const double share_s : shares) {
            digest.add(share_s);
        }
    }
    for (const models::KernelUse& use : result.kernels) {
        digest.add(use.calls, use.clipped_means, use.clipped_deviations, use.time_s, use.extrapolated_time_s);
    }
    for (const models::MessageUse& use : result.use) {
        digest.add(use.messages, use.bytes, use.time_s);
    }
    for (const mpi::TraceRow& row : result.trace.rows) {
        digest.add(std::uint64_t{row.rank}, static_cast<std::uint64_t>(row.step), static_cast<std::uint64_t>(row.code),
                   static_cast<std::uint64_t>(row.peer), static_cast<std::uint64_t>(row.tag), row.start_s,
                   row.duration_s, row.m, row.n, row.k, row.size_bytes, row.late_s, row.transfer_s, row.contention_s);
    }
    return digest;
}

using Words = std::span<const std::string>;

/// The words of each line by their first one; those of `set`, and of a program, apart.
struct Case {
    std::string name;
    std::map<std::string, std::vector<std::string>> lines{{"application", {}}, {"machine", {}}, {"topology", {}},
                                                          {"cores", {}}, {"seeds", {}}, {"without", {}}, {"trace", {}}};
    std::vector<std::vector<std::string>> fields;
    program::Parameters program;
};

template <class Value>
Value number(const std::string& word) {
    if constexpr (std::is_floating_point_v<Value>) {
        return std::strtod(word.c_str(), nullptr);
    } else {
        return static_cast<Value>(std::stoll(word));
    }
}

template <class Value>
std::vector<Value> numbers(Words words) {
    std::vector<Value> found;
    std::ranges::transform(words, std::back_inserter(found), number<Value>);
    return found;
}

/// Sets a field of parameters. Throws std::invalid_argument for one whose type is none of these.
template <class Value>
void set(Value& value, Words words) {
    if constexpr (Worded<Value>) {
        value = of_word<Value>("a field", words.front());
    } else if constexpr (std::is_arithmetic_v<Value>) {
        value = number<Value>(words.front());
    } else if constexpr (requires { value.emplace(); }) { // an optional
        set(value.emplace(), words);
    } else if constexpr (requires { value.size(); }) { // an array
        for (std::size_t i = 0; i < value.size(); ++i) {
            set(value[i], words.subspan(i, 1));
        }
    } else {
        throw std::invalid_argument("no value for such a field");
    }
}

template <class Fields>
void set_field(Fields& of, Words words) {
    bool known = false;
    Fields::fields([&](const char* name, auto field, auto... /*bounds*/) {
        if (words.front() == name) {
            set(of.*field, words.subspan(1));
            known = true;
        }
    });
    if (!known) {
        throw std::invalid_argument("no field " + words.front());
    }
}

net::Topology topology_of(Words words) {
    const auto sizes = numbers<std::uint32_t>(words.subspan(1));
    net::TopologyOptions options;
    options.levels = {{12.5e9, 1e-7}, {10e9, 3e-7}};
    if (words.front() == "torus") {
        return net::Topology::torus(sizes, options);
    }
    if (words.front() == "dragonfly" && sizes.size() == 7) {
        return net::Topology::dragonfly({sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6]},
                                        options);
    }
    if (words.front() == "fat-tree" && sizes.size() == 6) { // of two levels
        return net::Topology::fat_tree({{sizes[0], sizes[1]}, {sizes[2], sizes[3]}, {sizes[4], sizes[5]}}, options);
    }
    throw std::invalid_argument("no topology " + words.front());
}

models::Machine machine_of(const Case& of) {
    std::ifstream file(of.lines.at("machine").at(0));
    std::stringstream text;
    text << file.rdbuf();
    models::Machine machine = models::machine_of_text(text.str());
    if (const auto& topology = of.lines.at("topology"); !topology.empty()) {
        machine.topology = topology_of(topology);
    }
    return machine;
}

template <class Parameters, class Simulate>
std::string run(const Case& of, std::uint64_t seed, Simulate simulate, Parameters parameters = {}) {
    for (const auto& words : of.fields) {
        set_field(parameters, words);
    }
    models::Layers layers;
    for (const std::string& layer : of.lines.at("without")) {
        set_field(layers, std::vector<std::string>{layer, "0"});
    }
    mpi::Trace trace;
    if (!of.lines.at("trace").empty()) {
        trace.rank_wanted.assign(parameters.ranks(), 1);
    }
    const auto cores = numbers<std::uint32_t>(of.lines.at("cores"));
    const mpi::RunResult result = simulate(parameters, machine_of(of), layers, cores, seed, std::move(trace));
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "time_s %a messages %" PRIu64 " bytes %a rest %016" PRIx64, result.time_s,
                  result.messages, result.bytes, digest_of(result).value());
    return of.name + " seed " + std::to_string(seed) + ": " + line.data();
}

std::string run(const Case& of, std::uint64_t seed) {
    const std::string& application = of.lines.at("application").at(0);
    if (application == "stencil") {
        return run<stencil::Parameters>(of, seed, [](auto&&... given) { return stencil::simulate(given...); });
    }
    if (application == "program") {
        return run(
            of, seed, [](auto&&... given) { return program::simulate(given...); }, of.program);
    }
    return run<hpl::Parameters>(of, seed, [](auto&&... given) { return hpl::simulate(given...); });
}

/// What the processor has, and a digest of results of the C library, which picks variants by what it has.
std::string processor() {
    Digest library;
    for (int i = 1; i < 20000; ++i) {
        const double x = 1e-3 * i;
        library.add(std::exp(x));
        library.add(std::log(x));
        library.add(std::pow(x, 0.3));
    }
    std::array<char, 80> line{};
#ifdef __x86_64__
    const bool avx = __builtin_cpu_supports("avx") != 0, fma = __builtin_cpu_supports("fma") != 0;
#else
    const bool avx = false, fma = false;
#endif
    std::snprintf(line.data(), line.size(), "avx %d fma %d library %016" PRIx64, avx, fma, library.value());
    return line.data();
}

/// A line about a program; false for one that is none.
bool read_program(program::Parameters& of, const std::string& key, Words words) {
    if (key == "kernels") {
        of.kernels.assign(words.begin(), words.end());
        of.lines = {""};
    } else if (key == "by_date") {
        of.by_date = true;
    } else if (key == "op") {
        of.ops.push_back({.code = of_word<program::Code>("a code", words[0]),
                          .algorithm = of_word<program::Algorithm>("an algorithm", words[1]),
                          .peer = number<std::uint32_t>(words[2]),
                          .tag = number<std::uint32_t>(words[3]),
                          .which = number<std::uint32_t>(words[4]),
                          .m = number<double>(words[5]),
                          .n = number<double>(words[6]),
                          .k = number<double>(words[7])});
    } else if (key == "list") {
        const auto count = number<std::size_t>(words[0]);
        of.lists.push_back({.numbers = numbers<std::uint32_t>(words.subspan(1, count)),
                            .bytes = numbers<double>(words.subspan(1 + count))});
    } else if (key == "communicator") {
        of.communicators.push_back(numbers<std::uint32_t>(words));
    } else if (key == "rank") {
        const auto count = number<std::size_t>(words[0]);
        program::RankCode& code = of.rank_code.emplace_back();
        code.ops = numbers<std::uint32_t>(words.subspan(1, count));
        const auto parts = numbers<std::uint32_t>(words.subspan(1 + count));
        for (std::size_t i = 0; i + 2 < parts.size(); i += 3) {
            code.parts.push_back({parts[i], parts[i + 1], parts[i + 2]});
        }
    } else {
        return false;
    }
    return true;
}

void read_line(std::vector<Case>& cases, const std::string& line) {
    std::istringstream in(line);
    std::string key;
    in >> key;
    if (key == "case") {
        std::getline(in >> std::ws, cases.emplace_back().name);
        return;
    }
    Case& last = cases.at(cases.size() - 1);
    const std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
    if (key == "set") {
        last.fields.push_back(words);
    } else if (!read_program(last.program, key, words)) {
        if (!last.lines.contains(key)) {
            throw std::invalid_argument("no meaning for " + key);
        }
        last.lines[key] = words;
    }
}

} // namespace

int main(int argc, char** argv) try {
    if (argc != 3) {
        std::fputs("usage: same_bits THREADS CASES\n", stderr);
        return 2;
    }
    std::vector<Case> cases;
    std::ifstream file(argv[2]);
    for (std::string line; std::getline(file, line);) {
        read_line(cases, line);
    }
    std::vector<std::pair<const Case*, std::uint64_t>> runs;
    for (const Case& one : cases) {
        for (const std::uint64_t seed : numbers<std::uint64_t>(one.lines.at("seeds"))) {
            runs.emplace_back(&one, seed);
        }
    }
    std::vector<std::string> lines(runs.size());
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
        for (std::size_t i = next++; i < runs.size(); i = next++) {
            try {
                lines[i] = run(*runs[i].first, runs[i].second);
            } catch (const std::exception& error) {
                lines[i] = runs[i].first->name + " failed: " + error.what();
            }
        }
    };
    std::vector<std::jthread> threads;
    for (long count = std::strtol(argv[1], nullptr, 10); count > 1; --count) {
        threads.emplace_back(work);
    }
    work();
    threads.clear();
    std::puts(processor().c_str());
    for (const std::string& line : lines) {
        std::puts(line.c_str());
    }
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "same_bits: %s\n", error.what());
    return 2;
}

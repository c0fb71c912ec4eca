#include "models/machine_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace lepaute::models {

namespace {

constexpr std::string_view format = "lepaute-machine/2";

template <class File>
void visit_modes(File& file, std::vector<rng::Mode>& modes) {
    file.list(modes, [&file](rng::Mode& mode) {
        file.value(mode.cumulative);
        file.value(mode.mean);
        file.value(mode.deviation);
    });
}

/// The fields of a machine in the order of the file. Writer and Reader go through them alike, so that the two cannot
/// differ: `visit(file, machine)` calls file.value(x) for each number and file.list(v, each) for each list.
template <class File>
void visit_pieces(File& file, std::vector<KernelPiece>& pieces) {
    file.list(pieces, [&file](KernelPiece& piece) {
        for (Bounds* bounds : {&piece.where, &piece.fitted}) {
            for (Size* size : {&bounds->low, &bounds->high}) {
                file.value(size->m);
                file.value(size->n);
                file.value(size->k);
            }
        }
        for (Coefficients* coefficients : {&piece.mean, &piece.deviation}) {
            std::ranges::for_each(*coefficients, [&file](double& coefficient) { file.value(coefficient); });
        }
        file.value(piece.noise);
        file.list(piece.covariance_terms, [&file](int& term) { file.value(term); });
        file.list(piece.covariance, [&file](double& entry) { file.value(entry); });
        visit_modes(file, piece.modes);
    });
}

template <class File>
void visit_segments(File& file, NetworkClass& network_class) {
    file.list(network_class.segments, [&file](Segment& segment) {
        file.value(segment.above_bytes);
        file.value(segment.protocol);
        file.value(segment.latency_s);
        file.value(segment.bandwidth_Bps);
        for (Overhead* overhead : {&segment.send, &segment.isend, &segment.receive}) {
            file.value(overhead->intercept_s);
            file.value(overhead->per_byte_s);
        }
        file.value(segment.noise_relative_sd);
        visit_modes(file, segment.noise.modes);
    });
    file.value(network_class.fitted_low_bytes);
    file.value(network_class.fitted_high_bytes);
}

template <class File>
void visit(File& file, Machine& machine) {
    file.value(machine.nodes);
    file.value(machine.cores_per_node);
    file.value(machine.cpus_per_node);
    file.value(machine.cpu_is_core_modulo);
    for (std::size_t kernel = 0; kernel < kernel_count; ++kernel) {
        file.list(machine.kernels[kernel], [&file](KernelModel& model) {
            std::vector<KernelPiece> pieces = model.pieces();
            visit_pieces(file, pieces);
            model = KernelModel(std::move(pieces));
        });
        file.value(machine.discrepancy_relative_sd[kernel]);
        file.value(machine.crowding[kernel]);
    }
    file.value(machine.day_common_relative_sd);
    file.value(machine.day_cpu_relative_sd);
    file.value(machine.day_degrees_of_freedom);
    file.value(machine.episode_relative_sd);
    file.value(machine.episode_s);
    Network& network = machine.network;
    for (NetworkClass* network_class :
         {&network.loopback, &network.remote, &network.loopback_noncontiguous, &network.remote_noncontiguous}) {
        visit_segments(file, *network_class);
    }
    file.value(network.flow_factor);
    file.value(network.exact_sharing);
    file.value(network.node_link_Bps);
    file.value(network.loopback_Bps);
    file.value(network.loopback_shared);
    file.value(network.iprobe_s);
    file.value(network.iprobe_looks_first);
}

class Writer {
public:
    template <class Value>
    void value(Value number) {
        std::array<char, 32> digits{};
        char* end = nullptr;
        if constexpr (std::floating_point<Value>) {
            end = std::to_chars(digits.begin(), digits.end(), number).ptr; // the shortest that reads back as it is
        } else {
            end = std::to_chars(digits.begin(), digits.end(), static_cast<long long>(number)).ptr;
        }
        text_.append(digits.begin(), end);
        text_ += ' ';
    }
    template <class Value, class Each>
    void list(std::vector<Value>& values, Each each) {
        value(values.size());
        for (Value& one : values) {
            each(one);
        }
        text_.back() = '\n';
    }
    [[nodiscard]] std::string take() { return std::move(text_); }

private:
    std::string text_{"lepaute-machine/2\n"};
};

class Reader {
public:
    explicit Reader(std::string_view text) : rest_(text) {
        if (word() != format) {
            throw std::invalid_argument("is no machine of the format " + std::string(format));
        }
    }
    template <class Value>
    void value(Value& number) {
        const std::string_view digits = word();
        std::conditional_t<std::floating_point<Value>, double, long long> read{};
        const auto [end, error] = std::from_chars(digits.begin(), digits.end(), read);
        if (error != std::errc{} || end != digits.end()) {
            throw std::invalid_argument("has '" + std::string(digits) + "' where a number should be");
        }
        number = static_cast<Value>(read);
    }
    template <class Value, class Each>
    void list(std::vector<Value>& values, Each each) {
        std::size_t count = 0;
        value(count);
        if (count > rest_.size()) { // each element has a character at least
            throw std::invalid_argument("ends too early");
        }
        values.assign(count, Value{});
        for (Value& one : values) {
            each(one);
        }
    }
    void check_end() {
        if (!word().empty()) {
            throw std::invalid_argument("goes on after its end");
        }
    }

private:
    std::string_view word() {
        constexpr std::string_view blanks = " \n";
        rest_.remove_prefix(std::min(rest_.find_first_not_of(blanks), rest_.size()));
        const std::string_view found = rest_.substr(0, rest_.find_first_of(blanks));
        rest_.remove_prefix(found.size());
        return found;
    }

    std::string_view rest_;
};

} // namespace

std::string machine_text(const Machine& machine) {
    Machine copy = machine; // the visit may change what it goes through, though the writer does not
    Writer file;
    visit(file, copy);
    return file.take();
}

Machine machine_of_text(std::string_view text) {
    Reader file(text);
    Machine machine;
    visit(file, machine);
    file.check_end();
    return machine;
}

} // namespace lepaute::models

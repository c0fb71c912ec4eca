#include "models/machine_file.hpp"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace lepaute::models {

namespace {

constexpr std::string_view nothing = "-"; // stands for an empty name
constexpr std::string_view format = "lepaute-machine/9";

/// What stands for a number of that type: read as it, so that one that its field cannot hold is refused.
template <class Value>
using Written = std::conditional_t<std::floating_point<Value>, double, long long>;

/// Goes through `value` in the order of the file. Writer and Reader go through it alike, so that the two cannot differ.
template <class File, class Value>
void transfer(File& file, Value& value) {
    if constexpr (Visited<Value>) {
        Value::fields([&](const char*, auto field, auto... /*bounds*/) { transfer(file, value.*field); });
    } else {
        file.value(value);
    }
}

template <class File>
void transfer(File& file, rng::Mode& mode) {
    file.value(mode.cumulative);
    file.value(mode.mean);
    file.value(mode.deviation);
}

template <class File>
void transfer(File& file, Coefficients& coefficients) {
    std::ranges::for_each(coefficients, [&file](double& coefficient) { file.value(coefficient); });
}

template <class File, class Value>
void transfer(File& file, std::vector<Value>& values) {
    file.list(values, [&file](Value& value) { transfer(file, value); });
}

class Writer {
public:
    template <class Value>
        requires std::is_arithmetic_v<Value>
    void value(Value number) {
        (text_ += text_of(static_cast<Written<Value>>(number))) += ' '; // the shortest that reads back as it is
    }
    void value(const std::string& name) { (text_ += name.empty() ? nothing : std::string_view(name)) += ' '; }
    template <Worded Enum>
    void value(Enum choice) {
        (text_ += word_of(choice)) += ' ';
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
    std::string text_ = std::string(format) + '\n';
};

class Reader {
public:
    explicit Reader(std::string_view text) : rest_(text) {
        if (word() != format) {
            throw std::invalid_argument("is no machine of the format " + std::string(format));
        }
    }
    template <class Value>
        requires std::is_arithmetic_v<Value>
    void value(Value& number) {
        const std::string_view digits = word();
        Written<Value> read{};
        const auto [end, error] = std::from_chars(digits.begin(), digits.end(), read);
        const auto expect = [digits](bool met, const char* what) {
            if (!met) {
                throw std::invalid_argument("has '" + std::string(digits) + "' where " + what + " should be");
            }
        };
        expect(error == std::errc{} && end == digits.end(), "a number");
        if constexpr (std::same_as<Value, bool>) {
            expect(read == 0 || read == 1, "0 or 1");
        } else if constexpr (std::integral<Value>) {
            expect(std::in_range<Value>(read), "a number that its field holds");
        }
        number = static_cast<Value>(read);
    }
    void value(std::string& name) {
        name = word();
        if (name == nothing) {
            name.clear();
        }
    }
    template <Worded Enum>
    void value(Enum& choice) {
        choice = of_word<Enum>("a word", word());
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
    Machine copy = machine; // what is gone through may be changed, though the writer does not
    Writer file;
    transfer(file, copy);
    return file.take();
}

Machine machine_of_text(std::string_view text) {
    Reader file(text);
    Machine machine;
    transfer(file, machine);
    file.check_end();
    check_all(machine);
    return machine;
}

} // namespace lepaute::models

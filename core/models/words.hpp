#pragma once
// Enums, and other types of few values, that files and Python choose by a word. Beside one stands its table:
//   constexpr auto words_of(Enum /*enum*/) noexcept { return words_in_order<Enum>("word", ...); }

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lepaute {

template <class Enum>
struct Word {
    Enum value;
    std::string_view word;
};

/// Of values that count from 0.
template <class Enum, class... Words>
constexpr auto words_in_order(Words... words) noexcept {
    std::size_t value = 0;
    return std::array{Word<Enum>{static_cast<Enum>(value++), words}...};
}

template <class Enum>
concept Worded = requires { words_of(Enum{}); };

/// Throws std::logic_error for a value that the table lacks.
template <Worded Enum>
[[nodiscard]] std::string_view word_of(Enum value) {
    for (const Word<Enum>& one : words_of(Enum{})) {
        if (one.value == value) {
            return one.word;
        }
    }
    throw std::logic_error("a value without a word");
}

/// The value of `word`; `name` says what is chosen. Throws std::invalid_argument, with the choices, for another word.
template <Worded Enum>
[[nodiscard]] Enum of_word(std::string_view name, std::string_view word) {
    std::string all;
    for (const Word<Enum>& one : words_of(Enum{})) {
        if (one.word == word) {
            return one.value;
        }
        all += (all.empty() ? "" : ", ") + std::string(one.word);
    }
    throw std::invalid_argument(std::string(name) + " is '" + std::string(word) + "'; it is one of " + all);
}

} // namespace lepaute

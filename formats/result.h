// SPDX-License-Identifier: MIT
// Result<T>: a value or the reason why there is none. Everything that depends on the outside
// (files, options, prompts) returns one; no exception crosses a folder border.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace mnm {

/// One line for a person: names the file, the field, what was found and what was expected.
struct Error {
    std::string message;
};

/// A value of type T, or an Error. Test it before use; value() of an error is a programming fault.
///
///     Result<ModelFile> file = open_model("tales.mnm");
///     if (!file) return file.error();
///     use(file->config);
template <class T>
class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    explicit operator bool() const noexcept { return state_.index() == 0; }
    T& value() & { return *std::get_if<0>(&state_); }
    const T& value() const& { return *std::get_if<0>(&state_); }
    T&& value() && { return std::move(*std::get_if<0>(&state_)); }
    T* operator->() { return std::get_if<0>(&state_); }
    const T* operator->() const { return std::get_if<0>(&state_); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }
    const Error& error() const { return *std::get_if<1>(&state_); }

  private:
    std::variant<T, Error> state_;
};

/// Success, or an Error.
template <>
class [[nodiscard]] Result<void> {
  public:
    Result() = default;
    Result(Error error) : error_(std::move(error)), failed_(true) {}

    explicit operator bool() const noexcept { return !failed_; }
    const Error& error() const { return error_; }

  private:
    Error error_;
    bool failed_ = false;
};

} // namespace mnm

#define MNM_JOIN_(a, b) a##b
#define MNM_JOIN(a, b) MNM_JOIN_(a, b)

/// Declares `declaration` from the value of `expression` (a Result), or returns its error.
///     MNM_TRY(ModelFile file, open_model(path));
#define MNM_TRY(declaration, expression)                                                           \
    auto MNM_JOIN(result_, __LINE__) = (expression);                                               \
    if (!MNM_JOIN(result_, __LINE__)) return MNM_JOIN(result_, __LINE__).error();                  \
    declaration = *std::move(MNM_JOIN(result_, __LINE__))

/// Returns the error of `expression` (a Result<void>) if it has one.
#define MNM_CHECK(expression)                                                                      \
    do {                                                                                           \
        if (auto checked_ = (expression); !checked_) return checked_.error();                      \
    } while (false)

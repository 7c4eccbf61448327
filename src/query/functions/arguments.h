// Reading the arguments of functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/container/small_vector.hpp>

#include "json/value.h"
#include "query/eval/arithmetic.h"
#include "query/functions/functions.h"

namespace orrery::query {

/// The first `count` arguments, which are strings. Nothing if one of them is none.
class Texts {
 public:
  Texts(Arguments arguments, std::size_t count) : texts_(count), buffers_(count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (!arguments[i]->is_string()) {
        texts_.clear();
        return;
      }
      texts_[i] = arguments[i]->as_string(buffers_[i]);
    }
  }
  explicit operator bool() const { return !texts_.empty(); }
  std::string_view operator[](std::size_t i) const { return texts_[i]; }

 private:
  boost::container::small_vector<std::string_view, 3> texts_;
  boost::container::small_vector<std::string, 3> buffers_;
};

/// Nothing if it is not a number, or not an integral one.
inline std::optional<std::int64_t> integer_of(const json::Value& value) {
  if (!value.is_number()) return std::nullopt;
  return integral(value.as_number());
}

/// A string of its own.
inline json::Value made(std::string_view text) { return json::Value::string(std::string(text)); }

}  // namespace orrery::query

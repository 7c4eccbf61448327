// The projection of a document: the list of a SELECT.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "json/value.h"
#include "query/bind/settings.h"
#include "query/eval/predicate.h"

namespace orrery::query {

/// Made once, used for many documents, from any thread; copies share what they were made of.
class Projection {
 public:
  /// A larger object is not made: a short text can ask for the same document many times.
  static constexpr std::size_t kBytesMax = std::size_t{4} << 20;

  /// `text` is what may stand after SELECT: a list, VALUE and one expression, or *. Errors as of
  /// Predicate::parse; SC2022 also when an item has the name `reserved`, which the caller adds to
  /// the object.
  static Result<Projection> parse(std::string_view text, std::span<const std::string_view> aliases,
                                  std::string_view reserved = "",
                                  const Settings& settings = plain_settings());

  /// Whether it is *: documents are shown as they are.
  bool is_star() const;

  /// Appends a JSON object: the items that are defined, under their names; of VALUE the object that
  /// it is, without a member named `reserved`, or what else it is under the name $1; of * the first
  /// document. False, and nothing appended, when it would be larger than kBytesMax. Errors are
  /// those that end a query: as of Predicate::is_true_of, and NumberNotInJson where a number is NaN
  /// or infinite; nothing is appended then, either.
  Result<bool> show(std::string& out, std::span<const json::Value> documents,
                    WorkBudget* work = nullptr) const;

 private:
  struct Bound;
  explicit Projection(std::shared_ptr<const Bound> bound) : bound_(std::move(bound)) {}

  std::shared_ptr<const Bound> bound_;  ///< of all copies; never changes
};

}  // namespace orrery::query

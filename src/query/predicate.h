// Whether a document is wanted: the filter of a change feed, the condition of a patch.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "json/value.h"

namespace orrery::query {

/// An expression over one document, or over a few that belong together. Made once, asked for many
/// documents, from any thread; copies share what they were made of.
class Predicate {
 public:
  /// `text` is an expression; `aliases` are the names that it has for its documents. BadRequest in
  /// the form of text_error, also for what is no expression over these documents alone: aggregates,
  /// user-defined functions, parameters.
  static Result<Predicate> parse(std::string_view text, std::span<const std::string_view> aliases);
  /// `from alias where expression`, over one document.
  static Result<Predicate> parse_condition(std::string_view text);

  /// Whether the expression is true: not false, not undefined, not anything else. One document for
  /// each alias, in their order; undefined where there is none.
  bool matches(std::span<const json::Value> documents) const;
  bool matches(const json::Value& document) const { return matches({&document, 1}); }

 private:
  struct Bound;
  explicit Predicate(std::shared_ptr<const Bound> bound) : bound_(std::move(bound)) {}

  std::shared_ptr<const Bound> bound_;  ///< of all copies; never changes
};

}  // namespace orrery::query

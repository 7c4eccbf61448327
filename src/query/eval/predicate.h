// Whether a document is wanted: the filter of a change feed, the condition of a patch.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/work_budget.h"
#include "json/value.h"
#include "query/bind/bind.h"
#include "query/bind/settings.h"

namespace orrery::query {

struct Frame;

/// Of a container that says nothing of its documents.
Settings plain_settings();

/// The documents that predicates and projections are over, which belong together. The first is that
/// of a query over the container, with its settings, such as computed properties; the others are
/// only what their texts say.
class NamedDocuments {
 public:
  explicit NamedDocuments(std::span<const std::string_view> aliases);

  /// Binds the WHERE and the select list of a query that has nothing else. Once. Keeps nothing of
  /// the settings but their surroundings.
  Result<> bind(Query& query, std::string_view text, const Settings& settings);
  /// One document for each alias, in their order; undefined where there is none. Refers to this.
  Frame frame_of(std::span<const json::Value> documents) const;

 private:
  std::string first_;
  Sources sources_;  // The other documents, then the first, then what subqueries read.
  std::size_t others_count_;
  Surroundings surroundings_;
};

/// An expression over one document, or over a few that belong together. Made once, asked for many
/// documents, from any thread; copies share what they were made of.
class Predicate {
 public:
  /// `text` is an expression; `aliases` are the names that it has for its documents. BadRequest in
  /// the form of text_error, also for what is no expression over these documents alone: aggregates,
  /// user-defined functions, parameters.
  static Result<Predicate> parse(std::string_view text, std::span<const std::string_view> aliases,
                                 const Settings& settings = plain_settings());
  /// `from alias where expression`, over one document.
  static Result<Predicate> parse_condition(std::string_view text,
                                           const Settings& settings = plain_settings());

  /// Whether the expression is true: not false, not undefined, not anything else. One document for
  /// each alias, in their order; undefined where there is none. Errors are those that end a query:
  /// BadRequest when subqueries have too many rows; RequestTooLarge when what they find is too
  /// large; interruption() when `work`, if there is one, stops.
  Result<bool> is_true_of(std::span<const json::Value> documents, WorkBudget* work = nullptr) const;
  Result<bool> is_true_of(const json::Value& document, WorkBudget* work = nullptr) const {
    return is_true_of({&document, 1}, work);
  }

 private:
  struct Bound;
  explicit Predicate(std::shared_ptr<const Bound> bound) : bound_(std::move(bound)) {}

  std::shared_ptr<const Bound> bound_;  ///< of all copies; never changes
};

}  // namespace orrery::query

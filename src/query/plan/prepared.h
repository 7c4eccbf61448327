// A query, ready to run: parsed, checked and bound. Made once per request, or kept for many.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "query/bind/bind.h"
#include "query/bind/settings.h"
#include "query/syntax/ast.h"

namespace orrery::query {

/// BadRequest in the form of text_error.
Result<QueryPtr> parse_query(const std::string& text);

class PreparedQuery;
using PreparedQueryPtr = std::shared_ptr<const PreparedQuery>;  // Shared by pages under way.

/// Never changes; threads may share it.
class PreparedQuery {
 public:
  /// How its rows come about.
  enum class Shape : std::uint8_t {
    Stream,   ///< row by row, in the order of the documents
    Ordered,  ///< ORDER BY: in the order of sort keys
    Grouped,  ///< aggregates or GROUP BY: after all documents have been seen
    Ranked,   ///< ORDER BY RANK: several scores, each over all documents: see plan.h
  };

  /// BadRequest in the form of text_error.
  static Result<PreparedQueryPtr> prepare(const std::string& text, const Parameters& parameters,
                                          const Settings& settings);
  /// Of a text that has been parsed: see parse_query().
  static Result<PreparedQueryPtr> prepare(QueryPtr tree, const std::string& text,
                                          const Parameters& parameters, const Settings& settings);

  const std::string& text() const { return text_; }
  const Parameters& parameters() const { return parameters_; }
  const Query& tree() const { return *tree_; }
  const Sources& sources() const { return sources_; }
  const Surroundings& surroundings() const { return surroundings_; }
  const UserFunctions* user_functions() const { return user_functions_; }
  Shape shape() const { return shape_; }
  /// Whether it reads documents at all: it has a FROM that begins with the container, or with a
  /// query that does.
  bool reads_documents() const { return reads_documents_; }
  /// SELECT * FROM c, or SELECT VALUE c: documents come out as they are stored.
  bool shows_documents() const { return shows_documents_; }
  /// Whether a document takes no more time than it is long: neither functions are called for it,
  /// nor are there rows within it.
  bool is_plain() const { return is_plain_; }
  /// The query over all documents whose rows are the documents of this one: FROM (SELECT DISTINCT
  /// …), and others whose rows do not come of one document each. Null: there is none.
  const PreparedQueryPtr& inner() const { return inner_; }
  /// Of text and parameters: continuations of another query are refused by it. Computed each time:
  /// most queries end with their first page, and need none.
  std::uint64_t hash() const;

 private:
  PreparedQuery() = default;

  std::string text_;
  Parameters parameters_;
  QueryPtr tree_;
  Sources sources_;
  Surroundings surroundings_;
  const UserFunctions* user_functions_ = nullptr;
  Shape shape_ = Shape::Stream;
  bool reads_documents_ = false;
  bool shows_documents_ = false;
  bool is_plain_ = false;
  PreparedQueryPtr inner_;
  std::string identity_;  // Hashed, together with parameters.
};

}  // namespace orrery::query

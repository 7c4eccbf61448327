// Binds the select list of a query with GROUP BY, which may be built from the items of GROUP BY,
// however they are written.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "query/bind/bind.h"
#include "query/syntax/ast.h"

namespace orrery::query {

/// The place of a name among those that are known where it stands; nothing if it is not.
using FindName = std::function<std::optional<std::size_t>(std::string_view)>;

/// An expression, not bound yet, in a form in which it can be compared: c["a"] is c.a, upper(c.a)
/// is UPPER(c.a), and a name is what it means.
///
/// Repetitions have parts, each of which goes on from those before it: the steps of a path; the
/// links of a + b - c; the operands of AND and OR after the first; from the end, because they nest
/// to the right, those of ?? before the last and the branches of ? :. All else is one part.
class ComparedText {
 public:
  ComparedText(const Expression& expression, const FindName& find_name);

  std::size_t part_count() const { return ends_.size(); }
  /// Of the expression that only the first parts make.
  std::string_view first_parts(std::size_t count) const {
    return std::string_view(text_).substr(0, ends_[count - 1]);
  }

 private:
  std::string text_;
  std::vector<std::size_t> ends_;  ///< of each part, in the text
};

/// Puts `value` in place of the first parts of the expression, as ComparedText has them; of all of
/// them, in place of the expression.
void replace_first_parts(Expression& expression, std::size_t count, Expression::Node value);

/// The items of a GROUP BY.
class GroupKeys {
 public:
  /// The next one.
  void add(const ComparedText& item);
  std::size_t size() const { return size_; }

  struct Found {
    std::size_t slot;   ///< of the item
    std::size_t parts;  ///< so many of the expression's are that item
  };
  /// The item that is the expression, or else the longest that it goes on from.
  std::optional<Found> find(const ComparedText& expression) const;

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  std::size_t size_ = 0;
  std::unordered_map<std::string, std::size_t, TextHash, std::equal_to<>> slots_;
  std::set<std::size_t> part_counts_;  ///< that there are
};

/// The select list of a query with aggregates or GROUP BY: what may be named there.
struct GroupScope {
  Query& query;
  std::size_t first_name;  ///< names before it are of the queries around
  std::size_t end_name;    ///< those from here on are of subqueries
  GroupKeys keys = {};
  bool is_in_aggregate = false;  ///< an argument is being bound: it is over rows, not groups
  /// Of the items of GROUP BY that the subquery reads that is being bound; none: it reads none.
  std::optional<std::size_t> source = std::nullopt;
  std::set<std::size_t> read_slots = {};  ///< those
};

/// All select lists that stand around what is being bound, the innermost last.
class GroupScopes {
 public:
  /// Lives until it is popped.
  void push(GroupScope& scope) { scopes_.push_back(&scope); }
  void pop() { scopes_.pop_back(); }

  /// Whether a name means a source that has many rows for one group.
  bool hide(std::size_t name) const;

  /// Puts the value of an item of GROUP BY in place of what is written like it: the expression, or
  /// its first parts. True if it was all of it. A subquery has its own groups, so it reads the
  /// items of others than `own` from a source, and they note that.
  bool bind_value(Expression& expression, const FindName& find_name, Sources& sources,
                  const GroupScope* own);

 private:
  std::vector<GroupScope*> scopes_;
};

/// Makes (SELECT VALUE subquery FROM {"0": …, "1": …} AS source) of a bound subquery in the select
/// list, if it reads items of GROUP BY: it finds them there.
void add_group_source(Expression& subquery, GroupScope& scope);

}  // namespace orrery::query

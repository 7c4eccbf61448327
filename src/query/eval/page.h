// One page of a query in the making: its rows so far, where it began, and where the next one
// begins.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "protocol/ids.h"
#include "protocol/tokens/query_continuation.h"
#include "query/eval/evaluate.h"
#include "query/eval/execution.h"
#include "query/plan/prepared.h"
#include "query/syntax/ast.h"

namespace orrery::query {

/// The beginning of a page: the rows that earlier pages have shown.
struct Resumption {
  /// A document of which earlier pages have shown so many rows, but not all.
  struct Partial {
    RowPosition::Partial shown;
    std::optional<std::size_t> slice =
        std::nullopt;  ///< where its rows with the resume key were met
  };

  explicit Resumption(const RowPosition& from);

  /// Rows of a document that were shown; 0: none, or all of them.
  std::uint32_t shown_rows_of(DocumentNumber number) const;

  std::optional<std::string> key;  ///< of the last row; its beginning, if cut_rows is not 0
  std::uint64_t cut_rows = 0;      ///< shown rows whose keys begin with `key`
  std::vector<Partial> partials;   ///< the first one may be of no document
};

struct Page {
  Page(const PreparedQuery& query, const PageLimits& limits, RowPosition from);

  const Query& tree;
  PageLimits limits;
  Frame frame;

  std::string rows = {};  ///< row,row,…
  std::size_t count = 0;
  Resumption resumed;
  RowPosition position;  ///< where the next page begins
  ExecutionStats stats = {};

  std::uint64_t skip = 0;  ///< OFFSET
  std::uint64_t take = 0;  ///< LIMIT and TOP

  DocumentNumber number;    ///< of the document at hand
  std::uint32_t place = 0;  ///< of the row at hand, among those of the document
  bool is_full = false;
  bool is_slice_done = false;  ///< nothing after the row at hand matters in its slice
  bool is_last = false;        ///< no rows come after those of this page

  bool is_over() const { return is_last || position.emitted >= take; }
  bool is_skipping() const { return position.skipped < skip; }
  std::uint64_t left_to_take() const { return take - std::min(take, position.emitted); }
  /// How many rows may matter: those that are shown, and those that are passed over before them.
  std::uint64_t wanted() const;

  /// Another document that was shown in part, besides that of the position.
  void keep_other(const RowPosition::Partial& other);
  /// To be called before a row is appended.
  void separate();
  /// Appends the select list of the row at hand as JSON text. False where it is undefined.
  bool append_selected_to(std::string& out);
  /// Whether JSON has all numbers in the value of a row; sets the failure.
  bool check_numbers(const json::Value& value);
};

/// The error of a query that has to remember more than it may.
Error too_much_memory(std::string_view what);

}  // namespace orrery::query

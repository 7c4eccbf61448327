// Rows in the order in which documents come: each is shown, or not, as soon as it is found.
#pragma once

#include <cstddef>
#include <cstdint>

#include "query/eval/page.h"
#include "query/eval/waiting_rows.h"

namespace orrery::query {

/// Not thread-safe. Must not outlive the page.
class StreamRows {
 public:
  explicit StreamRows(Page& page) : page_(page) {}

  /// The row that is in the frame. False: the page needs no more rows.
  bool take_row();
  /// All rows of the document at hand were taken.
  void end_document();
  /// All documents were taken: those that earlier pages have shown in part, and that are further
  /// on, stay in the position.
  void finish();

  /// DISTINCT: at most so many rows of what is in the frame were shown by an earlier page.
  void remember_rows(std::uint32_t rows_max);

  std::size_t memory() const { return seen_.size() * kSeenBytes; }

 private:
  bool take_distinct_row();
  /// The row shows nothing: it is dealt with.
  bool pass_over();
  bool skip_row();
  bool show_row(std::size_t rows_before);
  bool page_is_full();
  bool is_row_defined();
  /// DISTINCT: remembers it.
  bool is_new(const json::Value& value);

  Page& page_;
  SeenRows seen_;
};

}  // namespace orrery::query

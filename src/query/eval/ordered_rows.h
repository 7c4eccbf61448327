// ORDER BY: of all rows, those that come next wait until the last document was seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "protocol/ids.h"
#include "query/eval/page.h"
#include "query/eval/waiting_rows.h"
#include "query/syntax/ast.h"

namespace orrery::query {

/// Appends the sort key of an item of ORDER BY, in its direction.
void append_order_key(std::string& key, const OrderItem& item, const json::Value& value);

/// Not thread-safe. Must not outlive the page.
class OrderedRows {
 public:
  explicit OrderedRows(Page& page) : page_(page) {}

  /// Documents from here on are of the next slice; see Execution::begin_slice().
  void begin_slice(DocumentNumber after) { afters_.push_back(after); }
  /// The row that is in the frame. False when the query failed.
  bool take_row();
  /// A row of the document that the last page ended with is in the frame: if its key is that which
  /// was cut, it is known whole again.
  void resume_at_row();
  /// All documents were taken: makes the page.
  void emit();

  /// The slice in which the last row is, and its document: where ties go on.
  std::size_t last_slice() const { return last_slice_; }
  DocumentNumber last_number() const { return last_number_; }
  /// Whether the key of the last row is another than that which the page began with.
  bool has_new_key() const { return has_new_key_; }
  std::size_t memory() const { return waiting_.memory(); }

 private:
  /// Of the row that is in the frame.
  std::string sort_key();
  bool take_distinct_row(WaitingRow row);
  /// An earlier page has ended at or after this row.
  bool is_before_resumption(const WaitingRow& row) const;
  /// Moves the end of the page to this row.
  void end_with(const WaitingRow& row);
  void keep_partials_after(const WaitingRow& row);
  /// Rows with this beginning that were shown before this one, and have shorter keys.
  std::uint64_t rows_before(const WaitingRow& row, std::string_view beginning) const;

  Page& page_;
  std::vector<DocumentNumber> afters_;  // Of each slice.
  WaitingRows waiting_;
  bool has_more_ = false;  // Rows were dropped that later pages show.
  std::size_t last_slice_ = 0;
  DocumentNumber last_number_;
  bool has_new_key_ = true;
};

}  // namespace orrery::query

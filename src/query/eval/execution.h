// Running a query over documents that somebody else finds: one page of its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/work_budget.h"
#include "protocol/ids.h"
#include "protocol/tokens/query_continuation.h"
#include "query/plan/prepared.h"

namespace orrery::query {

struct PageLimits {
  std::uint32_t rows_max = 1000;
  std::size_t bytes_max = std::size_t{4} << 20;    ///< of the rows' text; one row always fits
  std::size_t memory_max = std::size_t{64} << 20;  ///< of groups, and of what DISTINCT remembers
};

struct ExecutionStats {
  std::uint64_t documents = 0;  ///< looked at
  std::uint64_t document_bytes = 0;
  std::uint64_t rows = 0;  ///< that passed WHERE
};

/// Not thread-safe. One page; or, of a query that has no row before the last document was seen,
/// however long that takes.
class Execution {
 public:
  enum class Next {
    More,       ///< give the next document
    SliceDone,  ///< nothing after this one in the slice can matter, if it is in the query's order
    PageDone,   ///< the page is full, or the query is at its end: see is_over()
  };

  Execution(PreparedQueryPtr query, const PageLimits& limits, RowPosition from = {});
  ~Execution();

  /// Bounds all further work by this budget, which must outlive it, one item for each document;
  /// where it stops, finish() fails. Null, as before: without a bound.
  void work_with(WorkBudget* work);

  /// Documents from here on are of the next slice. Its documents up to `after` have been emitted
  /// where their key is that of the position. Slices come in the order of their rows where keys are
  /// equal.
  void begin_slice(DocumentNumber after);
  /// A document. Stream: in the order of numbers; others: in any order, each once.
  Next take(std::string_view document, DocumentNumber number);
  /// Of a query that is_grouped() and reads nothing of documents but in WHERE: one that passes. It
  /// need not have been read, and is not counted.
  Next take_unread();
  /// Stream with DISTINCT: a document of an earlier page, so that the rows that were emitted of it
  /// do not come again.
  void remember(std::string_view document, DocumentNumber number);
  bool wants_remembering() const;
  /// Ordered, from a key that was cut: the document of the last row, which has the whole key if it
  /// has not changed since then; or there is none any more, and rows with that beginning come
  /// again. Without either they are only counted.
  void resume_at(std::string_view document);
  void forget_cut_rows();
  /// The page is to have no more rows than this, whatever was said before.
  void show_at_most(std::uint32_t rows);

  /// All documents were given (or their slices were done): makes the rows of the page.
  /// PayloadTooLarge… what an expression or a limit refuses; interruption() of the budget.
  Result<> finish();

  /// `row,row,…`
  const std::string& rows() const;
  std::string take_rows();
  std::size_t count() const;
  /// How many rows the page has room for, with those that OFFSET passes over.
  std::uint64_t wanted() const;
  /// Nothing comes after this page, whatever documents there are.
  bool is_over() const;
  /// Where the next page begins.
  const RowPosition& position() const;
  /// The slice in which the last row is, and its document: where ties go on.
  std::size_t last_slice() const;
  DocumentNumber last_number() const;
  /// Ordered: whether the key of the last row is another than that which the page began with.
  bool has_new_key() const;
  const ExecutionStats& stats() const;
  /// About how many bytes of memory it holds.
  std::size_t memory() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace orrery::query

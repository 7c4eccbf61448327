// DocumentSource: a cursor over the documents of one range that can have rows of a query.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/work_budget.h"
#include "catalog/range_map.h"
#include "partition/read/scan.h"
#include "protocol/container/container_definition.h"
#include "protocol/container/index_path.h"
#include "query/plan/access.h"
#include "query/plan/prepared.h"

namespace orrery::executor {

/// Whether indexes may be used: x-orrery-query-access.
enum class AccessChoice : std::uint8_t { Auto, Scan, Index };

class VectorSearch;
struct ScanHelpers;

/// The scope of a document source: snapshot, partition, filter and position.
struct SourceScope {
  const storage::Snapshot& snapshot;
  PartitionNumber partition;
  /// Those that the snapshot has; nothing: they are yet to be read from it.
  std::optional<storage::IndexRecords> indexes = std::nullopt;
  /// Of the partition: a short list that is nearly all of them is no better than a scan.
  std::uint64_t documents = 0;
  partition::ScanFilter filter;
  /// Of a Stream query: only documents after this one, in the order of their numbers.
  DocumentNumber after;
  /// Of an Ordered query: the sort key (all its items) from which on rows are wanted, inclusive.
  std::optional<std::string_view> from_key;
  AccessChoice choice = AccessChoice::Auto;
  /// ReadLimitReached where more entries or documents would have to be looked at to find those that
  /// are wanted.
  std::size_t entries_max = SIZE_MAX;
  /// About so many rows are wanted of it.
  std::uint64_t rows = 0;
  /// Of a query for the most similar vectors, where an index may be asked; else null.
  const VectorSearch* vectors = nullptr;
  /// Only how many documents of one key there are is wanted: nothing of them is read.
  bool only_counts = false;
  /// Threads that may read for a scan; null: none.
  const ScanHelpers* helpers = nullptr;
  /// For what is done while the walk is opened; null: without a bound.
  WorkBudget* work = nullptr;
};

/// How documents were found, for metrics and explanations.
struct SourceReport {
  enum class Way : std::uint8_t { Scan, Index, OrderedIndex, VectorIndex, Nothing };
  Way way = Way::Scan;
  std::vector<std::string> indexes;  ///< IndexSpec texts of those that served
  std::uint64_t entries_read = 0;
  std::uint64_t documents_read = 0;
  /// Of those: known to have no row before the query was asked, and not handed on.
  std::uint64_t documents_passed = 0;
  std::uint64_t bytes_passed = 0;
};

/// Goes over all documents of the scope that can pass the query's WHERE, each once; perhaps over
/// others, too. Where a vector index is asked, only over those that can be among the rows. In the
/// order of numbers for a Stream query; in any order for the others. Refers to
/// the scope's snapshot and to the query. Blocks.
class DocumentSource {
 public:
  virtual ~DocumentSource() = default;

  /// False at the end, or when something went wrong: see status().
  virtual bool next() = 0;
  virtual std::string_view text() const = 0;
  virtual DocumentNumber number() const = 0;
  /// Whether next() came to no document, but has passed over many without rows, up to number(): who
  /// has something else to see to can do it now.
  virtual bool is_pause() const { return false; }
  /// Whether documents are only counted: they have no text.
  virtual bool is_count() const { return false; }
  /// Whether all that follow come after this one in the order of the query's rows, so that an
  /// execution which wants no more of the slice can be obeyed.
  virtual bool is_in_order() const = 0;
  virtual Result<> status() const = 0;
  virtual const SourceReport& report() const = 0;
};

}  // namespace orrery::executor

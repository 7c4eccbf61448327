// ParallelScan: a scan that several threads read for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "executor/document_source.h"
#include "partition/read/document_cursor.h"
#include "query/plan/prepared.h"

namespace orrery::executor {

/// Threads that read ahead for a scan when they are idle: nobody waits for them.
struct ScanHelpers {
  using Post = std::function<void(std::move_only_function<void()>)>;
  Post post;                ///< hands work to others
  std::size_t helpers = 0;  ///< so many at a time
  /// Fewer documents are read quickly enough.
  std::uint64_t documents_min = 10'000;
  /// Of the parts that are read: about so many documents.
  std::uint64_t part_max = 8192;
};

/// A scan for few documents: they are looked at part by part, by helpers ahead of who asks for
/// them, and only those that have rows are handed on, with a pause after each part. Where many
/// documents have rows it goes on alone.
///
/// Where a part is wanted that nobody has begun it is read at once: it never waits for helpers that
/// are not at work.
class ParallelScan final : public DocumentSource {
 public:
  /// Whether it is worth it, if there are few rows.
  static bool is_for(const SourceScope& scope, const query::PreparedQuery& query);

  /// Of a Stream query documents come in the order of their numbers. Unavailable on an I/O error.
  static Result<std::unique_ptr<DocumentSource>> open(const SourceScope& scope,
                                                      const query::PreparedQuery& query);
  ~ParallelScan() override;

  bool next() override;
  std::string_view text() const override;
  DocumentNumber number() const override;
  bool is_pause() const override { return is_pause_; }
  bool is_in_order() const override { return is_stream_; }
  Result<> status() const override { return status_; }
  const SourceReport& report() const override { return report_; }

 private:
  struct Span;
  class Spans;
  struct Part;
  struct Shared;
  using PartPtr = std::shared_ptr<Part>;  // Of the window, and of who reads it.

  ParallelScan(const SourceScope& scope, const query::PreparedQuery& query, Spans spans);

  bool take_part();
  PartPtr next_part();
  std::size_t refill();

  const SourceScope scope_;
  const bool is_stream_;
  const std::unique_ptr<Spans> spans_;    // Of the parts that are to come.
  const std::shared_ptr<Shared> shared_;  // With helpers, which may come late.
  std::uint64_t part_size_;               // Grows: a page may be full soon.
  bool has_all_parts_ = false;            // They are in the window, or have been.
  bool has_many_rows_ = false;
  PartPtr part_;        // That is handed on now.
  std::size_t at_ = 0;  // Behind the document that was handed on last.
  bool is_pause_ = false;
  std::optional<partition::DocumentCursor> rest_;  // When it goes on alone.
  std::uint64_t rest_looked_at_ = 0;
  SourceReport report_;
  Result<> status_;
};

}  // namespace orrery::executor

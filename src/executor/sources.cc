#include "executor/sources.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "index/reader.h"
#include "partition/read/version_reader.h"

namespace orrery::executor {

using partition::DocumentCursor;

namespace {

/// So many versions that entries of an index name are read together, at most.
constexpr std::size_t kBatchSizeMax = 64;
/// After so many documents in a row that are not of the scope there is a pause.
constexpr std::size_t kSkippedEntriesMax = 256;

/// Goes over what a cursor finds.
class CursorSource final : public DocumentSource {
 public:
  CursorSource(DocumentCursor cursor, bool is_in_order, SourceReport report)
      : cursor_(std::move(cursor)), is_in_order_(is_in_order), report_(std::move(report)) {}

  bool next() override {
    std::size_t skipped = 0;
    bool found = cursor_.step();
    while (found && !cursor_.passes() && ++skipped < kSkippedEntriesMax) found = cursor_.step();
    is_pause_ = skipped == kSkippedEntriesMax;
    report_.documents_read = cursor_.looked_at();
    return found;
  }
  bool is_pause() const override { return is_pause_; }
  std::string_view text() const override { return cursor_.text(); }
  DocumentNumber number() const override { return cursor_.number(); }
  bool is_in_order() const override { return is_in_order_; }
  Result<> status() const override { return cursor_.status(); }
  const SourceReport& report() const override { return report_; }

 private:
  DocumentCursor cursor_;
  bool is_pause_ = false;
  bool is_in_order_;
  SourceReport report_;
};

/// Goes over an index that yields the order of the query.
class OrderedIndexSource final : public DocumentSource {
 public:
  OrderedIndexSource(const SourceScope& scope, std::uint32_t index, OrderMatch match,
                     SourceReport report)
      : snapshot_(scope.snapshot),
        partition_(scope.partition),
        filter_(scope.filter),
        index_(index),
        match_(std::move(match)),
        versions_(scope.snapshot, scope.partition),
        entries_max_(scope.entries_max),
        batch_size_(std::clamp<std::uint64_t>(scope.rows, 1, kBatchSizeMax)),
        report_(std::move(report)) {
    if (match_.is_backward) std::ranges::reverse(match_.intervals);
  }

  bool next() override {
    for (std::size_t skipped = 0;; ++skipped) {
      if (next_ == versions_.size() && !read_batch()) return false;
      place_ = next_++;
      ++report_.entries_read;
      ++report_.documents_read;
      const bool passes = filter_.passes(versions_[place_]);
      is_pause_ = !passes && skipped == kSkippedEntriesMax;
      if (passes || is_pause_) return true;
    }
  }
  bool is_pause() const override { return is_pause_; }
  std::string_view text() const override { return versions_[place_].text; }
  DocumentNumber number() const override { return versions_[place_].header.number; }
  bool is_in_order() const override { return are_in_order_[place_]; }
  Result<> status() const override { return status_; }
  const SourceReport& report() const override { return report_; }

 private:
  /// The versions that the next entries name, together. False at the end.
  bool read_batch() {
    positions_.clear();
    are_in_order_.clear();
    next_ = 0;
    while (positions_.size() < batch_size_ && next_entry()) {
      positions_.push_back(entries_->candidate().position);
      are_in_order_.push_back(!match_.is_cut(entries_->key()));
    }
    batch_size_ = std::min(batch_size_ * 2, kBatchSizeMax);
    if (report_.entries_read > entries_max_) status_ = too_many_entries();
    if (status_ && !positions_.empty()) status_ = versions_.read(positions_);
    return status_ && !positions_.empty();
  }

  bool next_entry() {
    while (true) {
      if (entries_ && entries_->next()) return true;
      if (entries_) status_ = entries_->status();
      if (!status_ || at_ == match_.intervals.size()) return false;
      auto& interval = match_.intervals[at_++];
      entries_.emplace(snapshot_, partition_, index_, std::move(interval.low),
                       std::move(interval.high), match_.is_backward);
    }
  }

  const storage::Snapshot& snapshot_;
  const PartitionNumber partition_;
  const partition::ScanFilter filter_;
  const std::uint32_t index_;
  OrderMatch match_;
  std::size_t at_ = 0;  // The next interval.
  std::optional<index::IndexCursor> entries_;
  partition::VersionBatch versions_;
  const std::size_t entries_max_;
  std::size_t batch_size_;
  std::vector<storage::LogPosition> positions_;
  std::vector<bool> are_in_order_;
  std::size_t place_ = 0;  // In the batch.
  std::size_t next_ = 0;
  bool is_pause_ = false;
  SourceReport report_;
  Result<> status_;
};

/// Counts documents that were found without being read.
class CountSource final : public DocumentSource {
 public:
  CountSource(std::uint64_t count, SourceReport report)
      : left_(count), report_(std::move(report)) {}

  bool next() override { return left_ > 0 && left_-- > 0; }
  std::string_view text() const override { return {}; }
  DocumentNumber number() const override { return {}; }
  bool is_count() const override { return true; }
  bool is_in_order() const override { return false; }
  Result<> status() const override { return {}; }
  const SourceReport& report() const override { return report_; }

 private:
  std::uint64_t left_;
  SourceReport report_;
};

}  // namespace

Error too_many_entries() {
  return {ErrorCode::ReadLimitReached, "more entries than the query may look at"};
}

std::unique_ptr<DocumentSource> make_cursor_source(DocumentCursor cursor, bool is_in_order,
                                                   SourceReport report) {
  return std::make_unique<CursorSource>(std::move(cursor), is_in_order, std::move(report));
}

std::unique_ptr<DocumentSource> make_ordered_index_source(const SourceScope& scope,
                                                          std::uint32_t index, OrderMatch match,
                                                          SourceReport report) {
  return std::make_unique<OrderedIndexSource>(scope, index, std::move(match), std::move(report));
}

std::unique_ptr<DocumentSource> make_count_source(std::uint64_t count, SourceReport report) {
  return std::make_unique<CountSource>(count, std::move(report));
}

}  // namespace orrery::executor

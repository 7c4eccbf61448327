#include "executor/parallel_scan.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "index/log_cursor.h"
#include "query/eval/row_finder.h"

namespace orrery::executor {

using partition::DocumentCursor;
using storage::LogPosition;

namespace {

using SteadyClock = std::chrono::steady_clock;
using Shape = query::PreparedQuery::Shape;

/// Where more than this share of the documents have rows, looking twice does not pay.
constexpr std::uint64_t kFewPart = 4;
/// Limits for one read of a part: documents that are handed on, documents without rows, time.
constexpr std::size_t kPartBytesMax = std::size_t{1} << 20;
constexpr std::size_t kLookedAtBytesMax = std::size_t{16} << 20;
constexpr std::chrono::milliseconds kPartTimeMax{20};
/// After so many documents in a row that are not of the scope there is a pause.
constexpr std::size_t kSkippedMax = 256;
/// Parts that are read or waiting, for each helper.
constexpr std::size_t kPartsPerHelper = 2;
/// A helper lets others have their turn after this time.
constexpr std::chrono::milliseconds kHelpMax{50};
/// Parts are so large at first, and each is twice as large as the one before.
constexpr std::uint64_t kPartFirst = 128;
/// From such a part on there is enough left for helpers, most probably.
constexpr std::uint64_t kPartWithHelp = 1024;

}  // namespace

/// Of a scan, whichever way it goes.
struct ParallelScan::Span {
  bool is_by_number = false;
  DocumentNumber after{};
  DocumentNumber last = DocumentCursor::kLastDocument;
  DocumentCursor::LogPart log{};
  bool is_last = false;
};

/// Divides a scan into parts.
class ParallelScan::Spans {
 public:
  static Result<Spans> make(const SourceScope& scope, bool is_stream) {
    ORRERY_TRY(const auto head, index::head_in(scope.snapshot, scope.partition));
    Spans spans;
    // The log is the quickest way, also in the order of numbers where it has that.
    if (is_stream && head.is_reordered) {
      spans.next_.is_by_number = true;
      spans.next_.after = scope.after;
      spans.numbers_.emplace(scope.snapshot, scope.partition, scope.after);
      return spans;
    }
    if (is_stream && scope.after != DocumentNumber{}) {
      ORRERY_TRY(const auto place,
                 partition::place_in_log(scope.snapshot, scope.partition, scope.after));
      spans.next_.log.begin = place.value_or(LogPosition{orrery::next(head.lsn), 0});
    }
    spans.end_ = head.lsn;
    const auto documents = std::max<std::uint64_t>(head.documents, 1);
    const auto lsns = static_cast<double>(head.lsns_above(Lsn{}));
    spans.lsns_per_document_ = lsns / static_cast<double>(documents);
    spans.advanced_ = [head](Lsn from, std::uint64_t count) { return head.advanced(from, count); };
    return spans;
  }

  /// About so many documents.
  Span next(std::uint64_t documents) {
    Span span = next_;
    if (numbers_) {
      const auto last = numbers_->step(documents);
      span.is_last = !last;
      if (last) span.last = next_.after = *last;
      return span;
    }
    const double lsns = static_cast<double>(documents) * lsns_per_document_;
    const Lsn end = advanced_(span.log.begin.lsn, static_cast<std::uint64_t>(std::max(lsns, 1.0)));
    span.is_last = end > end_;
    if (!span.is_last) span.log.end = next_.log.begin.lsn = end;
    next_.log.begin.index = 0;
    return span;
  }

  /// All that is left.
  const Span& rest() const { return next_; }

 private:
  Span next_;
  std::optional<partition::NumberSteps> numbers_;
  double lsns_per_document_ = 1;
  std::function<Lsn(Lsn from, std::uint64_t count)> advanced_;  // Over gaps in the LSNs.
  Lsn end_{0};
};

/// A part of the scan. Its reader has exclusive access.
struct ParallelScan::Part {
  enum class State : std::uint8_t { Waiting, Reading, Read };
  State state = State::Waiting;  // Guarded by Shared::mutex.

  Span span;
  std::optional<DocumentCursor> cursor;
  bool is_at_end = false;  // Else there is more than fits: the cursor has it.
  std::uint64_t looked_at = 0;
  DocumentNumber last;       // That was looked at.
  std::uint64_t passed = 0;  // That have no row.
  std::uint64_t passed_bytes = 0;
  struct Document {
    DocumentNumber number;
    std::size_t begin;
    std::size_t size;
  };
  std::vector<Document> documents;
  std::string texts;
  Result<> status;

  void add_document() {
    documents.push_back({cursor->number(), texts.size(), cursor->text().size()});
    texts += cursor->text();
  }
};

struct ParallelScan::Shared {
  Shared(const SourceScope& walk_scope, const query::PreparedQuery& prepared)
      : scope(walk_scope), query(prepared) {
    if (walk_scope.work == nullptr) return;
    cancellation = walk_scope.work->cancellation();
    item_time_max = walk_scope.work->limits().item_time_max;
  }

  const SourceScope& scope;
  const query::PreparedQuery& query;
  // Of the query's work budget; each read of a part has a budget of its own.
  Cancellation cancellation;
  WorkLimits::Duration item_time_max = WorkLimits::Duration::max();
  std::atomic<bool> is_closed = false;

  std::mutex mutex;  // Guards everything below.
  std::condition_variable changed;
  std::deque<PartPtr> window;  // In the order of the scan.
  std::size_t helpers = 0;     // That are posted or at work.
  std::size_t reading = 0;     // Helpers that read a part.

  DocumentCursor open(const Span& span) const {
    if (span.is_by_number) {
      return DocumentCursor::by_number(scope.snapshot, scope.partition, span.after, scope.filter,
                                       span.last);
    }
    return DocumentCursor::in_log(scope.snapshot, scope.partition, scope.filter, span.log);
  }

  /// The part, or more of it.
  void read(Part& part) const {
    if (!part.cursor) part.cursor.emplace(open(part.span));
    DocumentCursor& cursor = *part.cursor;
    WorkBudget work({.deadline = SteadyClock::now() + kPartTimeMax, .item_time_max = item_time_max},
                    cancellation);
    const std::uint64_t before = cursor.looked_at();
    query::RowFinder rows(query, work);
    part.documents.clear();
    part.texts.clear();
    part.passed = part.passed_bytes = 0;
    const auto is_enough = [&] {
      const std::uint64_t looked_at = cursor.looked_at() - before;
      return looked_at >= scope.helpers->part_max || part.texts.size() >= kPartBytesMax ||
             part.passed_bytes >= kLookedAtBytesMax || work.is_over() || work.has_stopped();
    };
    do {
      part.is_at_end = !cursor.next();
      if (part.is_at_end) break;
      part.last = cursor.number();
      if (rows.finds_row_in(cursor.text())) {
        part.add_document();
      } else {
        ++part.passed;
        part.passed_bytes += cursor.text().size();
      }
    } while (!is_enough() && !is_closed.load(std::memory_order_relaxed));
    part.looked_at = cursor.looked_at() - before;
    part.status = cursor.status();
    if (part.is_at_end) part.cursor.reset();
  }

  void read(const PartPtr& part, std::unique_lock<std::mutex>& lock) const {
    part->state = Part::State::Reading;
    lock.unlock();
    read(*part);
    lock.lock();
    part->state = Part::State::Read;
  }

  PartPtr first_waiting() const {
    const auto found = std::ranges::find(window, Part::State::Waiting, &Part::state);
    return found == window.end() ? nullptr : *found;
  }

  /// Of a helper: reads parts until there is none. False when others should have their turn before
  /// it goes on.
  bool help() {
    const auto deadline = SteadyClock::now() + kHelpMax;
    std::unique_lock lock(mutex);
    while (true) {
      const PartPtr part = is_closed ? nullptr : first_waiting();
      if (!part) {
        --helpers;
        return true;
      }
      if (SteadyClock::now() > deadline) return false;
      ++reading;
      read(part, lock);
      --reading;
      changed.notify_all();
    }
  }

  static void post_helper(const std::shared_ptr<Shared>& shared, const ScanHelpers::Post& post) {
    post([shared, post] {
      if (!shared->help()) post_helper(shared, post);
    });
  }
};

bool ParallelScan::is_for(const SourceScope& scope, const query::PreparedQuery& query) {
  return scope.helpers != nullptr && scope.helpers->helpers > 0 &&
         scope.documents >= scope.helpers->documents_min && query.tree().where != nullptr;
}

Result<std::unique_ptr<DocumentSource>> ParallelScan::open(const SourceScope& scope,
                                                           const query::PreparedQuery& query) {
  ORRERY_TRY(auto spans, Spans::make(scope, query.shape() == Shape::Stream));
  return std::unique_ptr<DocumentSource>(new ParallelScan(scope, query, std::move(spans)));
}

ParallelScan::ParallelScan(const SourceScope& scope, const query::PreparedQuery& query, Spans spans)
    : scope_(scope),
      is_stream_(query.shape() == Shape::Stream),
      spans_(std::make_unique<Spans>(std::move(spans))),
      shared_(std::make_shared<Shared>(scope_, query)),
      part_size_(std::min(kPartFirst, scope.helpers->part_max)) {
  report_.way = SourceReport::Way::Scan;
}

ParallelScan::~ParallelScan() {
  std::unique_lock lock(shared_->mutex);
  shared_->is_closed = true;
  shared_->changed.wait(lock, [&] { return shared_->reading == 0; });
  // Helpers that come late keep the rest alive, but what was read is of the snapshot.
  shared_->window.clear();
}

std::string_view ParallelScan::text() const {
  if (rest_) return rest_->text();
  if (is_pause_) return {};
  const auto& document = part_->documents[at_ - 1];
  return std::string_view(part_->texts).substr(document.begin, document.size);
}

DocumentNumber ParallelScan::number() const {
  if (rest_) return rest_->number();
  return is_pause_ ? part_->last : part_->documents[at_ - 1].number;
}

bool ParallelScan::next() {
  while (status_ && !rest_) {
    if (part_ && at_ < part_->documents.size()) {
      ++at_;
      return true;
    }
    is_pause_ = !is_pause_ && part_ && part_->passed > 0;
    if (is_pause_) return true;
    if (!take_part()) return false;
  }
  if (!status_) return false;
  std::size_t skipped = 0;
  bool found = rest_->step();
  while (found && !rest_->passes() && ++skipped < kSkippedMax) found = rest_->step();
  is_pause_ = skipped == kSkippedMax;
  status_ = rest_->status();
  report_.documents_read += rest_->looked_at() - std::exchange(rest_looked_at_, rest_->looked_at());
  return found;
}

/// Takes the next part, once it is read. False at the end.
bool ParallelScan::take_part() {
  at_ = 0;
  if (part_ && !part_->is_at_end) {
    shared_->read(*part_);
  } else {
    if (part_ && part_->span.is_last) return false;
    part_ = next_part();
    if (!part_) {
      rest_.emplace(shared_->open(spans_->rest()));
      return true;
    }
  }
  status_ = part_->status;
  has_many_rows_ =
      has_many_rows_ || part_->documents.size() * kFewPart > part_->looked_at + kFewPart;
  report_.documents_read += part_->looked_at;
  report_.documents_passed += part_->passed;
  report_.bytes_passed += part_->passed_bytes;
  return status_.has_value();
}

/// Null when it is better to go on alone.
ParallelScan::PartPtr ParallelScan::next_part() {
  std::unique_lock lock(shared_->mutex);
  if (!has_many_rows_) {
    const std::size_t helpers = refill();
    lock.unlock();
    for (std::size_t i = 0; i < helpers; ++i) Shared::post_helper(shared_, scope_.helpers->post);
    lock.lock();
  }
  if (shared_->window.empty()) return nullptr;
  PartPtr part = std::move(shared_->window.front());
  shared_->window.pop_front();
  while (part->state != Part::State::Read) {
    // Where somebody else reads it, there is another one to read meanwhile.
    const bool is_begun = part->state == Part::State::Reading;
    const PartPtr mine = is_begun ? shared_->first_waiting() : part;
    if (mine) {
      shared_->read(mine, lock);
    } else {
      shared_->changed.wait(lock);
    }
  }
  return part;
}

/// Says how many helpers are to be called.
std::size_t ParallelScan::refill() {
  const bool is_warm = part_size_ >= std::min(kPartWithHelp, scope_.helpers->part_max);
  const std::size_t parts = is_warm ? 1 + scope_.helpers->helpers * kPartsPerHelper : 1;
  while (shared_->window.size() < parts && !has_all_parts_) {
    auto part = std::make_shared<Part>();
    part->span = spans_->next(part_size_);
    has_all_parts_ = part->span.is_last;
    shared_->window.push_back(std::move(part));
    part_size_ = std::min(part_size_ * 2, scope_.helpers->part_max);
  }
  if (!is_warm) return 0;
  const std::size_t called = scope_.helpers->helpers - shared_->helpers;
  shared_->helpers += called;
  return called;
}

}  // namespace orrery::executor

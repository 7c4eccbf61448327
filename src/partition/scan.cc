#include "partition/scan.h"

namespace orrery::partition {
namespace {

/// The deadline is looked at once in so many documents.
constexpr std::size_t kDeadlineInterval = 64;

/// Collects a page.
class Collector {
 public:
  Collector(const ScanBudget& budget, std::string& text, std::size_t& count)
      : budget_(budget), text_(text), count_(count) {}

  bool full() const { return count_ >= budget_.count_max; }
  /// False when it does not fit any more.
  bool add(std::string_view document) {
    if (full() || (count_ > 0 && text_.size() + 1 + document.size() > budget_.bytes_max)) {
      return false;
    }
    if (count_ > 0) text_.push_back(',');
    text_.append(document);
    ++count_;
    return true;
  }
  bool out_of_time() {
    return ++looked_at_ % kDeadlineInterval == 0 &&
           std::chrono::steady_clock::now() > budget_.deadline;
  }

 private:
  const ScanBudget& budget_;
  std::string& text_;
  std::size_t& count_;
  std::size_t looked_at_ = 0;
};

}  // namespace

Result<ScanOutcome> scan_by_number(const storage::Snapshot& snapshot, PartitionNumber partition,
                                   DocumentNumber after, const ScanFilter& filter,
                                   const ScanBudget& budget, std::string& text,
                                   std::size_t& count) {
  Collector collector(budget, text, count);
  ScanOutcome outcome{.exhausted = false, .last = after};
  auto cursor = DocumentCursor::by_number(snapshot, partition, after, filter);
  while (cursor.step()) {
    if (cursor.passes() && !collector.add(cursor.text())) return outcome;
    outcome.last = cursor.number();
    if (collector.out_of_time()) {
      outcome.exhausted = !cursor.step();
      ORRERY_TRY(cursor.status());
      return outcome;
    }
  }
  ORRERY_TRY(cursor.status());
  outcome.exhausted = true;
  return outcome;
}

}  // namespace orrery::partition

#include "partition/read/scan.h"

namespace orrery::partition {
namespace {

/// The cost of finding a document besides its length: see WorkBudget.
constexpr std::uint64_t kDocumentSteps = 8;

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
  /// After a document of so many bytes. False when the work must end.
  bool spend(std::size_t bytes) {
    budget_.work.begin_item();
    return budget_.work.spend(kDocumentSteps + WorkBudget::steps_of(bytes));
  }
  bool out_of_time() const { return budget_.work.is_over(); }

 private:
  const ScanBudget& budget_;
  std::string& text_;
  std::size_t& count_;
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
    if (!collector.spend(cursor.text().size())) return interruption(budget.work);
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

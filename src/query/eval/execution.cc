#include "query/eval/execution.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "query/eval/grouped_rows.h"
#include "query/eval/ordered_rows.h"
#include "query/eval/page.h"
#include "query/eval/rows.h"
#include "query/eval/stream_rows.h"

namespace orrery::query {
namespace {

using json::Value;

/// Sorting and grouping after the last document may take so many times as long as one document.
constexpr int kFinishShares = 5;

}  // namespace

class Execution::Impl {
 public:
  Impl(PreparedQueryPtr query, const PageLimits& limits, RowPosition from)
      : query_(std::move(query)), page_(*query_, limits, std::move(from)) {
    const bool is_grouped =
        query_->shape() == PreparedQuery::Shape::Grouped && page_.tree.is_grouped();
    if (query_->shape() == PreparedQuery::Shape::Ordered) {
      visit_ = [this] { return ordered_.take_row(); };
    } else if (is_grouped) {
      grouped_.emplace(page_);
      visit_ = [this] { return grouped_->take_row(); };
    } else {
      // A Grouped query without groups is over the rows of another one, which come in one order.
      visit_ = [this] { return streamed_.take_row(); };
    }
    if (query_->inner()) {
      PageLimits inner_limits = limits;
      inner_limits.rows_max = std::numeric_limits<std::uint32_t>::max();
      inner_limits.bytes_max = limits.memory_max;
      inner_ = std::make_unique<Execution>(query_->inner(), inner_limits);
      inner_->begin_slice({});
    }
  }

  Page& page() { return page_; }
  const OrderedRows& ordered() const { return ordered_; }

  void work_with(WorkBudget* work) {
    page_.frame.work = work;
    if (inner_) inner_->work_with(work);
  }

  void show_at_most(std::uint32_t rows) {
    page_.limits.rows_max = std::min(page_.limits.rows_max, rows);
  }

  void begin_slice(DocumentNumber after) { ordered_.begin_slice(after); }

  Next take(std::string_view document, DocumentNumber number) {
    if (page_.is_over() || page_.frame.failure) return Next::PageDone;
    ++page_.stats.documents;
    page_.stats.document_bytes += document.size();
    if (inner_)
      return inner_->take(document, number) == Next::PageDone ? Next::PageDone : Next::More;
    if (!spend_for(document)) return Next::PageDone;
    return take_value(Value::of_object(document), number);
  }

  Next take_unread() {
    put_in_frame(Value::of_object("{}"));
    visit_();
    return page_.frame.failure ? Next::PageDone : Next::More;
  }

  bool wants_remembering() const {
    return query_->shape() == PreparedQuery::Shape::Stream && page_.tree.is_distinct;
  }

  void remember(std::string_view document, DocumentNumber number) {
    if (!spend_for(document)) return;
    put_in_frame(Value::of_object(document));
    const std::uint32_t shown = page_.resumed.shown_rows_of(number);
    streamed_.remember_rows(shown == 0 ? std::numeric_limits<std::uint32_t>::max() : shown);
  }

  void resume_at(std::string_view document) {
    if (!spend_for(document)) return;
    put_in_frame(Value::of_object(document));
    for_each_row(page_.tree, page_.frame, [this] {
      ordered_.resume_at_row();
      return false;
    });
    forget_cut_rows();
  }

  /// Where it is not there as it was, the rows with this beginning come again: counting them would
  /// leave some out if others have gone.
  void forget_cut_rows() { page_.resumed.cut_rows = 0; }

  Result<> finish() {
    if (page_.frame.work != nullptr) page_.frame.work->begin_item(kFinishShares);
    if (inner_) ORRERY_TRY(take_inner_rows());
    if (page_.frame.failure) return Error(*page_.frame.failure);
    const bool is_stream = query_->shape() == PreparedQuery::Shape::Stream;
    if (!query_->reads_documents() && !inner_ && !page_.is_over()) {
      // There is one row, of no document.
      begin_slice({});
      page_.frame.begin_row();
      page_.number = {};
      page_.place = 0;
      for_each_row(page_.tree, page_.frame, visit_);
      page_.is_last = is_stream && !page_.is_full;
    }
    if (grouped_) ORRERY_TRY(grouped_->emit());
    if (query_->shape() == PreparedQuery::Shape::Ordered) ordered_.emit();
    if (is_stream) streamed_.finish();
    if (page_.frame.failure) return Error(*page_.frame.failure);
    return {};
  }

  std::size_t memory() const {
    return page_.rows.size() + ordered_.memory() + streamed_.memory() +
           (grouped_ ? grouped_->memory() : 0) + (inner_ ? inner_->memory() : 0);
  }

 private:
  bool spend_for(std::string_view document) {
    if (page_.frame.work != nullptr) page_.frame.work->begin_item();
    return page_.frame.spend(kDocumentSteps + WorkBudget::steps_of(document.size()));
  }

  void put_in_frame(const Value& document) {
    page_.frame.begin_row();
    page_.frame.row.set(0, document);
  }

  Next take_value(const Value& document, DocumentNumber number) {
    put_in_frame(document);
    page_.number = number;
    page_.place = 0;
    page_.is_slice_done = false;
    for_each_row(page_.tree, page_.frame, visit_);
    if (page_.frame.failure || page_.is_full) return Next::PageDone;
    if (query_->shape() == PreparedQuery::Shape::Stream) {
      streamed_.end_document();
      if (page_.is_over()) return Next::PageDone;
    }
    return page_.is_slice_done ? Next::SliceDone : Next::More;
  }

  /// Whether it has shown the rows of all documents that were given.
  bool has_shown_all() const { return grouped_ ? page_.is_over() : !page_.is_full; }

  /// FROM (SELECT DISTINCT …): the rows of the inner query are the documents of this one.
  Result<> take_inner_rows() {
    ORRERY_TRY(inner_->finish());
    if (!inner_->impl_->has_shown_all()) {
      return too_much_memory("the subquery after FROM has too many rows");
    }
    const std::string rows = "[" + inner_->take_rows() + "]";
    const Value all = Value::of_checked(rows);
    const DocumentNumber shown_last = page_.resumed.partials.front().shown.number;
    std::uint64_t number = 0;
    // They count as one slice, in which ties go on after the row that was shown last.
    begin_slice(shown_last);
    const bool is_streamed = !grouped_ && page_.tree.order_by.empty();
    for (json::Reader reader(all); reader.next() && page_.frame.spend();) {
      ++number;
      if (is_streamed && number < shown_last.value) {
        if (!page_.tree.is_distinct) continue;
        put_in_frame(reader.value());
        streamed_.remember_rows(std::numeric_limits<std::uint32_t>::max());
        continue;
      }
      if (take_value(reader.value(), DocumentNumber{number}) == Next::PageDone) break;
    }
    if (is_streamed && !page_.is_full) page_.is_last = true;
    return {};
  }

  const PreparedQueryPtr query_;
  Page page_;
  RowVisitor visit_;
  StreamRows streamed_{page_};
  OrderedRows ordered_{page_};
  std::optional<GroupedRows> grouped_;
  std::unique_ptr<Execution> inner_;
};

Execution::Execution(PreparedQueryPtr query, const PageLimits& limits, RowPosition from)
    : impl_(std::make_unique<Impl>(std::move(query), limits, std::move(from))) {}
Execution::~Execution() = default;

void Execution::work_with(WorkBudget* work) { impl_->work_with(work); }
void Execution::begin_slice(DocumentNumber after) { impl_->begin_slice(after); }
Execution::Next Execution::take(std::string_view document, DocumentNumber number) {
  return impl_->take(document, number);
}
Execution::Next Execution::take_unread() { return impl_->take_unread(); }
void Execution::remember(std::string_view document, DocumentNumber number) {
  impl_->remember(document, number);
}
bool Execution::wants_remembering() const { return impl_->wants_remembering(); }
void Execution::resume_at(std::string_view document) { impl_->resume_at(document); }
void Execution::forget_cut_rows() { impl_->forget_cut_rows(); }
void Execution::show_at_most(std::uint32_t rows) { impl_->show_at_most(rows); }
Result<> Execution::finish() { return impl_->finish(); }
const std::string& Execution::rows() const { return impl_->page().rows; }
std::string Execution::take_rows() { return std::move(impl_->page().rows); }
std::size_t Execution::count() const { return impl_->page().count; }
std::uint64_t Execution::wanted() const { return impl_->page().wanted(); }
bool Execution::is_over() const { return impl_->page().is_over(); }
const RowPosition& Execution::position() const { return impl_->page().position; }
std::size_t Execution::last_slice() const { return impl_->ordered().last_slice(); }
DocumentNumber Execution::last_number() const { return impl_->ordered().last_number(); }
bool Execution::has_new_key() const { return impl_->ordered().has_new_key(); }
const ExecutionStats& Execution::stats() const { return impl_->page().stats; }
std::size_t Execution::memory() const { return impl_->memory(); }

}  // namespace orrery::query

#include "query/eval/execution.h"

#include <algorithm>
#include <limits>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/fnv1a.h"
#include "json/sort_key.h"
#include "query/eval/aggregate.h"
#include "query/eval/evaluate.h"
#include "query/eval/rows.h"
#include "query/eval/waiting_rows.h"

namespace orrery::query {
namespace {

using json::Value;

using SeenSet = std::unordered_set<json::Hash128, RowHashHash>;

/// The text of a page has room for so much at once: some documents.
constexpr std::size_t kRowsBytesFirst = std::size_t{16} << 10;

/// Sorting and grouping after the last document may take so many times as long as one document.
constexpr int kFinishShares = 5;

Error too_much_memory(std::string_view what) {
  return Error(ErrorCode::RequestTooLarge,
               fmt::format("The query needs more memory than a request may have: {}. Filter more, "
                           "or group by less.",
                           what));
}

}  // namespace

class Execution::Impl {
 public:
  Impl(PreparedQueryPtr query, const PageLimits& limits, RowPosition from)
      : query_(std::move(query)),
        tree_(query_->tree()),
        limits_(limits),
        frame_(query_->sources()) {
    position_ = std::move(from);
    frame_.surroundings = &query_->surroundings();
    frame_.user_functions = query_->user_functions();
    skip_ = tree_.offset ? tree_.offset->value : 0;
    take_ = std::numeric_limits<std::uint64_t>::max();
    if (tree_.limit) take_ = tree_.limit->value;
    if (tree_.top) take_ = std::min(take_, tree_.top->value);
    resume_key_ = position_.key;
    resume_cut_rows_ = position_.cut_rows;
    resume_partials_.push_back({position_.partial});
    for (const RowPosition::Partial& other : position_.others) resume_partials_.push_back({other});
    position_.partial = {};
    position_.others.clear();
    if (query_->shape() == PreparedQuery::Shape::Grouped && tree_.is_grouped()) {
      groups_.emplace(tree_);
    }
    if (query_->inner()) {
      PageLimits inner_limits = limits;
      inner_limits.rows_max = std::numeric_limits<std::uint32_t>::max();
      inner_limits.bytes_max = limits.memory_max;
      inner_ = std::make_unique<Execution>(query_->inner(), inner_limits);
      inner_->begin_slice({});
    }
    switch (query_->shape()) {
      case PreparedQuery::Shape::Ordered:
        visit_ = [this] { return take_ordered_row(); };
        break;
      case PreparedQuery::Shape::Grouped:
        // Without groups it is over the rows of another query, which come in one order.
        visit_ = tree_.is_grouped() ? RowVisitor([this] { return take_grouped_row(); })
                                    : RowVisitor([this] { return take_stream_row(); });
        break;
      default:
        visit_ = [this] { return take_stream_row(); };
    }
  }

  void work_with(WorkBudget* work) {
    frame_.work = work;
    if (inner_) inner_->work_with(work);
  }

  void show_at_most(std::uint32_t rows) { limits_.rows_max = std::min(limits_.rows_max, rows); }

  void begin_slice(DocumentNumber after) {
    slice_ = afters_.size();
    afters_.push_back(after);
  }

  Next take(std::string_view document, DocumentNumber number) {
    if (is_over() || frame_.failure) return Next::PageDone;
    ++stats_.documents;
    stats_.document_bytes += document.size();
    if (inner_)
      return inner_->take(document, number) == Next::PageDone ? Next::PageDone : Next::More;
    if (!begin_document(document)) return Next::PageDone;
    return take_value(Value::of_object(document), number);
  }

  Next take_unread() {
    frame_.begin_row();
    frame_.row.set(0, Value::of_object("{}"));
    visit_();
    return frame_.failure ? Next::PageDone : Next::More;
  }

  void remember(std::string_view document, DocumentNumber number) {
    if (!begin_document(document)) return;
    frame_.begin_row();
    frame_.row.set(0, Value::of_object(document));
    const std::uint32_t shown = shown_rows_of(number);
    remember_rows(shown == 0 ? std::numeric_limits<std::uint32_t>::max() : shown);
  }

  void remember_rows(std::uint32_t rows_max) {
    for_each_row(tree_, frame_, [this, left = rows_max]() mutable {
      const Value value = selected(tree_, frame_);
      if (!value.is_undefined()) is_new(value);
      return --left > 0;
    });
  }

  void resume_at(std::string_view document) {
    if (!begin_document(document)) return;
    frame_.begin_row();
    frame_.row.set(0, Value::of_object(document));
    for_each_row(tree_, frame_, [this] {
      std::string key = sort_key();
      if (key.starts_with(*resume_key_) && fnv1a(key) == position_.cut_hash) {
        resume_key_ = std::move(key);
      }
      return false;
    });
    forget_cut_rows();
  }

  /// Where it is not there as it was, the rows with this beginning come again: counting them would
  /// leave some out if others have gone.
  void forget_cut_rows() { resume_cut_rows_ = 0; }

  bool wants_remembering() const {
    return query_->shape() == PreparedQuery::Shape::Stream && tree_.is_distinct;
  }

  Result<> finish() {
    if (frame_.work != nullptr) frame_.work->begin_item(kFinishShares);
    if (inner_) ORRERY_TRY(take_inner_rows());
    if (frame_.failure) return Error(*frame_.failure);
    if (!query_->reads_documents() && !inner_ && !is_over()) {
      // There is one row, of no document.
      begin_slice({});
      frame_.begin_row();
      number_ = {};
      place_ = 0;
      for_each_row(tree_, frame_, visit_);
      is_over_ = query_->shape() == PreparedQuery::Shape::Stream && !is_page_full_;
    }
    if (groups_) ORRERY_TRY(emit_groups());
    if (query_->shape() == PreparedQuery::Shape::Ordered) emit_ordered();
    if (query_->shape() == PreparedQuery::Shape::Stream) keep_partials();
    if (frame_.failure) return Error(*frame_.failure);
    return {};
  }

  /// How many rows may matter for this page: those that are shown, and those that OFFSET passes
  /// over before.
  std::uint64_t wanted() const {
    const std::uint64_t skipping = skip_ - std::min(skip_, position_.skipped);
    const std::uint64_t showing = std::min<std::uint64_t>(limits_.rows_max, left_to_take());
    return skipping + showing + resume_cut_rows_;
  }

  bool is_over() const { return is_over_ || position_.emitted >= take_; }
  /// Of all documents that were given.
  bool has_shown_all() const { return groups_ ? is_over() : !is_page_full_; }

  std::string rows_;
  std::size_t count_ = 0;
  RowPosition position_;
  ExecutionStats stats_;
  std::size_t last_slice_ = 0;
  DocumentNumber last_number_;
  bool has_new_key_ = true;

  std::size_t memory() const {
    return rows_.size() + waiting_.memory() + (groups_ ? groups_->memory() : 0) +
           seen_.size() * kSeenBytes + (inner_ ? inner_->memory() : 0);
  }

 private:
  bool begin_document(std::string_view document) {
    if (frame_.work != nullptr) frame_.work->begin_item();
    return frame_.spend(kDocumentSteps + WorkBudget::steps_of(document.size()));
  }

  Next take_value(const Value& document, DocumentNumber number) {
    frame_.begin_row();
    frame_.row.set(0, document);
    number_ = number;
    place_ = 0;
    is_slice_done_ = false;
    for_each_row(tree_, frame_, visit_);
    if (frame_.failure || is_page_full_) return Next::PageDone;
    if (query_->shape() == PreparedQuery::Shape::Stream) {
      position_.partial = {};
      for (Partial& each : resume_partials_) {
        if (each.shown.number == number) each = {};
      }
      if (is_over()) return Next::PageDone;
    }
    return is_slice_done_ ? Next::SliceDone : Next::More;
  }

  // ── Row by row ──

  /// A document of which earlier pages have shown so many rows, but not all.
  struct Partial {
    RowPosition::Partial shown;
    std::optional<std::size_t> slice =
        std::nullopt;  // Where its rows with the resume key were met.
  };

  /// 0: none, or all of them.
  std::uint32_t shown_rows_of(DocumentNumber number) const {
    for (const Partial& each : resume_partials_) {
      if (each.shown.rows > 0 && each.shown.number == number) return each.shown.rows;
    }
    return 0;
  }

  /// Documents whose rows were emitted in part, in slices further on, stay in the position.
  void keep_partials() {
    for (const Partial& each : resume_partials_) {
      if (each.shown.rows == 0 || each.shown.number == position_.partial.number) continue;
      if (position_.partial.rows == 0) {
        position_.partial = each.shown;
      } else {
        keep_other(each);
      }
    }
  }

  void keep_other(const Partial& other) {
    if (position_.others.size() < RowPosition::kOthersMax) position_.others.push_back(other.shown);
  }

  bool take_stream_row() {
    ++stats_.rows;
    // Of a document that the last page has shown in part.
    if (place_ < shown_rows_of(number_)) {
      if (tree_.is_distinct) is_new(selected(tree_, frame_));
      return pass_over();
    }
    const std::size_t before = rows_.size();
    if (tree_.is_distinct) {
      const Value value = selected(tree_, frame_);
      if (value.is_undefined()) return pass_over();
      if (!check_number(value)) return false;
      // A page that is full must not remember what it did not show.
      if (count_ >= limits_.rows_max && !is_seen(value)) return page_is_full();
      if (!is_new(value)) return pass_over();
      if (position_.skipped < skip_) return skip_row();
      separate();
      value.append_to(rows_);
    } else {
      if (count_ >= limits_.rows_max) return page_is_full();
      if (position_.skipped < skip_) {
        Value scratch;
        if (!is_row_defined(scratch)) return pass_over();
        return skip_row();
      }
      separate();
      if (!append_row(rows_)) {
        rows_.resize(before);
        return pass_over();
      }
    }
    if (count_ > 0 && rows_.size() > limits_.bytes_max) {
      rows_.resize(before);
      return page_is_full();
    }
    ++count_;
    ++position_.emitted;
    ++place_;
    remember_place();
    return position_.emitted < take_;
  }

  /// The row shows nothing: it is dealt with.
  bool pass_over() {
    ++place_;
    remember_place();
    return true;
  }
  bool skip_row() {
    ++position_.skipped;
    return pass_over();
  }
  bool page_is_full() {
    is_page_full_ = true;
    return false;
  }
  void remember_place() { position_.partial = {number_, place_}; }
  void separate() {
    if (count_ > 0) rows_.push_back(',');
    if (rows_.empty()) rows_.reserve(kRowsBytesFirst);
  }

  /// Whether the select list shows anything; VALUE may be undefined.
  bool is_row_defined(Value& scratch) {
    if (tree_.selection.kind != Selection::Kind::Value) return true;
    return !evaluate(*tree_.selection.items.front().expression, frame_, scratch).is_undefined();
  }

  bool append_row(std::string& out) {
    bool has_unfit_number = false;
    const bool is_defined = append_selected(tree_, frame_, out, has_unfit_number);
    if (has_unfit_number) frame_.failure = number_not_in_json();
    return is_defined;
  }

  bool check_number(const Value& value) {
    if (!has_number_not_in_json(value)) return true;
    frame_.failure = number_not_in_json();
    return false;
  }

  bool is_seen(const Value& value) const { return seen_.contains(json::hash_of(value)); }
  bool is_new(const Value& value) {
    if (!seen_.insert(json::hash_of(value)).second) return false;
    if (seen_.size() * kSeenBytes > limits_.memory_max) {
      frame_.failure = too_much_memory("DISTINCT has too many different rows to remember");
    }
    return true;
  }

  // ── ORDER BY ──

  std::uint64_t left_to_take() const { return take_ - std::min(take_, position_.emitted); }

  bool take_ordered_row() {
    ++stats_.rows;
    WaitingRow row;
    row.key = sort_key();
    row.slice = slice_;
    row.number = number_;
    row.place = place_++;
    for (Partial& each : resume_partials_) {
      if (each.shown.number == number_ && row.key == resume_key_) each.slice = slice_;
    }
    if (is_shown_before(row)) return true;
    const bool is_full = waiting_.size() >= wanted() || waiting_.memory() > limits_.memory_max;
    if (is_full && !tree_.is_distinct && !waiting_.empty() && !(row < waiting_.last())) {
      // In the query's order nothing after it is smaller.
      is_slice_done_ = row.key > waiting_.last().key;
      has_more_ = true;
      return true;
    }
    if (!append_row(row.text)) return true;
    if (frame_.failure) return false;
    if (tree_.is_distinct) return take_distinct_row(std::move(row));
    const bool is_last = waiting_.insert(std::move(row));
    // The last row that TOP wants: in the query's order all others come after it.
    is_slice_done_ = is_last && waiting_.size() == wanted() && left_to_take() <= limits_.rows_max;
    while (waiting_.size() > wanted() ||
           (waiting_.memory() > limits_.memory_max && waiting_.size() > 1)) {
      waiting_.drop_last();
      has_more_ = true;
    }
    return true;
  }

  /// Of the row at hand.
  std::string sort_key() {
    std::string key;
    Value scratch;
    for (const OrderItem& item : tree_.order_by) {
      append_order_key(key, item, evaluate(*item.expression, frame_, scratch));
    }
    return key;
  }

  static void append_order_key(std::string& key, const OrderItem& item, const Value& value) {
    const bool is_descending =
        item.is_score ? item.is_largest_first : item.is_descending.value_or(false);
    if (is_descending) {
      json::append_sort_key_descending(key, value);
    } else if (item.is_score && value.is_undefined()) {
      // A row without a score is not the most similar, but the least: it comes after all others.
      key.push_back('\xFF');
    } else {
      json::append_sort_key(key, value);
    }
  }

  bool take_distinct_row(WaitingRow row) {
    row.was_shown = is_before_resumption(row);
    waiting_.insert_distinct(std::move(row));
    if (waiting_.memory() <= limits_.memory_max) return true;
    frame_.failure = too_much_memory("DISTINCT with ORDER BY has too many different rows");
    return false;
  }

  /// An earlier page has ended at or after this row.
  bool is_shown_before(const WaitingRow& row) const {
    // DISTINCT judges that when all rows are known: one that was shown hides its like.
    if (tree_.is_distinct) return false;
    return is_before_resumption(row);
  }
  bool is_before_resumption(const WaitingRow& row) const {
    if (!resume_key_) return false;
    if (resume_cut_rows_ > 0) return row.key < *resume_key_;
    if (row.key != *resume_key_) return row.key < *resume_key_;
    if (const auto shown = shown_rows_of(row.number); shown > 0) return row.place < shown;
    return row.number <= afters_[row.slice];
  }

  void emit_ordered() {
    std::uint64_t cut_rows_left = resume_cut_rows_;
    for (const WaitingRow& row : waiting_) {
      if (is_over()) return;
      if (row.was_shown) continue;
      if (cut_rows_left > 0 && row.key.starts_with(*resume_key_)) {
        --cut_rows_left;
        continue;
      }
      if (position_.skipped < skip_) {
        ++position_.skipped;
        remember_row(row);
        continue;
      }
      if (count_ >= limits_.rows_max ||
          (count_ > 0 && rows_.size() + 1 + row.text.size() > limits_.bytes_max)) {
        return;
      }
      separate();
      rows_ += row.text;
      ++count_;
      ++position_.emitted;
      remember_row(row);
    }
    // A full page is followed by another one, even if that is empty: so the service's are.
    is_over_ = !has_more_ && count_ < limits_.rows_max;
  }

  /// A key that is too long for a token is told by its beginning, and by how many rows with that
  /// beginning were shown.
  void remember_row(const WaitingRow& row) {
    if (row.key.size() > RowPosition::kKeyBytesMax) {
      const std::string_view beginning =
          std::string_view(row.key).substr(0, RowPosition::kKeyBytesMax);
      const bool is_same = position_.cut_rows > 0 && position_.key == beginning;
      position_.cut_rows = is_same ? position_.cut_rows + 1 : rows_before(row, beginning) + 1;
      position_.cut_hash = fnv1a(row.key);
      position_.key = beginning;
    } else {
      position_.cut_rows = position_.cut_hash = 0;
      position_.key = row.key;
    }
    has_new_key_ = row.key != resume_key_;
    position_.partial = {row.number, row.place + 1};
    last_slice_ = row.slice;
    last_number_ = row.number;
    keep_partial_after(row);
  }

  void keep_partial_after(const WaitingRow& row) {
    position_.others.clear();
    if (has_new_key_) return;
    for (const Partial& each : resume_partials_) {
      if (each.shown.rows > 0 && each.slice > row.slice) keep_other(each);
    }
  }

  /// Rows with this beginning that were shown before this one, and have shorter keys.
  std::uint64_t rows_before(const WaitingRow& row, std::string_view beginning) const {
    std::uint64_t count = 0;
    for (const WaitingRow& other : waiting_) {
      if (!(other < row)) break;
      if (other.key.starts_with(beginning)) ++count;
    }
    return count;
  }

  // ── Aggregates and GROUP BY ──

  bool take_grouped_row() {
    ++stats_.rows;
    groups_->add(frame_);
    if (groups_->memory() > limits_.memory_max) {
      frame_.failure = too_much_memory("there are too many groups");
      return false;
    }
    return true;
  }

  struct GroupRow {
    std::string key;  // Of ORDER BY, then of the group.
    Value value;
  };

  std::vector<GroupRow> rows_of_groups() {
    std::vector<GroupRow> rows;
    for (const auto& [key, group] : groups_->sorted()) {
      if (!frame_.spend()) break;
      frame_.begin_row();
      Value value = groups_->show(*group, frame_);
      if (value.is_undefined()) continue;
      GroupRow row;
      for (const OrderItem& item : tree_.order_by) {
        append_order_key(row.key, item, groups_->evaluate_in(*group, *item.expression, frame_));
      }
      row.key += key;
      row.value = std::move(value);
      rows.push_back(std::move(row));
    }
    if (!tree_.order_by.empty()) {
      std::ranges::sort(rows, {}, &GroupRow::key);
    }
    return rows;
  }

  Result<> emit_groups() {
    SeenSet seen;
    std::uint64_t cut_rows_left = resume_cut_rows_;
    for (GroupRow& row : rows_of_groups()) {
      if (frame_.failure) return Error(*frame_.failure);
      if (is_over()) return {};
      if (tree_.is_distinct && !seen.insert(json::hash_of(row.value)).second) continue;
      if (cut_rows_left > 0 && row.key.starts_with(*resume_key_)) {
        --cut_rows_left;
        continue;
      }
      if (resume_key_ && row.key <= *resume_key_) continue;
      if (position_.skipped < skip_) {
        ++position_.skipped;
        remember_group(std::move(row.key));
        continue;
      }
      if (!check_number(row.value)) return Error(*frame_.failure);
      if (count_ >= limits_.rows_max) return {};
      const std::size_t before = rows_.size();
      separate();
      row.value.append_to(rows_);
      if (count_ > 0 && rows_.size() > limits_.bytes_max) {
        rows_.resize(before);
        return {};
      }
      ++count_;
      ++position_.emitted;
      remember_group(std::move(row.key));
    }
    is_over_ = true;
    return {};
  }

  /// As of a row.
  void remember_group(std::string key) {
    const bool is_cut = key.size() > RowPosition::kKeyBytesMax;
    if (is_cut) key.resize(RowPosition::kKeyBytesMax);
    if (!is_cut) {
      position_.cut_rows = 0;
    } else if (position_.key == key) {
      // A key that is no longer than this beginning counts, too.
      position_.cut_rows = std::max<std::uint64_t>(position_.cut_rows, 1) + 1;
    } else {
      position_.cut_rows = 1;
    }
    position_.key = std::move(key);
  }

  // ── FROM (SELECT DISTINCT …) ──

  /// The rows of the inner query are the documents of this one.
  Result<> take_inner_rows() {
    ORRERY_TRY(inner_->finish());
    if (!inner_->impl_->has_shown_all()) {
      return too_much_memory("the subquery after FROM has too many rows");
    }
    const std::string rows = "[" + inner_->take_rows() + "]";
    const Value all = Value::of_checked(rows);
    std::uint64_t number = 0;
    // They count as one slice, in which ties go on after the row that was shown last.
    begin_slice(resume_partials_.front().shown.number);
    const bool is_streamed = !groups_ && tree_.order_by.empty();
    for (json::Reader reader(all); reader.next() && frame_.spend();) {
      ++number;
      if (is_streamed && number < resume_partials_.front().shown.number.value) {
        if (!tree_.is_distinct) continue;
        frame_.begin_row();
        frame_.row.set(0, reader.value());
        remember_rows(std::numeric_limits<std::uint32_t>::max());
        continue;
      }
      if (take_value(reader.value(), DocumentNumber{number}) == Next::PageDone) break;
    }
    if (is_streamed && !is_page_full_) is_over_ = true;
    return {};
  }

  const PreparedQueryPtr query_;
  const Query& tree_;
  PageLimits limits_;
  Frame frame_;
  RowVisitor visit_;

  std::uint64_t skip_ = 0;  // OFFSET
  std::uint64_t take_ = 0;  // LIMIT and TOP
  std::optional<std::string> resume_key_;
  std::uint64_t resume_cut_rows_ = 0;
  std::vector<Partial> resume_partials_;

  std::size_t slice_ = 0;
  std::vector<DocumentNumber> afters_;  // Of each slice.
  DocumentNumber number_;               // Of the document at hand.
  std::uint32_t place_ = 0;             // Of the row at hand, among those of the document.
  bool is_page_full_ = false;
  bool is_slice_done_ = false;
  bool is_over_ = false;

  SeenSet seen_;
  WaitingRows waiting_;
  bool has_more_ = false;  // Rows were dropped that later pages show.
  std::optional<Groups> groups_;
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
const std::string& Execution::rows() const { return impl_->rows_; }
std::string Execution::take_rows() { return std::move(impl_->rows_); }
std::size_t Execution::count() const { return impl_->count_; }
std::uint64_t Execution::wanted() const { return impl_->wanted(); }
bool Execution::is_over() const { return impl_->is_over(); }
const RowPosition& Execution::position() const { return impl_->position_; }
std::size_t Execution::last_slice() const { return impl_->last_slice_; }
DocumentNumber Execution::last_number() const { return impl_->last_number_; }
bool Execution::has_new_key() const { return impl_->has_new_key_; }
const ExecutionStats& Execution::stats() const { return impl_->stats_; }
std::size_t Execution::memory() const { return impl_->memory(); }

}  // namespace orrery::query

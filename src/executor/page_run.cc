#include "executor/page_run.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "executor/access_planner.h"
#include "executor/range_slice.h"
#include "executor/suspended_queries.h"
#include "executor/vector_search.h"
#include "partition/read/document_cursor.h"

namespace orrery::executor {
namespace {

using SteadyClock = std::chrono::steady_clock;
using query::Execution;
using query::PreparedQuery;

/// Limits of a page that is answered on the event loop: documents, index entries of each range,
/// ranges, and time.
constexpr std::uint64_t kBriefDocumentsMax = 64;
constexpr std::size_t kBriefEntriesMax = 1000;
constexpr std::size_t kBriefRangesMax = 4;
constexpr std::chrono::milliseconds kBriefTimeMax{2};

/// The key of a suspended query: container, query and target.
std::string suspension_key(const QueryJob& job) {
  return fmt::format("{}\n{}\n{}", job.container->rid_text, job.query->hash(), job.target);
}

Error too_long_for_a_loop() {
  return Error(ErrorCode::ReadLimitReached, "more documents than an event loop may look at");
}

/// A page on its way. May be laid aside and go on later.
class QueryPageRun final : public PageRun {
 public:
  QueryPageRun(const Environment& environment, const QueryJob& job,
               storage::Tier tier = storage::Tier::Disk)
      : environment_(environment),
        tier_(tier),
        job_(job),
        vectors_(VectorSearch::of(environment.vector_indexes, job_.container->definition,
                                  job_.query, job_.limits.rows_max)),
        execution_(job.query, job.limits, position().rows) {}

  Result<bool> read(WorkBudget& work) override {
    const auto begun = SteadyClock::now();
    work_ = &work;
    execution_.work_with(&work);
    if (!is_brief() && !work.look()) return interruption(work);
    if (state_ == State::New) ORRERY_TRY(begin());
    state_ = State::Reading;
    if (job_.query->reads_documents()) {
      ORRERY_TRY(read_slices());
    } else {
      state_ = State::PageEnded;
    }
    page_.total_time += SteadyClock::now() - begun;
    return state_ != State::Paused;
  }

  Result<QueryPage> page(WorkBudget& work) override {
    execution_.work_with(&work);
    ORRERY_TRY(execution_.finish());
    page_.rows = execution_.take_rows();
    page_.count = execution_.count();
    page_.stats = execution_.stats();
    page_.stats.documents += documents_passed_;
    page_.stats.document_bytes += bytes_passed_;
    if (!is_at_end()) set_next();
    return std::move(page_);
  }

  /// In place of the page that is not ready.
  QueryPage empty_page() const {
    QueryPage page;
    page.heads = page_.heads;
    page.next = job_.from;
    page.next->query = job_.query->hash();
    return page;
  }

  std::size_t memory() const override { return execution_.memory(); }

  /// A resumed query may want fewer rows.
  void show_at_most(std::uint32_t rows) { execution_.show_at_most(rows); }

  /// Whether it would have had to look at the disk: then its rows are not all there are.
  bool has_missed() const { return snapshot_ && snapshot_->has_missed(); }

 private:
  enum class State : std::uint8_t {
    New,
    Reading,
    Paused,     ///< the budget was over: the next one goes on in the same slice
    PageEnded,  ///< more may follow on the next page
    Exhausted,  ///< all slices were read to their ends
  };
  /// How it goes on after a document.
  enum class Step : std::uint8_t { NextDocument, NextSlice, Pause, EndPage };

  Result<> begin() {
    // Heads before the snapshot: what is read is at least as new as what the token says.
    for (const catalog::Range* range : job_.scope.ranges) {
      page_.heads.emplace_back(range, range->partition->head());
      indexes_.push_back(range->partition->settled_indexes());
    }
    ORRERY_TRY(auto snapshot, environment_.store.snapshot(tier_));
    snapshot_.emplace(std::move(snapshot));
    for (std::size_t i = 0; i < indexes_.size(); ++i) {
      const auto now = job_.scope.ranges[i]->partition->settled_indexes();
      if (indexes_[i] != now) indexes_[i].reset();
    }
    for (const catalog::Range* range : job_.scope.ranges)
      ORRERY_TRY(range->partition->check_in_place());
    const auto& map = job_.container->ranges;
    const bool from_beginning = !is_stream() || execution_.wants_remembering();
    slices_ = from_beginning ? all_slices(position().at, map, job_.scope)
                             : slices_from(position().at, map, job_.scope);
    if (execution_.wants_remembering()) ORRERY_TRY(remember_slices());
    const bool is_of_documents =
        job_.query->shape() == PreparedQuery::Shape::Ordered && !job_.query->inner();
    if (position().rows.cut_rows > 0 && is_of_documents) ORRERY_TRY(find_last_document());
    return {};
  }

  /// DISTINCT, after a split: what was shown of one part counts in those before it, too.
  Result<> remember_slices() {
    const auto is_begun = [](const RangeSlice& slice) { return slice.after != kAllDocuments; };
    auto slice = std::ranges::find_if(slices_, is_begun);
    if (slice == slices_.end()) return {};
    for (++slice; slice != slices_.end() && slice->after != DocumentNumber{}; ++slice) {
      ORRERY_TRY(const auto source, open_source(*snapshot_, *slice));
      while (source->next() && source->number() <= slice->after) {
        if (!source->is_pause()) execution_.remember(source->text(), source->number());
        if (!work_->spend()) return interruption(*work_);
      }
      ORRERY_TRY(source->status());
    }
    ORRERY_TRY(remember_partial(position().rows.partial));
    for (const auto& other : position().rows.others) ORRERY_TRY(remember_partial(other));
    return {};
  }

  Result<> remember_partial(const RowPosition::Partial& partial) {
    ORRERY_TRY(const auto begun, find_document(partial.number));
    if (begun) execution_.remember(*begun, partial.number);
    return {};
  }

  /// A sort key that was too long for the token stands in the document of the last row.
  Result<> find_last_document() {
    ORRERY_TRY(const auto last, find_document(position().rows.partial.number));
    if (last) {
      execution_.resume_at(*last);
    } else {
      execution_.forget_cut_rows();
    }
    return {};
  }

  /// In whichever range it is now, where the position is or further on.
  Result<std::optional<std::string>> find_document(DocumentNumber number) const {
    std::optional<std::string> found;
    if (number == DocumentNumber{}) return found;
    const auto& map = job_.container->ranges;
    for (const catalog::Range* range : map.overlapping({position().at.range_min, Epk::max()})) {
      auto cursor = partition::DocumentCursor::by_number(
          *snapshot_, range->partition->number(), DocumentNumber{number.value - 1},
          live_documents(environment_.clock, *job_.container));
      if (cursor.next() && cursor.number() == number) {
        found = cursor.text();
        return found;
      }
      ORRERY_TRY(cursor.status());
    }
    return found;
  }

  /// Where the page begins: of two positions the one that is further on.
  const QueryPosition& position() const {
    const auto& filter = job_.resume_filter;
    if (!filter) return job_.from;
    const auto& key = job_.from.rows.key;
    // Where the token has only a beginning of its key, it is taken for the one further on: rows may
    // come again, and none is left out.
    const bool is_beginning = job_.from.rows.cut_rows > 0 && filter->rows.key->starts_with(*key);
    const bool is_ahead = !key || (*key < *filter->rows.key && !is_beginning);
    return is_ahead ? *filter : job_.from;
  }

  bool is_brief() const { return tier_ == storage::Tier::Memory; }

  bool is_stream() const {
    return job_.query->shape() == PreparedQuery::Shape::Stream && !job_.query->inner();
  }

  /// The query that says which documents are wanted.
  const PreparedQuery& reader() const {
    const PreparedQuery* query = job_.query.get();
    while (query->inner()) query = query->inner().get();
    return *query;
  }

  Result<> read_slices() {
    for (; at_ < slices_.size(); ++at_) {
      if (starts_next_range()) {
        last_slice_ = at_;
        last_number_ = slices_[at_].after;
        state_ = State::PageEnded;
        return {};
      }
      if (!source_) ORRERY_TRY(open_slice());
      ORRERY_TRY(const Step step, read_slice());
      if (step == Step::Pause) {
        state_ = State::Paused;
        return {};
      }
      ORRERY_TRY(close_slice());
      if (step == Step::EndPage) {
        state_ = State::PageEnded;
        return {};
      }
    }
    state_ = State::Exhausted;
    return {};
  }

  /// Whether the page has rows, and is not to have any of the range that would come next.
  bool starts_next_range() const {
    return !job_.spans_ranges && !source_ && at_ > 0 && is_stream() && execution_.count() > 0 &&
           slices_[at_].range != slices_[at_ - 1].range;
  }

  Result<> open_slice() {
    const RangeSlice& slice = slices_[at_];
    const auto begun = SteadyClock::now();
    ORRERY_TRY(source_, open_source(*snapshot_, slice));
    page_.lookup_time += SteadyClock::now() - begun;
    execution_.begin_slice(slice.after);
    rows_before_ = execution_.stats().rows;
    last_slice_ = at_;
    last_number_ = is_stream() ? slice.after : DocumentNumber{};
    return {};
  }

  /// Never Step::NextDocument: to the end of the slice, or to where the page or the time ends.
  Result<Step> read_slice() {
    while (source_->next()) {
      ORRERY_TRY(const Step step, take());
      if (step != Step::NextDocument) return step;
    }
    return Step::NextSlice;
  }

  Result<> close_slice() {
    ORRERY_TRY(source_->status());
    page_.ranges.push_back({.range = slices_[at_].range->id,
                            .source = source_->report(),
                            .rows = execution_.stats().rows - rows_before_});
    read_before_ += source_->report().documents_read;
    documents_passed_ += source_->report().documents_passed;
    bytes_passed_ += source_->report().bytes_passed;
    source_.reset();
    return {};
  }

  Result<std::unique_ptr<DocumentSource>> open_source(const storage::Snapshot& snapshot,
                                                      const RangeSlice& slice) const {
    SourceScope scope{.snapshot = snapshot,
                      .partition = slice.range->partition->number(),
                      .indexes = indexes_of(*slice.range),
                      .documents = slice.range->partition->documents(),
                      .filter = {},
                      .after = {},
                      .from_key = {},
                      .choice = job_.choice,
                      .entries_max = is_brief() ? kBriefEntriesMax : SIZE_MAX,
                      .rows = execution_.wanted(),
                      .vectors = nullptr,
                      .only_counts = job_.only_counts,
                      .helpers = is_brief() ? nullptr : environment_.scan_helpers,
                      .work = work_};
    scope.filter = live_documents(environment_.clock, *job_.container);
    scope.filter.epks = keys_within(slice, job_.scope);
    scope.filter.partition_key =
        slice.partition_key ? slice.partition_key : job_.scope.partition_key;
    if (is_stream() && !execution_.wants_remembering()) scope.after = slice.after;
    const bool is_ordered = job_.query->shape() == PreparedQuery::Shape::Ordered;
    // DISTINCT has to see again what was shown before.
    if (is_ordered && position().rows.key && !job_.query->inner() &&
        !job_.query->tree().is_distinct) {
      scope.from_key = *position().rows.key;
    }
    if (vectors_ && position().rows == RowPosition{}) scope.vectors = &*vectors_;
    return executor::open_source(scope, reader(), job_.access);
  }

  /// As the snapshot has them, if that is known.
  std::optional<storage::IndexRecords> indexes_of(const catalog::Range& range) const {
    const auto found = std::ranges::find(job_.scope.ranges, &range);
    if (found == job_.scope.ranges.end()) return std::nullopt;
    return indexes_[static_cast<std::size_t>(found - job_.scope.ranges.begin())];
  }

  Result<Step> take() {
    const DocumentNumber number = source_->number();
    const std::uint64_t read = read_before_ + source_->report().documents_read;
    if (is_brief() && read >= kBriefDocumentsMax) return too_long_for_a_loop();
    // A pause comes after work of which the budget has not heard.
    if (source_->is_pause() && !work_->look()) return interruption(*work_);
    if (execution_.wants_remembering() && number <= slices_[at_].after) {
      // It has not reached where the page begins.
      if (!source_->is_pause()) execution_.remember(source_->text(), number);
      return work_->is_over() ? Step::Pause : Step::NextDocument;
    }
    if (!source_->is_pause()) {
      if (const Step step = push(number); step != Step::NextDocument) return step;
    }
    last_number_ = number;
    if (is_stream()) {
      // As the service does, it does not look whether there is another row: the next page tells.
      const bool is_full = execution_.count() >= job_.limits.rows_max;
      return is_full || work_->is_over() ? Step::EndPage : Step::NextDocument;
    }
    return work_->is_over() ? Step::Pause : Step::NextDocument;
  }

  /// Gives the execution the document.
  Step push(DocumentNumber number) {
    switch (source_->is_count() ? execution_.take_unread()
                                : execution_.take(source_->text(), number)) {
      case Execution::Next::PageDone:
        return Step::EndPage;
      case Execution::Next::SliceDone:
        return source_->is_in_order() ? Step::NextSlice : Step::NextDocument;
      case Execution::Next::More:
        break;
    }
    return Step::NextDocument;
  }

  /// Whether no row comes after this page.
  bool is_at_end() const {
    return execution_.is_over() || (is_stream() && state_ == State::Exhausted);
  }

  void set_next() {
    const RowPosition& rows = execution_.position();
    QueryPosition next{.query = job_.query->hash(), .at = {}, .rows = rows};
    if (is_stream()) {
      if (!slices_.empty()) next.at = position_in(slices_, last_slice_, last_number_);
    } else if (job_.query->shape() == PreparedQuery::Shape::Ordered && rows.key &&
               job_.query->reads_documents() && !job_.query->inner() && !slices_.empty()) {
      // Rows emitted of later slices had the key that this page began with: a new key starts over.
      if (execution_.has_new_key()) {
        for (RangeSlice& slice : slices_) slice.after = DocumentNumber{};
      }
      next.at = position_in(slices_, execution_.last_slice(), execution_.last_number());
    }
    page_.next = std::move(next);
  }

  const Environment& environment_;
  const storage::Tier tier_;
  const QueryJob job_;
  const std::optional<VectorSearch> vectors_;
  Execution execution_;
  std::optional<storage::Snapshot> snapshot_;
  std::vector<std::optional<storage::IndexRecords>> indexes_;  // Of each range of the scope.
  std::vector<RangeSlice> slices_;
  QueryPage page_;

  State state_ = State::New;
  std::size_t at_ = 0;                      // The slice that is read.
  std::unique_ptr<DocumentSource> source_;  // Null between slices.
  std::uint64_t rows_before_ = 0;
  std::size_t last_slice_ = 0;
  DocumentNumber last_number_;
  std::uint64_t read_before_ = 0;  // Documents of earlier slices.
  std::uint64_t documents_passed_ = 0;
  std::uint64_t bytes_passed_ = 0;
  WorkBudget* work_ = nullptr;  // Of the time slice that is under way.
};

}  // namespace

std::unique_ptr<PageRun> PageRun::make(const Environment& environment, const QueryJob& job) {
  return std::make_unique<QueryPageRun>(environment, job);
}

Result<QueryPage> run_query_page(const Environment& environment, const QueryJob& job,
                                 WorkBudget& work) {
  std::unique_ptr<QueryPageRun> run;
  SuspendedQueries* const suspended = environment.suspended;
  if (job.from.suspended != 0 && suspended != nullptr) {
    // Nothing else is ever kept under such a key.
    run.reset(static_cast<QueryPageRun*>(
        suspended->take(job.from.suspended, suspension_key(job)).release()));
  }
  if (run) {
    run->show_at_most(job.limits.rows_max);
  } else {
    run = std::make_unique<QueryPageRun>(environment, job);
  }
  while (true) {
    ORRERY_TRY(const bool is_read, run->read(work));
    if (is_read) return run->page(work);
    if (suspended != nullptr) break;
    work.set_deadline(WorkLimits::TimePoint::max());
  }
  QueryPage page = run->empty_page();
  page.next->suspended = suspended->keep(std::move(run), suspension_key(job), job.client);
  return page;
}

std::optional<QueryPage> try_query_page(const Environment& environment, const QueryJob& job) {
  // DISTINCT may have to see again all that earlier pages have shown.
  if (job.from.suspended != 0 || job.scope.ranges.size() > kBriefRangesMax ||
      job.query->tree().is_distinct) {
    return std::nullopt;
  }
  QueryPageRun run(environment, job, storage::Tier::Memory);
  WorkBudget work({.total_time_max = kBriefTimeMax});
  const auto is_read = run.read(work);
  if (!is_read || !*is_read) return std::nullopt;
  auto page = run.page(work);
  if (!page || run.has_missed()) return std::nullopt;
  return std::move(*page);
}

}  // namespace orrery::executor

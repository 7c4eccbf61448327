#include "api/query_run.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/addressing.h"
#include "api/pieces.h"
#include "api/query_request.h"
#include "api/suspended_queries.h"
#include "api/vector_search.h"
#include "partition/read/document_cursor.h"

namespace orrery::api {
namespace {

using Clock = std::chrono::steady_clock;
using query::Execution;
using query::PreparedQuery;

/// Limits of a page that is answered on the event loop: documents, index entries of each range,
/// ranges, and time.
constexpr std::uint64_t kBriefDocumentsMax = 64;
constexpr std::size_t kBriefEntriesMax = 1000;
constexpr std::size_t kBriefRangesMax = 4;
constexpr std::chrono::milliseconds kBriefTimeMax{2};

/// What a suspended query was for.
std::string suspension_key(const QueryJob& job) {
  return fmt::format("{}\n{}\n{}", job.container->rid_text, job.query->hash(), job.target);
}

Error too_long_for_a_loop() {
  return Error(ErrorCode::Unavailable, "more documents than an event loop may look at");
}

/// A page on its way. May be laid aside and go on later.
class Run final : public PageRun {
 public:
  Run(const Services& services, const QueryJob& job, storage::Tier tier = storage::Tier::Disk)
      : services_(services),
        tier_(tier),
        job_(job),
        vectors_(VectorSearch::of(services.vector_indexes, job_.container->definition, job_.query,
                                  job_.limits.rows_max)),
        execution_(job.query, job.limits, position().rows) {}

  Result<bool> read(WorkBudget& work) override {
    const auto begun = Clock::now();
    work_ = &work;
    execution_.work_with(&work);
    if (!is_brief() && !work.look()) return interruption(work);
    if (std::exchange(is_out_of_time_, false)) is_piece_done_ = false;
    if (!snapshot_) ORRERY_TRY(begin());
    if (job_.query->reads_documents()) ORRERY_TRY(read_pieces());
    page_.total_time += Clock::now() - begun;
    // A Stream goes on from where it is, unless that is behind where it began.
    return !is_out_of_time_ || (is_stream() && !is_remembering_);
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

  /// Whoever comes back for a page may want less of it.
  void show_at_most(std::uint32_t rows) { execution_.show_at_most(rows); }

  /// Whether it would have had to look at the disk: then its rows are not all there are.
  bool has_missed() const { return snapshot_ && snapshot_->has_missed(); }

 private:
  Result<> begin() {
    // Heads before the snapshot: what is read is at least as new as what the token says.
    for (const catalog::Range* range : job_.scope.ranges) {
      page_.heads.emplace_back(range, range->partition->head());
      indexes_.push_back(range->partition->settled_indexes());
    }
    ORRERY_TRY(auto snapshot, services_.store.snapshot(tier_));
    snapshot_.emplace(std::move(snapshot));
    for (std::size_t i = 0; i < indexes_.size(); ++i) {
      const auto now = job_.scope.ranges[i]->partition->settled_indexes();
      if (indexes_[i] != now) indexes_[i].reset();
    }
    for (const catalog::Range* range : job_.scope.ranges) ORRERY_TRY(check_in_place(*range));
    const auto& map = job_.container->ranges;
    const bool from_beginning = !is_stream() || execution_.wants_remembering();
    pieces_ = from_beginning ? all_pieces(position().at, map, job_.scope)
                             : pieces_from(position().at, map, job_.scope);
    if (execution_.wants_remembering()) ORRERY_TRY(remember_pieces());
    const bool is_of_documents =
        job_.query->shape() == PreparedQuery::Shape::Ordered && !job_.query->inner();
    if (position().rows.cut_rows > 0 && is_of_documents) ORRERY_TRY(find_last_document());
    return {};
  }

  /// DISTINCT, after a split: what was shown of one part counts in those before it, too.
  Result<> remember_pieces() {
    const auto is_begun = [](const Piece& piece) { return piece.after != kAllDocuments; };
    auto piece = std::ranges::find_if(pieces_, is_begun);
    if (piece == pieces_.end()) return {};
    for (++piece; piece != pieces_.end() && piece->after != DocumentNumber{}; ++piece) {
      ORRERY_TRY(const auto walk, open_walk(*snapshot_, *piece));
      while (walk->next() && walk->number() <= piece->after) {
        if (!walk->is_pause()) execution_.remember(walk->text(), walk->number());
        if (!work_->spend()) return interruption(*work_);
      }
      ORRERY_TRY(walk->status());
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
          live_documents(services_, *job_.container));
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

  Result<> read_pieces() {
    while (at_ < pieces_.size() && !is_page_done_) {
      if (!walk_) ORRERY_TRY(open_piece());
      while (!is_piece_done_ && walk_->next()) ORRERY_TRY(take());
      if (is_out_of_time_ && !is_page_done_) return {};
      ORRERY_TRY(walk_->status());
      page_.ranges.push_back({.range = pieces_[at_].range->id,
                              .walk = walk_->report(),
                              .rows = execution_.stats().rows - rows_before_});
      read_before_ += walk_->report().documents_read;
      documents_passed_ += walk_->report().documents_passed;
      bytes_passed_ += walk_->report().bytes_passed;
      walk_.reset();
      if (!is_page_done_) ++at_;
      if (ends_with_range()) end_before(at_);
    }
    has_read_all_ = !is_page_done_;
    return {};
  }

  /// Whether the page is not to have rows of the range that would come next.
  bool ends_with_range() const {
    return !job_.spans_ranges && !is_page_done_ && is_stream() && execution_.count() > 0 &&
           at_ < pieces_.size() && pieces_[at_].range != pieces_[at_ - 1].range;
  }

  /// The next page begins with that piece.
  void end_before(std::size_t piece) {
    last_piece_ = piece;
    last_number_ = pieces_[piece].after;
    is_page_done_ = true;
  }

  Result<> open_piece() {
    const Piece& piece = pieces_[at_];
    const auto begun = Clock::now();
    ORRERY_TRY(walk_, open_walk(*snapshot_, piece));
    page_.lookup_time += Clock::now() - begun;
    execution_.begin_piece(piece.after);
    rows_before_ = execution_.stats().rows;
    last_piece_ = at_;
    last_number_ = is_stream() ? piece.after : DocumentNumber{};
    is_piece_done_ = false;
    return {};
  }

  Result<std::unique_ptr<DocumentWalk>> open_walk(const storage::Snapshot& snapshot,
                                                  const Piece& piece) const {
    WalkScope scope{.snapshot = snapshot,
                    .partition = piece.range->partition->number(),
                    .indexes = indexes_of(*piece.range),
                    .documents = piece.range->partition->documents(),
                    .filter = {},
                    .after = {},
                    .from_key = {},
                    .choice = job_.choice,
                    .entries_max = is_brief() ? kBriefEntriesMax : SIZE_MAX,
                    .rows = execution_.wanted(),
                    .vectors = nullptr,
                    .only_counts = job_.only_counts,
                    .ahead = is_brief() ? nullptr : services_.read_ahead,
                    .work = work_};
    scope.filter = live_documents(services_, *job_.container);
    scope.filter.epks = keys_within(piece, job_.scope);
    scope.filter.partition_key =
        piece.partition_key ? piece.partition_key : job_.scope.partition_key;
    if (is_stream() && !execution_.wants_remembering()) scope.after = piece.after;
    const bool is_ordered = job_.query->shape() == PreparedQuery::Shape::Ordered;
    // DISTINCT has to see again what was shown before.
    if (is_ordered && position().rows.key && !job_.query->inner() &&
        !job_.query->tree().is_distinct) {
      scope.from_key = *position().rows.key;
    }
    if (vectors_ && position().rows == RowPosition{}) scope.vectors = &*vectors_;
    return DocumentWalk::open(scope, reader(), job_.access);
  }

  /// As the snapshot has them, if that is known.
  std::optional<storage::IndexRecords> indexes_of(const catalog::Range& range) const {
    const auto found = std::ranges::find(job_.scope.ranges, &range);
    if (found == job_.scope.ranges.end()) return std::nullopt;
    return indexes_[static_cast<std::size_t>(found - job_.scope.ranges.begin())];
  }

  Result<> take() {
    const DocumentNumber number = walk_->number();
    const std::uint64_t read = read_before_ + walk_->report().documents_read;
    if (is_brief() && read >= kBriefDocumentsMax) return too_long_for_a_loop();
    // A pause comes after work of which the budget has not heard.
    if (walk_->is_pause() && !work_->look()) return interruption(*work_);
    is_remembering_ = execution_.wants_remembering() && number <= pieces_[at_].after;
    if (is_remembering_) {
      if (!walk_->is_pause()) execution_.remember(walk_->text(), number);
      is_out_of_time_ = is_piece_done_ = work_->is_over();
      return {};
    }
    if (!walk_->is_pause() && !push(number)) return {};
    last_number_ = number;
    if (work_->is_over()) is_out_of_time_ = is_piece_done_ = true;
    // As the service does, it does not look whether there is another row: the next page tells.
    const bool is_full = is_stream() && execution_.count() >= job_.limits.rows_max;
    if (is_full) is_page_done_ = is_piece_done_ = true;
    if (is_out_of_time_ && is_stream()) is_page_done_ = true;
    return {};
  }

  /// Gives the execution the document. False when no other one is wanted.
  bool push(DocumentNumber number) {
    switch (walk_->is_count() ? execution_.take_unread() : execution_.take(walk_->text(), number)) {
      case Execution::Next::PageDone:
        is_page_done_ = is_piece_done_ = true;
        return false;
      case Execution::Next::PieceDone:
        if (walk_->is_in_order()) {
          is_piece_done_ = true;
          return false;
        }
        break;
      case Execution::Next::More:
        break;
    }
    return true;
  }

  /// Whether no row comes after this page.
  bool is_at_end() const { return execution_.is_over() || (is_stream() && has_read_all_); }

  void set_next() {
    const RowPosition& rows = execution_.position();
    QueryPosition next{.query = job_.query->hash(), .at = {}, .rows = rows};
    if (is_stream()) {
      if (!pieces_.empty()) next.at = position_in(pieces_, last_piece_, last_number_);
    } else if (job_.query->shape() == PreparedQuery::Shape::Ordered && rows.key &&
               job_.query->reads_documents() && !job_.query->inner() && !pieces_.empty()) {
      // What had been emitted of the pieces further on was of the key that this page began with.
      if (execution_.has_new_key()) {
        for (Piece& piece : pieces_) piece.after = DocumentNumber{};
      }
      next.at = position_in(pieces_, execution_.last_piece(), execution_.last_number());
    }
    page_.next = std::move(next);
  }

  const Services& services_;
  const storage::Tier tier_;
  const QueryJob job_;
  const std::optional<VectorSearch> vectors_;
  Execution execution_;
  std::optional<storage::Snapshot> snapshot_;
  std::vector<std::optional<storage::IndexRecords>> indexes_;  // Of each range of the scope.
  std::vector<Piece> pieces_;
  QueryPage page_;

  std::size_t at_ = 0;                  // The piece that is read.
  std::unique_ptr<DocumentWalk> walk_;  // Null between pieces.
  std::uint64_t rows_before_ = 0;
  std::size_t last_piece_ = 0;
  DocumentNumber last_number_;
  std::uint64_t read_before_ = 0;  // Documents of earlier pieces.
  std::uint64_t documents_passed_ = 0;
  std::uint64_t bytes_passed_ = 0;
  WorkBudget* work_ = nullptr;   // Of the slice that is under way.
  bool is_remembering_ = false;  // It has not reached where the page begins.
  bool is_piece_done_ = false;
  bool is_page_done_ = false;
  bool is_out_of_time_ = false;
  bool has_read_all_ = false;
};

}  // namespace

std::unique_ptr<PageRun> PageRun::make(const Services& services, const QueryJob& job) {
  return std::make_unique<Run>(services, job);
}

Result<QueryPage> run_query_page(const Services& services, const QueryJob& job, WorkBudget& work) {
  std::unique_ptr<Run> run;
  SuspendedQueries* const suspended = services.suspended_queries;
  if (job.from.suspended != 0 && suspended != nullptr) {
    // Nothing else is ever kept under such a key.
    run.reset(
        static_cast<Run*>(suspended->take(job.from.suspended, suspension_key(job)).release()));
  }
  if (run) {
    run->show_at_most(job.limits.rows_max);
  } else {
    run = std::make_unique<Run>(services, job);
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

std::optional<QueryPage> try_query_page(const Services& services, const QueryJob& job) {
  // DISTINCT may have to see again all that earlier pages have shown.
  if (job.from.suspended != 0 || job.scope.ranges.size() > kBriefRangesMax ||
      job.query->tree().is_distinct) {
    return std::nullopt;
  }
  Run run(services, job, storage::Tier::Memory);
  WorkBudget work({.total_time_max = kBriefTimeMax});
  const auto is_read = run.read(work);
  if (!is_read || !*is_read) return std::nullopt;
  auto page = run.page(work);
  if (!page || run.has_missed()) return std::nullopt;
  return std::move(*page);
}

}  // namespace orrery::api

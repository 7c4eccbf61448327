#include "executor/rank.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/suspended_queries.h"
#include "json/value.h"
#include "partition/read/document_cursor.h"
#include "protocol/ids.h"
#include "query/plan/plan.h"
#include "query/plan/rank_plan.h"
#include "query/syntax/parser.h"

namespace orrery::executor {
namespace {

using json::Value;

/// How much a rank counts for, against the next one.
constexpr double kRankOffset = 60;

/// About what a document costs in a map while its scores are compared, besides these.
constexpr std::size_t kFoundBytes = 144;

Error too_much_memory() {
  return Error(ErrorCode::RequestTooLarge,
               "The query needs more memory than a request may have: ORDER BY RANK has too many "
               "documents to compare. Filter more, or ask for fewer with TOP.");
}

/// The key of a suspended ranking. Other suspended queries have no such keys.
std::string ranking_key(const QueryJob& job) {
  return fmt::format("rank\n{}\n{}\n{}", job.container->rid_text, job.query->hash(), job.target);
}

/// A document that some component has found.
struct Found {
  std::size_t component;  // The first one that has.
  std::vector<double> scores;
  double fused = 0;
};

/// The documents in their order. Their payload is made when they are shown.
class Ranking final : public SuspendedQuery {
 public:
  Ranking(const Environment& environment, const QueryJob& job)
      : environment_(environment), job_(job) {}

  /// Comes before all pages. False when the budget was over before that was done: it goes on with
  /// another.
  Result<bool> rank(const query::Settings& settings, WorkBudget& work) {
    while (stage_ != Stage::Ranked) {
      if (stage_ == Stage::New) {
        ORRERY_TRY(begin(settings));
        continue;
      }
      ORRERY_TRY(const bool is_done, stage_ == Stage::Statistics ? read_statistics(settings, work)
                                                                 : read_component(settings, work));
      if (!is_done) return false;
    }
    return true;
  }

  /// In place of the first page, which is not ready.
  QueryPage empty_page() const {
    QueryPage page;
    page.heads = heads_;
    page.next = QueryPosition{};
    page.next->query = job_.query->hash();
    return page;
  }

  /// False when the container has changed since then: its ranges may be others now.
  bool is_of(const catalog::Container& container) const {
    return job_.container.get() == &container;
  }

  /// Of the job only where the page begins and ends matters.
  Result<QueryPage> page(const QueryJob& job, WorkBudget& work) {
    QueryPage page;
    page.heads = heads_;
    page.stats.documents = found_count_;
    ORRERY_TRY(const auto snapshot, environment_.store.snapshot());
    for (const catalog::Range* range : job_.scope.ranges)
      ORRERY_TRY(range->partition->check_in_place());
    const std::uint64_t begin = plan_.skip.value_or(0) + job.from.rows.emitted;
    std::uint64_t gone = 0;
    bool is_full = false;
    while (begin + page.count < end(gone)) {
      is_full = page.count >= job.limits.rows_max || (work.is_over() && page.count + gone > 0);
      if (is_full) break;
      ORRERY_TRY(const auto payload,
                 payload_of(ranked_[begin + page.count + gone], snapshot, work));
      if (!payload) {
        ++gone;
        continue;
      }
      is_full = page.count > 0 && page.rows.size() + payload->size() > job.limits.bytes_max;
      if (is_full) break;
      if (page.count > 0) page.rows.push_back(',');
      page.rows += *payload;
      // It moves up to where it would be if those that are gone had never been there.
      ranked_[begin + page.count] = ranked_[begin + page.count + gone];
      ++page.count;
    }
    const auto first_gone =
        ranked_.begin() + static_cast<std::ptrdiff_t>(std::min(begin + page.count, size()));
    ranked_.erase(first_gone, first_gone + static_cast<std::ptrdiff_t>(gone));
    return is_full ? with_next(std::move(page), job) : std::move(page);
  }

  std::size_t memory() const override {
    return sizeof(*this) + ranked_.size() * sizeof(Ranked) + found_.size() * bytes_each() +
           (part_ ? part_->memory() : 0);
  }

 private:
  struct Ranked {
    DocumentNumber number;
    std::size_t component;  // Of whose rows for this document the first one is shown.
  };

  enum class Stage : std::uint8_t { New, Statistics, Components, Ranked };

  std::uint64_t size() const { return ranked_.size(); }

  /// Those of `ranked_` before it are wanted, apart from so many that are gone.
  std::uint64_t end(std::uint64_t gone) const {
    const std::uint64_t count = size() - gone;
    return plan_.take ? std::min(count, plan_.skip.value_or(0) + *plan_.take) : count;
  }

  Result<> begin(const query::Settings& settings) {
    // Heads before the documents: what is read is at least as new as what the token says.
    for (const catalog::Range* range : job_.scope.ranges) {
      heads_.emplace_back(range, range->partition->head());
    }
    ORRERY_TRY(const auto tree, query::Parser(job_.query->text()).parse_query());
    ORRERY_TRY(plan_, query::make_rank_plan(*tree, job_.query->text(), job_.query->parameters()));
    ORRERY_TRY(score_queries_,
               query::make_score_queries(*tree, job_.query->text(), job_.query->parameters()));
    stage_ = Stage::Statistics;
    if (plan_.needs_statistics) return {};
    return prepare_components({}, settings);
  }

  Result<> prepare_components(const query::RankStatistics& statistics,
                              const query::Settings& settings) {
    for (const auto& component : plan_.components) {
      ORRERY_TRY(auto query,
                 prepare(query::with_statistics(component.query, statistics), settings));
      queries_.push_back(std::move(query));
    }
    for (std::string& text : score_queries_) text = query::with_statistics(text, statistics);
    stage_ = Stage::Components;
    return {};
  }

  QueryPage with_next(QueryPage page, const QueryJob& job) const {
    page.next = QueryPosition{};
    page.next->query = job_.query->hash();
    page.next->rows.emitted = job.from.rows.emitted + page.count;
    return page;
  }

  Result<query::PreparedQueryPtr> prepare(const std::string& text,
                                          const query::Settings& settings) const {
    return query::PreparedQuery::prepare(text, job_.query->parameters(), settings);
  }

  QueryJob job_of(query::PreparedQueryPtr query) const {
    QueryJob job = job_;
    job.query = std::move(query);
    job.access = query::access_of(*job.query);
    job.from = {};
    job.limits.rows_max = std::numeric_limits<std::uint32_t>::max();
    return job;
  }

  /// A page of the part that is under way, or nothing yet: it goes on with another budget.
  Result<std::optional<QueryPage>> read_part(WorkBudget& work) {
    if (!part_) part_ = PageRun::make(environment_, part_job_);
    std::optional<QueryPage> page;
    ORRERY_TRY(const bool is_read, part_->read(work));
    if (!is_read) return page;
    ORRERY_TRY(page, part_->page(work));
    part_.reset();
    if (page->next) part_job_.from = *page->next;
    return page;
  }

  /// How often the words stand in all documents: their scores depend on it. False as rank().
  Result<bool> read_statistics(const query::Settings& settings, WorkBudget& work) {
    if (!part_) {
      ORRERY_TRY(auto query, prepare(plan_.statistics_query, settings));
      part_job_ = job_of(std::move(query));
    }
    // It has one row, in one page.
    ORRERY_TRY(const auto page, read_part(work));
    if (!page) return false;
    query::RankStatistics statistics;
    const std::string rows = '[' + page->rows + ']';
    const Value all = Value::of_checked(rows);
    const Value row = all.element(0);
    const auto number = [](const Value& value) {
      return value.is_number() ? static_cast<std::uint64_t>(value.as_number().integer) : 0;
    };
    statistics.document_count = number(row.member("documentCount"));
    const Value texts = row.member("fullTextStatistics");
    for (json::Reader reader(texts); reader.next();) {
      const Value of_text = reader.value();
      query::RankStatistics::Words words{.total = number(of_text.member("totalWordCount")),
                                         .hits = {}};
      const Value hits = of_text.member("hitCounts");
      for (json::Reader each(hits); each.next();) words.hits.push_back(number(each.value()));
      statistics.full_text.push_back(std::move(words));
    }
    ORRERY_TRY(prepare_components(statistics, settings));
    return true;
  }

  /// A page of the component that is under way. False as rank().
  Result<bool> read_component(const query::Settings& settings, WorkBudget& work) {
    if (!is_component_begun_) {
      ORRERY_TRY(auto query, prepare(score_queries_[component_], settings));
      part_job_ = job_of(std::move(query));
      is_component_begun_ = true;
    }
    // A sorted query is read in one page: each further one would sort everything again.
    const bool is_ordered = part_job_.query->shape() == query::PreparedQuery::Shape::Ordered;
    if (is_ordered) part_job_.limits.bytes_max = std::numeric_limits<std::size_t>::max();
    ORRERY_TRY(const auto page, read_part(work));
    if (!page) return false;
    ORRERY_TRY(take_rows(component_, '[' + page->rows + ']'));
    // It ends before the last row only when it may not remember more.
    if (page->next && is_ordered) return too_much_memory();
    // A page of a Stream ends when the budget is over, too.
    if (page->next) return !work.is_over();
    is_component_begun_ = false;
    ++component_;
    // Without a bound the first one has found all that there are, with all of their scores.
    if (component_ == score_queries_.size() || !plan_.take) {
      fuse();
      stage_ = Stage::Ranked;
    }
    return true;
  }

  std::size_t bytes_each() const { return kFoundBytes + plan_.components.size() * sizeof(double); }

  Result<> take_rows(std::size_t component, const std::string& rows) {
    const Value all = Value::of_checked(rows);
    for (json::Reader reader(all); reader.next();) {
      const Value row = reader.value();
      std::string buffer;
      const auto rid = Rid::parse(row.member("_rid").as_string(buffer));
      if (!rid) continue;
      const auto [found, is_new] = found_.try_emplace(DocumentNumber{rid->counter()}, component);
      if (!is_new) continue;
      if (found_.size() * bytes_each() > job_.limits.memory_max) return too_much_memory();
      const Value scores = row.member("componentScores");
      found->second.scores.reserve(plan_.components.size());
      for (json::Reader each(scores); each.next();) {
        found->second.scores.push_back(each.value().as_number().real);
      }
    }
    return {};
  }

  /// Each document gets of each component what its rank there is worth. Equal scores share a rank.
  void fuse() {
    std::vector<std::pair<const DocumentNumber, Found>*> documents;
    documents.reserve(found_.size());
    for (auto& document : found_) documents.push_back(&document);
    for (std::size_t i = 0; i < plan_.components.size(); ++i) {
      const bool is_ascending = plan_.components[i].is_ascending;
      const auto score = [i](const auto* document) {
        const auto& scores = document->second.scores;
        return i < scores.size() ? scores[i] : 0.0;
      };
      std::ranges::sort(documents, {}, [&](const auto* document) {
        return std::pair(is_ascending ? score(document) : -score(document), document->first);
      });
      const double weight = i < plan_.weights.size() ? plan_.weights[i] : 1.0;
      std::size_t rank = 0;
      for (std::size_t at = 0; at < documents.size(); ++at) {
        if (at == 0 || score(documents[at]) != score(documents[at - 1])) ++rank;
        documents[at]->second.fused += weight / (kRankOffset + static_cast<double>(rank));
      }
    }
    std::ranges::sort(documents, {}, [](const auto* document) {
      return std::pair(-document->second.fused, document->first);
    });
    ranked_.reserve(documents.size());
    for (const auto* document : documents) {
      ranked_.push_back({.number = document->first, .component = document->second.component});
    }
    found_count_ = found_.size();
    found_.clear();
  }

  /// Nothing when the document is no longer there, or no longer passes WHERE. Of several rows of a
  /// document that one is shown which is the first by the component that has found it.
  Result<std::optional<std::string>> payload_of(const Ranked& ranked,
                                                const storage::Snapshot& snapshot,
                                                WorkBudget& work) const {
    std::optional<std::string> payload;
    query::PageLimits limits = job_.limits;
    limits.rows_max = 1;
    query::Execution execution(queries_[ranked.component], limits);
    execution.begin_slice({});
    execution.work_with(&work);
    for (const catalog::Range* range : job_.scope.ranges) {
      auto cursor = partition::DocumentCursor::by_number(
          snapshot, range->partition->number(), DocumentNumber{ranked.number.value - 1},
          live_documents(environment_.clock, *job_.container), ranked.number);
      const bool is_there = cursor.next();
      ORRERY_TRY(cursor.status());
      if (!is_there) continue;
      execution.take(cursor.text(), ranked.number);
      break;
    }
    ORRERY_TRY(execution.finish());
    if (execution.count() > 0)
      payload = Value::of_checked(execution.rows()).member("payload").to_text();
    return payload;
  }

  const Environment& environment_;
  const QueryJob job_;  // Of the first page.
  std::vector<std::pair<const catalog::Range*, Lsn>> heads_;
  Stage stage_ = Stage::New;
  query::RankPlan plan_;
  std::vector<std::string> score_queries_;  // Of each component, with its statistics.
  std::size_t component_ = 0;               // That is read, in Stage::Components.
  bool is_component_begun_ = false;
  QueryJob part_job_;                             // The query within this one that is under way...
  std::unique_ptr<PageRun> part_;                 // ...and its page, if one is.
  std::vector<query::PreparedQueryPtr> queries_;  // Of each component, with payload.
  std::map<DocumentNumber, Found> found_;         // Empty once all of them are ranked.
  std::size_t found_count_ = 0;
  std::vector<Ranked> ranked_;
};

}  // namespace

Result<QueryPage> run_ranked_page(const Environment& environment, const QueryJob& job,
                                  const query::Settings& settings, WorkBudget& work) {
  std::unique_ptr<Ranking> ranking;
  SuspendedQueries* const suspended = environment.suspended;
  if (job.from.suspended != 0 && suspended != nullptr) {
    // Nothing else is ever kept under such a key.
    ranking.reset(
        static_cast<Ranking*>(suspended->take(job.from.suspended, ranking_key(job)).release()));
  }
  if (!ranking || !ranking->is_of(*job.container)) {
    ranking = std::make_unique<Ranking>(environment, job);
  }
  while (true) {
    ORRERY_TRY(const bool is_ranked, ranking->rank(settings, work));
    if (is_ranked) break;
    if (suspended != nullptr) {
      QueryPage page = ranking->empty_page();
      page.next->rows = job.from.rows;
      page.next->suspended = suspended->keep(std::move(ranking), ranking_key(job), job.client);
      return page;
    }
    work.set_deadline(WorkLimits::TimePoint::max());
  }
  ORRERY_TRY(auto page, ranking->page(job, work));
  if (page.next && suspended != nullptr) {
    page.next->suspended = suspended->keep(std::move(ranking), ranking_key(job), job.client);
  }
  return page;
}

}  // namespace orrery::executor

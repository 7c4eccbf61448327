#include "api/query_rank.h"

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

#include "api/addressing.h"
#include "api/suspended_queries.h"
#include "json/value.h"
#include "partition/document_cursor.h"
#include "protocol/ids.h"
#include "query/parser.h"
#include "query/plan.h"
#include "query/rank_plan.h"

namespace orrery::api {
namespace {

using json::Value;

/// How much a rank counts for, against the next one.
constexpr double kRankOffset = 60;

/// About what a document costs in a map while its scores are compared, besides these.
constexpr std::size_t kFoundBytes = 144;

/// A query within this one is not laid aside: it ends, or its client goes.
constexpr std::chrono::hours kPartTimeMax{24};

Error too_much_memory() {
  return Error(ErrorCode::RequestTooLarge,
               "The query needs more memory than a request may have: ORDER BY RANK has too many "
               "documents to compare. Filter more, or ask for fewer with TOP.");
}

Error cancelled() {
  return Error(ErrorCode::Unavailable, "The client has gone: the query was given up.");
}

/// What a ranking that is kept was for. Other queries that are laid aside have no such keys.
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
  Ranking(const Services& services, const QueryJob& job) : services_(services), job_(job) {}

  /// Comes before all pages.
  Result<> rank(const query::Settings& settings, const std::function<bool()>& is_cancelled) {
    // Heads before the documents: what is read is at least as new as what the token says.
    for (const catalog::Range* range : job_.scope.ranges) {
      heads_.emplace_back(range, range->partition->head());
    }
    ORRERY_TRY(const auto tree, query::Parser(job_.query->text()).parse_query());
    ORRERY_TRY(plan_, query::make_rank_plan(*tree, job_.query->text(), job_.query->parameters()));
    ORRERY_TRY(const auto score_queries,
               query::make_score_queries(*tree, job_.query->text(), job_.query->parameters()));
    ORRERY_TRY(const auto statistics, read_statistics(settings, is_cancelled));
    for (const auto& component : plan_.components) {
      ORRERY_TRY(auto query,
                 prepare(query::with_statistics(component.query, statistics), settings));
      queries_.push_back(std::move(query));
    }
    for (std::size_t i = 0; i < score_queries.size(); ++i) {
      ORRERY_TRY(auto query,
                 prepare(query::with_statistics(score_queries[i], statistics), settings));
      ORRERY_TRY(run_component(i, std::move(query), is_cancelled));
      // It has found all that there are, with all of their scores.
      if (!plan_.take) break;
    }
    fuse();
    return {};
  }

  /// False when the container has changed since then: its ranges may be others now.
  bool is_of(const catalog::Container& container) const {
    return job_.container.get() == &container;
  }

  /// Of the job only where the page begins and ends matters.
  Result<QueryPage> page(const QueryJob& job, const std::function<bool()>& is_cancelled) {
    QueryPage page;
    page.heads = heads_;
    page.stats.documents = found_count_;
    ORRERY_TRY(const auto snapshot, services_.store.snapshot());
    for (const catalog::Range* range : job_.scope.ranges) ORRERY_TRY(check_in_place(*range));
    const std::uint64_t begin = plan_.skip.value_or(0) + job.from.rows.emitted;
    while (begin + page.count < end()) {
      if (page.count >= job.limits.rows_max) return with_next(std::move(page), job);
      if (is_cancelled()) return cancelled();
      const auto ranked = ranked_.begin() + static_cast<std::ptrdiff_t>(begin + page.count);
      ORRERY_TRY(const auto payload, payload_of(*ranked, snapshot));
      if (!payload) {
        // As if it had never been there: the next ones move up.
        ranked_.erase(ranked);
        continue;
      }
      if (page.count > 0 && page.rows.size() + payload->size() > job.limits.bytes_max) {
        return with_next(std::move(page), job);
      }
      if (page.count > 0) page.rows.push_back(',');
      page.rows += *payload;
      ++page.count;
    }
    return page;
  }

  std::size_t memory() const override { return sizeof(*this) + ranked_.size() * sizeof(Ranked); }

 private:
  struct Ranked {
    DocumentNumber number;
    std::size_t component;  // Of whose rows for this document the first one is shown.
  };

  /// Those of `ranked_` before it are wanted.
  std::uint64_t end() const {
    const std::uint64_t count = ranked_.size();
    return plan_.take ? std::min(count, plan_.skip.value_or(0) + *plan_.take) : count;
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
    job.time_max = kPartTimeMax;
    return job;
  }

  /// How often the words stand in all documents: their scores depend on it.
  Result<query::RankStatistics> read_statistics(const query::Settings& settings,
                                                const std::function<bool()>& is_cancelled) const {
    query::RankStatistics statistics;
    if (!plan_.needs_statistics) return statistics;
    ORRERY_TRY(auto query, prepare(plan_.statistics_query, settings));
    ORRERY_TRY(const std::string rows,
               run_to_end(services_, job_of(std::move(query)), is_cancelled));
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
    return statistics;
  }

  Result<> run_component(std::size_t component, query::PreparedQueryPtr query,
                         const std::function<bool()>& is_cancelled) {
    QueryJob job = job_of(std::move(query));
    // What is sorted comes in one page: for each further one all would be sorted again.
    const bool is_ordered = job.query->shape() == query::PreparedQuery::Shape::Ordered;
    if (is_ordered) job.limits.bytes_max = std::numeric_limits<std::size_t>::max();
    while (true) {
      ORRERY_TRY(auto page, run_query_page(services_, job, is_cancelled));
      ORRERY_TRY(take_rows(component, '[' + page.rows + ']'));
      if (!page.next) return {};
      // It ends before the last row only when it may not remember more.
      if (is_ordered) return too_much_memory();
      job.from = std::move(*page.next);
    }
  }

  Result<> take_rows(std::size_t component, const std::string& rows) {
    const std::size_t bytes_each = kFoundBytes + plan_.components.size() * sizeof(double);
    const Value all = Value::of_checked(rows);
    for (json::Reader reader(all); reader.next();) {
      const Value row = reader.value();
      std::string buffer;
      const auto rid = Rid::parse(row.member("_rid").as_string(buffer));
      if (!rid) continue;
      const auto [found, is_new] = found_.try_emplace(DocumentNumber{rid->counter()}, component);
      if (!is_new) continue;
      if (found_.size() * bytes_each > job_.limits.memory_max) return too_much_memory();
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
                                                const storage::Snapshot& snapshot) const {
    std::optional<std::string> payload;
    query::PageLimits limits = job_.limits;
    limits.rows_max = 1;
    query::Execution execution(queries_[ranked.component], limits);
    execution.begin_piece({});
    for (const catalog::Range* range : job_.scope.ranges) {
      auto cursor = partition::DocumentCursor::by_number(
          snapshot, range->partition->number(), DocumentNumber{ranked.number.value - 1},
          live_documents(services_, *job_.container), ranked.number);
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

  const Services& services_;
  const QueryJob job_;  // Of the first page.
  std::vector<std::pair<const catalog::Range*, Lsn>> heads_;
  query::RankPlan plan_;
  std::vector<query::PreparedQueryPtr> queries_;  // Of each component, with payload.
  std::map<DocumentNumber, Found> found_;         // Empty once all of them are ranked.
  std::size_t found_count_ = 0;
  std::vector<Ranked> ranked_;
};

}  // namespace

Result<QueryPage> run_ranked_page(const Services& services, const QueryJob& job,
                                  const query::Settings& settings,
                                  const std::function<bool()>& is_cancelled) {
  std::unique_ptr<Ranking> ranking;
  SuspendedQueries* const suspended = services.suspended_queries;
  if (job.from.suspended != 0 && suspended != nullptr) {
    // Nothing else is ever kept under such a key.
    ranking.reset(
        static_cast<Ranking*>(suspended->take(job.from.suspended, ranking_key(job)).release()));
  }
  if (!ranking || !ranking->is_of(*job.container)) {
    ranking = std::make_unique<Ranking>(services, job);
    ORRERY_TRY(ranking->rank(settings, is_cancelled));
  }
  ORRERY_TRY(auto page, ranking->page(job, is_cancelled));
  if (page.next && suspended != nullptr) {
    page.next->suspended = suspended->keep(std::move(ranking), ranking_key(job));
  }
  return page;
}

}  // namespace orrery::api

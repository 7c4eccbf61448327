#include "api/query_rank.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "json/value.h"
#include "protocol/ids.h"
#include "query/parser.h"
#include "query/plan.h"

namespace orrery::api {
namespace {

using json::Value;

/// How much a rank counts for, against the next one.
constexpr double kRankOffset = 60;

/// A document that some component has found.
struct Found {
  DocumentNumber number;
  std::string payload;
  std::vector<double> scores;
  double fused = 0;
};

class Ranking {
 public:
  Ranking(const Services& services, const QueryJob& job, const query::Settings& settings,
          const std::function<bool()>& is_cancelled)
      : services_(services), job_(job), settings_(settings), is_cancelled_(is_cancelled) {}

  Result<QueryPage> page() {
    ORRERY_TRY(const auto tree, query::Parser(job_.query->text()).parse_query());
    ORRERY_TRY(plan_, query::make_rank_plan(*tree, job_.query->text(), job_.query->parameters()));
    ORRERY_TRY(const auto statistics, read_statistics());
    for (const auto& component : plan_.components) {
      ORRERY_TRY(run_component(query::with_statistics(component.query, statistics)));
    }
    fuse();
    return shown();
  }

 private:
  Result<std::string> run(const std::string& text) const {
    QueryJob job = job_;
    query::Parameters parameters = job_.query->parameters();
    ORRERY_TRY(job.query, query::PreparedQuery::prepare(text, parameters, settings_));
    job.access = query::access_of(*job.query);
    job.from = {};
    job.limits.rows_max = std::numeric_limits<std::uint32_t>::max();
    return run_to_end(services_, std::move(job), is_cancelled_);
  }

  /// How often the words stand in all documents: their scores depend on it.
  Result<query::RankStatistics> read_statistics() const {
    query::RankStatistics statistics;
    if (!plan_.needs_statistics) return statistics;
    ORRERY_TRY(const std::string rows, run(plan_.statistics_query));
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

  Result<> run_component(const std::string& text) {
    ORRERY_TRY(const std::string rows, run(text));
    const Value all = Value::of_checked(rows);
    for (json::Reader reader(all); reader.next();) {
      const Value row = reader.value();
      std::string buffer;
      const std::string rid(row.member("_rid").as_string(buffer));
      const auto parsed = Rid::parse(rid);
      if (!parsed) continue;
      const DocumentNumber number{parsed->counter()};
      if (found_.contains(number)) continue;
      // The scores stand beside the payload, or inside of it.
      Value payload = row.member("payload");
      Value scores = row.member("componentScores");
      if (scores.is_undefined()) {
        scores = payload.member("componentScores");
        payload = std::move(payload).member("payload");
      }
      Found document{.number = number, .payload = payload.to_text(), .scores = {}};
      for (json::Reader each(scores); each.next();) {
        document.scores.push_back(each.value().as_number().real);
      }
      found_.emplace(number, std::move(document));
    }
    return {};
  }

  /// Each document gets of each component what its rank there is worth. Equal scores share a rank.
  void fuse() {
    for (auto& [number, document] : found_) ranked_.push_back(&document);
    for (std::size_t i = 0; i < plan_.components.size(); ++i) {
      const bool is_ascending = plan_.components[i].is_ascending;
      const auto score = [i](const Found* document) {
        return i < document->scores.size() ? document->scores[i] : 0.0;
      };
      std::ranges::sort(ranked_, {}, [&](const Found* document) {
        return std::pair(is_ascending ? score(document) : -score(document), document->number);
      });
      const double weight = i < plan_.weights.size() ? plan_.weights[i] : 1.0;
      std::size_t rank = 0;
      for (std::size_t at = 0; at < ranked_.size(); ++at) {
        if (at == 0 || score(ranked_[at]) != score(ranked_[at - 1])) ++rank;
        ranked_[at]->fused += weight / (kRankOffset + static_cast<double>(rank));
      }
    }
    std::ranges::sort(ranked_, {}, [](const Found* document) {
      return std::pair(-document->fused, document->number);
    });
  }

  QueryPage shown() const {
    QueryPage page;
    for (const catalog::Range* range : job_.scope.ranges) {
      page.heads.emplace_back(range, range->partition->head());
    }
    const std::uint64_t begin = plan_.skip.value_or(0) + job_.from.rows.emitted;
    std::uint64_t end = ranked_.size();
    if (plan_.take) end = std::min(end, plan_.skip.value_or(0) + *plan_.take);
    for (std::uint64_t at = begin; at < end; ++at) {
      const bool is_full = page.count >= job_.limits.rows_max ||
                           (page.count > 0 &&
                            page.rows.size() + ranked_[at]->payload.size() > job_.limits.bytes_max);
      if (is_full) {
        page.next = QueryPosition{};
        page.next->query = job_.query->hash();
        page.next->rows.emitted = job_.from.rows.emitted + page.count;
        break;
      }
      if (page.count > 0) page.rows.push_back(',');
      page.rows += ranked_[at]->payload;
      ++page.count;
    }
    page.stats.documents = found_.size();
    return page;
  }

  const Services& services_;
  const QueryJob& job_;
  const query::Settings& settings_;
  const std::function<bool()>& is_cancelled_;
  query::RankPlan plan_;
  std::map<DocumentNumber, Found> found_;
  std::vector<Found*> ranked_;
};

}  // namespace

Result<QueryPage> run_ranked_page(const Services& services, const QueryJob& job,
                                  const query::Settings& settings,
                                  const std::function<bool()>& is_cancelled) {
  return Ranking(services, job, settings, is_cancelled).page();
}

}  // namespace orrery::api

// Queries over documents, and query plans.
#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "api/documents/document_request.h"
#include "api/feed/feed_scope.h"
#include "api/handlers.h"
#include "api/query/index_advice.h"
#include "api/query/query_indexes.h"
#include "api/query/query_reports.h"
#include "api/query/query_request.h"
#include "api/reply.h"
#include "executor/container_settings.h"
#include "executor/page_run.h"
#include "executor/rank.h"
#include "json/document_text.h"
#include "protocol/wire/headers.h"
#include "query/plan/plan.h"

namespace orrery::api::documents {
namespace {

constexpr std::uint32_t kPageDefault = 1000;
/// Longer texts, and lists of parameters, are parsed by another thread.
constexpr std::size_t kBodyBytesMaxOnLoop = 16 << 10;
/// A query that seemed to be short and is not is begun anew with those that are long: threads for
/// the others are few.
constexpr std::chrono::milliseconds kShortTimeMax{20};

using Clock = std::chrono::steady_clock;

bool has_target(const Context& context) {
  const auto key = context.header(headers::kPartitionKey);
  return (!key.empty() && key != "[]") || !context.header(headers::kPartitionKeyRangeId).empty() ||
         !context.header(headers::kEndEpk).empty();
}

Result<executor::AccessChoice> access_choice(const Context& context) {
  const auto value = context.header(headers::kQueryAccess);
  if (value.empty() || value == "auto") return executor::AccessChoice::Auto;
  if (value == "scan") return executor::AccessChoice::Scan;
  if (value == "index") return executor::AccessChoice::Index;
  return Error(ErrorCode::BadRequest,
               fmt::format("x-orrery-query-access is '{}', but must be auto, scan or index.",
                           value.substr(0, 40)));
}

/// Whether the server merges the answers of several ranges: as the request says, or else as the
/// server's option does.
Result<bool> merges_ranges(const Services& services, const Context& context) {
  const auto value = context.header(headers::kCrossPartitionQueries);
  if (value.empty()) return !services.refuses_cross_partition;
  if (value == "serve") return true;
  if (value == "plan") return false;
  return Error(ErrorCode::BadRequest,
               fmt::format("x-orrery-cross-partition-queries is '{}', but must be serve or plan.",
                           value.substr(0, 40)));
}

/// A query, and what its WHERE pins where the request names no part of the container.
struct ParsedQuery {
  query::PreparedQueryPtr query;
  query::KeyPin pin;
  bool only_counts = false;  ///< all documents of the part that it is about
};

Result<ParsedQuery> parse_query(const Context& context, const catalog::Container& container,
                                const QueryBody& body, const query::Settings& settings) {
  ORRERY_TRY(auto tree, query::parse_query(body.text));
  ParsedQuery parsed;
  if (!has_target(context)) {
    parsed.pin =
        query::key_pin(*tree, body.parameters, container.definition.partition_key(), settings);
  }
  parsed.only_counts =
      query::only_counts(*tree) && (tree->where == nullptr || parsed.pin.is_whole_filter);
  ORRERY_TRY(parsed.query,
             query::PreparedQuery::prepare(std::move(tree), body.text, body.parameters, settings));
  return parsed;
}

executor::ContainerScope scope_of(Context& context, const catalog::Container& container,
                                  const std::vector<PartitionKey>& keys) {
  executor::ContainerScope scope;
  for (const PartitionKey& key : keys) {
    KeyPlace place = place_of(container.definition, key);
    const auto& range =
        &key == &keys.front() ? route(context, place.epk) : container.ranges.owner_of(place.epk);
    scope.keys.push_back({&range, effective_key_range(container.definition.partition_key(), key),
                          std::move(place.canonical)});
  }
  std::ranges::sort(scope.keys, {}, [](const executor::KeyScope& key) { return key.epks.min; });
  for (const executor::KeyScope& key : scope.keys) {
    if (scope.ranges.empty() || scope.ranges.back() != key.range) scope.ranges.push_back(key.range);
  }
  if (scope.keys.size() == 1) {
    scope.epks = std::move(scope.keys.front().epks);
    scope.partition_key = std::move(scope.keys.front().canonical);
    scope.keys.clear();
  }
  return scope;
}

/// The part of the container that the query is about: as the request says, or by the key that WHERE
/// pins, or the first range where it finds nothing anyway, or all of it if the request allows that.
Result<executor::ContainerScope> query_scope(Context& context, const catalog::Container& container,
                                             const ParsedQuery& parsed) {
  const auto& definition = container.definition.partition_key();
  if (has_target(context) || definition.paths.empty() || !parsed.query->reads_documents()) {
    return feed_scope(context, container);
  }
  if (!parsed.pin.keys.empty()) return scope_of(context, container, parsed.pin.keys);
  if (parsed.pin.finds_nothing) {
    executor::ContainerScope scope;
    scope.ranges.push_back(&route(context, Epk::min()));
    return scope;
  }
  ORRERY_TRY(const bool may_cross, context.flag(headers::kEnableCrossPartition));
  if (!may_cross) {
    return Error(ErrorCode::BadRequest,
                 "Cross partition query is required but disabled. Please set "
                 "x-ms-documentdb-query-enablecrosspartition to true, specify "
                 "x-ms-documentdb-partitionkey, or revise your query to avoid this exception.");
  }
  return feed_scope(context, container);
}

Result<executor::QueryJob> make_job(Context& context, const catalog::ContainerPtr& container,
                                    const QueryBody& body, const ParsedQuery& parsed) {
  const auto& query = parsed.query;
  ORRERY_TRY(executor::check_order_by(*query, container->definition));
  ORRERY_TRY(const auto count_max, page_size(context, kPageDefault));
  executor::QueryJob job;
  job.container = container;
  job.query = query;
  job.limits.rows_max = count_max.value_or(UINT32_MAX);
  job.only_counts = parsed.only_counts;
  ORRERY_TRY(job.choice, access_choice(context));
  ORRERY_TRY(job.scope, query_scope(context, *container, parsed));
  for (const catalog::Range* range : job.scope.ranges) ORRERY_TRY(check_session(context, *range));
  ORRERY_TRY(job.from, query_position(context, *query, &container->rid));
  ORRERY_TRY(job.resume_filter, resume_position(body.resume_filter, *query));
  job.access = query::access_of(*query);
  job.client = client_of(context).client;
  for (const HeaderName name : {headers::kPartitionKey, headers::kPartitionKeyRangeId,
                                headers::kStartEpk, headers::kEndEpk}) {
    job.target.append(context.header(name)).push_back('\n');
  }
  return job;
}

/// Whether it will not take long, as far as can be seen: it is about one key, or an index leads to
/// what it wants.
bool is_quick(const executor::QueryJob& job, const IndexState& indexes) {
  if (job.scope.is_of_keys() || !job.query->reads_documents()) return true;
  const bool is_narrow =
      std::ranges::any_of(job.access.conditions, &query::PathCondition::is_equality) ||
      (!job.access.order.empty() && (job.query->tree().top || job.query->tree().limit));
  return is_narrow && indexes.is_ready() && job.choice != executor::AccessChoice::Scan;
}

/// Whether to try a query on the event loop. Where the answer is mostly on the disk trying is a
/// waste: each time that it fails it is left out twice as often.
class LoopBackoff {
 public:
  bool is_due() {
    if (waiting_ == 0) return true;
    --waiting_;
    return false;
  }
  void record(bool well) {
    pause_ = well ? 0 : std::min(2 * pause_ + 1, kPauseMax);
    waiting_ = pause_;
  }

 private:
  static constexpr unsigned kPauseMax = 63;
  unsigned pause_ = 0;
  unsigned waiting_ = 0;
};

/// The page, where it can be had without leaving the event loop.
std::optional<executor::QueryPage> page_at_once(const Services& services,
                                                const executor::QueryJob& job) {
  thread_local LoopBackoff backoff;
  if (job.choice == executor::AccessChoice::Index || !job.query->is_plain() || !backoff.is_due()) {
    return std::nullopt;
  }
  auto page = executor::try_query_page(services.queries, job);
  backoff.record(page.has_value());
  return page;
}

/// As the service's gateway answers queries that it does not merge: old clients take the plan from
/// the error, newer ones then ask for it.
Result<std::optional<http::Response>> refusal_with_plan(Context& context, const QueryBody& body,
                                                        const executor::QueryJob& job,
                                                        const query::Settings& settings) {
  // Clients that have begun without a plan can't go on with one, even if a range was split since.
  const bool is_begun = !context.header(headers::kContinuation).empty();
  if (has_target(context) || is_begun || job.container->ranges.all().size() < 2) {
    return std::optional<http::Response>();
  }
  // Without that, the filter pins a key: one range is enough, whatever the query is.
  ORRERY_TRY(const bool may_cross, context.flag(headers::kEnableCrossPartition));
  if (!may_cross) return std::optional<http::Response>();
  ORRERY_TRY(const bool is_parallel, context.flag(headers::kParallelizeCrossPartition));
  // Most queries: there is no need to plan them to know that they are served.
  const query::Query& tree = job.query->tree();
  const bool is_filter = job.query->shape() == query::PreparedQuery::Shape::Stream &&
                         !job.query->inner() && !tree.is_distinct && !tree.top && !tree.offset;
  if (is_filter && !is_parallel) return std::optional<http::Response>();
  // Clients of 2017 are served any query whose filter names one key; their own tests insist.
  const bool is_early = !context.api_version.empty() && context.api_version < "2018-06-18";
  if (is_early && job.scope.is_of_keys()) return std::optional<http::Response>();
  const query::PlanRequest request{.text = body.text,
                                   .parameters = job.query->parameters(),
                                   .settings = settings,
                                   .definition = job.container->definition.partition_key(),
                                   .features = {},
                                   .is_parallel = is_parallel};
  ORRERY_TRY(const auto plan, query::make_first_chance_plan(request));
  if (!plan) return std::optional<http::Response>();
  const std::string message = fmt::format(
      "The provided cross partition query can not be directly served by the gateway. This is a "
      "first chance (internal) exception that all newer clients will know how to handle "
      "gracefully. This exception is traced, but unless you see it bubble up as an exception "
      "(which only happens on older SDK clients), then you can safely ignore this "
      "message.\r\nActivityId: {}",
      context.activity_id);
  std::string text = R"({"code":"BadRequest","message":)";
  json::append_quoted(text, message);
  text += R"(,"additionalErrorInfo":)";
  json::append_quoted(text, *plan);
  text += '}';
  auto response = reply(context, 400, std::move(text));
  response.add(headers::kSubstatus.text, "1004");
  return std::optional(std::move(response));
}

Result<> add_reports(http::Response& response, const Context& context,
                     const executor::QueryJob& job, const executor::QueryPage& page,
                     const QueryTimes& times) {
  const auto& definition = job.container->definition;
  ORRERY_TRY(const bool wants_metrics, context.flag(headers::kPopulateQueryMetrics));
  if (wants_metrics) response.add(headers::kQueryMetrics.text, query_metrics(page, times));
  ORRERY_TRY(const bool wants_indexes, context.flag(headers::kPopulateIndexMetrics));
  ORRERY_TRY(const bool wants_indexes_v2, context.flag(headers::kPopulateIndexMetricsV2));
  if (wants_indexes || wants_indexes_v2) {
    IndexUse use = index_use(job.access, definition);
    // The service finds the documents of a key by an index, too.
    if (use.utilized.empty() && job.scope.is_of_keys()) use.utilized = key_indexes(definition);
    response.add(headers::kIndexUtilization.text,
                 wants_indexes_v2 ? index_metrics_v2(use) : index_metrics_base64(use));
  }
  ORRERY_TRY(const bool wants_explanation, context.flag(headers::kExplain));
  if (wants_explanation) {
    auto missing = index_state(job).missing;
    if (job.scope.is_of_keys()) {
      missing = helpful_within_key(std::move(missing), definition.partition_key());
    }
    response.add(headers::kExplain.text,
                 explanation(page, *job.query, missing, potential_indexes(job.access, definition),
                             indexes_being_built(job)));
  }
  return {};
}

http::Response show(Context& context, const executor::QueryJob& job, executor::QueryPage& page) {
  std::string body;
  body.reserve(page.rows.size() + 128);
  open_feed(body, job.container->rid_text, "Documents");
  body += page.rows;
  close_feed(body, page.count);
  context.charge =
      query_page_charge(page.stats.documents, page.stats.document_bytes, page.rows.size());
  auto response = reply(context, 200, std::move(body));
  response.add(headers::kItemCount.text, page.count);
  add_query_execution_info(response);
  add_container_paths(response, *job.container);
  add_head_headers(response, context, page.heads);
  if (page.next) {
    response.add(headers::kContinuation.text, has_target(context)
                                                  ? encode_continuation(*page.next)
                                                  : encode_gateway_continuation(*page.next));
  }
  return response;
}

/// Whether understanding it may take longer than an event loop should.
bool has_long_body(const Context& context) {
  return context.request.body.size() > kBodyBytesMaxOnLoop;
}

/// All that is to be known before the first document is looked at.
struct QuerySetup {
  executor::QueryJob job;
  QueryTimes times;
  IndexState indexes;
  std::optional<http::Response> refusal;
};

Result<QuerySetup> set_up(const Services& services, Context& context,
                          const catalog::ContainerPtr& container, const query::Settings& settings) {
  ORRERY_TRY(const auto body, parse_query_body(context));
  const auto begun = Clock::now();
  ORRERY_TRY(const auto parsed, parse_query(context, *container, body, settings));
  const auto compiled = Clock::now();
  QuerySetup setup;
  ORRERY_TRY(setup.job, make_job(context, container, body, parsed));
  setup.times = {.compile = compiled - begun, .plan = Clock::now() - compiled};
  ORRERY_TRY(const bool is_merged, merges_ranges(services, context));
  setup.job.spans_ranges = is_merged || has_target(context);
  if (!is_merged) {
    ORRERY_TRY(setup.refusal, refusal_with_plan(context, body, setup.job, settings));
  }
  setup.indexes = index_state(setup.job);
  return setup;
}

Result<std::string> make_plan(const Context& context, const catalog::Container& container) {
  ORRERY_TRY(const auto body, parse_query_body(context));
  const query::Settings settings = executor::query_settings(container.definition);
  query::PlanRequest request{.text = body.text,
                             .parameters = body.parameters,
                             .settings = settings,
                             .definition = container.definition.partition_key(),
                             .features = {}};
  if (context.request.has_header(headers::kSupportedQueryFeatures)) {
    request.features = context.header(headers::kSupportedQueryFeatures);
  }
  return query::make_plan(request);
}

/// The page, by another thread.
Async<executor::QueryPage> page_elsewhere(const Services& services, Context& context,
                                          const executor::QueryJob& job,
                                          const query::Settings& settings, bool is_short) {
  const Cancellation cancellation = when_client_leaves(context);
  const auto run = [&](WorkBudget& work) -> Result<executor::QueryPage> {
    ORRERY_TRY(auto page, job.query->shape() == query::PreparedQuery::Shape::Ranked
                              ? executor::run_ranked_page(services.queries, job, settings, work)
                              : executor::run_query_page(services.queries, job, work));
    ORRERY_TRY(hold_answer(context, page.rows.size()));
    return page;
  };
  if (job.choice == executor::AccessChoice::Index) {
    ORRERY_CO_TRY(co_await wait_for_indexes(services, context, job, cancellation));
  }
  if (is_short && job.from.suspended == 0 && services.short_queries != nullptr) {
    bool is_given_up = false;
    const auto lane = services.short_queries->lane(client_of(context));
    auto page = co_await run_blocking(lane, [&] {
      WorkLimits limits = page_limits(services.page_time_max);
      limits.total_time_max = kShortTimeMax;
      WorkBudget work(limits, cancellation);
      auto made = run(work);
      is_given_up = work.stop() == WorkBudget::Stop::TotalTime;
      return made;
    });
    if (!is_given_up) co_return page;
  }
  // Long ones give way to writers, and to those that are not long.
  const auto lane = services.scans.lane(client_of(context));
  co_return co_await run_blocking(lane, [&] {
    WorkBudget work(page_limits(services.page_time_max), cancellation);
    return run(work);
  });
}

}  // namespace

Async<http::Response> query(Services& services, Context& context) {
  const auto& container = context.target.container;
  ORRERY_CO_TRY(check_consistency(context));
  ORRERY_CO_TRY(context.flag(headers::kEnableScan));
  const query::Settings settings = executor::query_settings(container->definition);
  const bool is_long = has_long_body(context);
  std::optional<QuerySetup> setup;
  const auto make = [&] { return set_up(services, context, container, settings); };
  if (is_long) {
    const auto lane = services.scans.lane(client_of(context));
    ORRERY_CO_TRY(setup, co_await run_blocking(lane, make));
  } else {
    ORRERY_CO_TRY(setup, make());
  }
  if (setup->refusal) co_return std::move(*setup->refusal);
  const executor::QueryJob& job = setup->job;
  const bool is_short = is_quick(job, setup->indexes);
  std::optional<executor::QueryPage> page;
  if (is_short && !is_long) page = page_at_once(services, job);
  if (page) {
    note_brief_use(services, job, *page);
  } else {
    ORRERY_CO_TRY(page, co_await page_elsewhere(services, context, job, settings, is_short));
    note_use(services, job, *page, 1);
  }
  // A scan on request does not count towards the advisor.
  const bool may_use_indexes = job.choice != executor::AccessChoice::Scan;
  if (may_use_indexes && !setup->indexes.missing.empty()) advise(services, context, job, *page);
  auto response = show(context, job, *page);
  ORRERY_CO_TRY(add_reports(response, context, job, *page, setup->times));
  co_return response;
}

Async<http::Response> query_plan(Services& services, Context& context) {
  const auto& container = context.target.container;
  const auto make = [&] { return make_plan(context, *container); };
  std::string plan;
  if (has_long_body(context)) {
    const auto lane = services.scans.lane(client_of(context));
    ORRERY_CO_TRY(plan, co_await run_blocking(lane, make));
  } else {
    ORRERY_CO_TRY(plan, make());
  }
  context.charge = kMetadataRead;
  auto response = reply(context, 200, std::move(plan));
  add_container_paths(response, *container);
  co_return response;
}

}  // namespace orrery::api::documents

#include "api/query/query_indexes.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include "api/query/index_advice.h"
#include "base/diagnostics.h"
#include "index/advisor.h"
#include "maintenance/index_builder.h"
#include "partition/partition.h"

namespace orrery::api {
namespace {

constexpr std::chrono::seconds kIndexWaitMax{60};
constexpr std::chrono::milliseconds kIndexWaitStep{5};

using Clock = std::chrono::steady_clock;

std::vector<std::string> texts_of(const std::vector<IndexSpec>& specs) {
  std::vector<std::string> texts;
  texts.reserve(specs.size());
  for (const IndexSpec& spec : specs) texts.push_back(spec.text());
  return texts;
}

/// The advisor's observation of a query that lacks indexes.
index::Advisor::Observation observation_of(const Context& context, const executor::QueryJob& job,
                                           std::vector<IndexSpec> missing) {
  index::Advisor::Observation observation{
      .container = job.container->rid_text,
      .documents = 0,
      .helpful = std::move(missing),
      .is_read_only = context.principal.access == Access::ReadOnly};
  std::set<std::string> automatic;
  for (const catalog::Range* range : job.scope.ranges) {
    observation.documents += range->partition->documents();
    const auto records = range->partition->indexes();
    if (!records) continue;
    observation.indexes = std::max(observation.indexes, records->size());
    for (const auto& record : *records) automatic.insert(record.spec);
  }
  for (const IndexSpec& named : job.container->definition.named_indexes()) {
    automatic.erase(named.text());
  }
  observation.automatic.assign(automatic.begin(), automatic.end());
  return observation;
}

void follow(const Services& services, const executor::QueryJob& job,
            const index::Advisor::Advice& advice) {
  if (advice.build.empty()) return;
  services.index_builder->request(job.container->rid, texts_of(advice.build), advice.drop);
  for (const std::string& dropped : advice.drop) {
    diagnostics::info("{}: the automatic index {} makes room for {}",
                      job.container->alt_content_path, dropped, advice.build.front().text());
  }
}

/// Sees to it that what the query wants will be built.
Result<> ask_for_indexes(const Services& services, const Context& context,
                         const executor::QueryJob& job) {
  auto missing = index_state(job).missing;
  if (missing.empty()) return {};
  if (services.index_advisor == nullptr) {
    services.index_builder->request(job.container->rid, texts_of(missing));
    return {};
  }
  const std::size_t wanted = missing.size();
  const std::string first = missing.front().text();
  const auto observation = observation_of(context, job, std::move(missing));
  const auto advice = services.index_advisor->request(observation, partition::kIndexesMax);
  follow(services, job, advice);
  if (advice.build.size() == wanted) return {};
  if (observation.is_read_only && observation.indexes < partition::kIndexesMax) {
    return Error(ErrorCode::BadRequest,
                 fmt::format("The query wants an index on {}, but queries of read-only keys have "
                             "as many indexes as they may: ask with a read-write key, name the "
                             "index in the indexing policy, or leave out x-orrery-query-access.",
                             first));
  }
  return Error(ErrorCode::BadRequest,
               fmt::format("The query wants an index on {}, but the container has {} indexes, and "
                           "may have no more: exclude paths from its indexing policy, or leave out "
                           "x-orrery-query-access.",
                           first, observation.indexes));
}

}  // namespace

IndexState index_state(const executor::QueryJob& job) {
  IndexState state;
  for (IndexSpec& spec : helpful_indexes(job.access, job.container->definition)) {
    bool is_missing = false;
    for (const catalog::Range* range : job.scope.ranges) {
      switch (range->partition->index_progress(spec.text())) {
        case partition::IndexProgress::Absent:
          is_missing = true;
          break;
        case partition::IndexProgress::Building:
          state.is_building = true;
          break;
        case partition::IndexProgress::Complete:
          break;
      }
    }
    if (is_missing) state.missing.push_back(std::move(spec));
  }
  return state;
}

std::vector<std::string> indexes_being_built(const executor::QueryJob& job) {
  std::set<std::string> building;
  for (const catalog::Range* range : job.scope.ranges) {
    const auto records = range->partition->indexes();
    if (!records) continue;
    for (const auto& record : *records) {
      if (!record.is_complete()) building.insert(record.spec);
    }
  }
  return {building.begin(), building.end()};
}

void advise(const Services& services, const Context& context, const executor::QueryJob& job,
            const executor::QueryPage& page) {
  if (services.index_advisor == nullptr || services.index_builder == nullptr) return;
  auto missing = index_state(job).missing;
  if (missing.empty()) return;
  auto observation = observation_of(context, job, std::move(missing));
  observation.documents_read = page.stats.documents;
  observation.rows = page.stats.rows;
  follow(services, job, services.index_advisor->observe(observation));
}

void note_use(const Services& services, const executor::QueryJob& job,
              const executor::QueryPage& page, std::uint64_t times) {
  if (services.index_advisor == nullptr) return;
  std::set<std::string> served;
  std::uint64_t documents = 0;
  for (const catalog::Range* range : job.scope.ranges) documents += range->partition->documents();
  for (const executor::RangeReport& report : page.ranges) {
    served.insert(report.source.indexes.begin(), report.source.indexes.end());
  }
  if (served.empty()) return;
  const std::uint64_t saved = documents - std::min(documents, page.stats.documents);
  services.index_advisor->used(job.container->rid_text,
                               std::vector<std::string>(served.begin(), served.end()),
                               saved * times);
}

void note_brief_use(const Services& services, const executor::QueryJob& job,
                    const executor::QueryPage& page) {
  constexpr std::uint64_t kInterval = 64;
  thread_local std::uint64_t count = 0;
  if (++count % kInterval == 0) note_use(services, job, page, kInterval);
}

Async<> wait_for_indexes(const Services& services, const Context& context,
                         const executor::QueryJob& job, const Cancellation& cancellation) {
  const auto helpful = helpful_indexes(job.access, job.container->definition);
  if (helpful.empty() || services.index_builder == nullptr) co_return Result<>();
  asio::steady_timer timer(co_await asio::this_coro::executor);
  const auto deadline = Clock::now() + kIndexWaitMax;
  while (!index_state(job).is_ready()) {
    ORRERY_CO_TRY(ask_for_indexes(services, context, job));
    if (cancellation && cancellation->load(std::memory_order_relaxed)) {
      co_return Error(ErrorCode::ClientGone, "The client has gone: its query was given up.");
    }
    if (Clock::now() > deadline) {
      co_return Error(ErrorCode::Unavailable,
                      "The indexes that the query wants are not built yet: ask again, or leave out "
                      "x-orrery-query-access.");
    }
    for (const catalog::Range* range : job.scope.ranges)
      ORRERY_CO_TRY(range->partition->check_in_place());
    timer.expires_after(kIndexWaitStep);
    co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  co_return Result<>();
}

}  // namespace orrery::api

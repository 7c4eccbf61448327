// Services: what the handlers of requests stand on. Outlives them all.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include <boost/asio/thread_pool.hpp>

#include "api/host_check.h"
#include "api/keyring.h"
#include "base/background_pool.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/work_budget.h"
#include "catalog/catalog.h"
#include "executor/environment.h"
#include "feed/prefetch.h"
#include "feed/push.h"
#include "feed/reader.h"
#include "index/advisor.h"
#include "partition/partition.h"

namespace orrery::maintenance {
class BackupRunner;
class CheckRunner;
class IndexBuilder;
class RangeChanges;
}  // namespace orrery::maintenance

namespace orrery::api {

struct Services {
  catalog::Catalog& catalog;
  maintenance::RangeChanges& range_changes;
  executor::Environment queries;       ///< what queries over documents run on
  boost::asio::thread_pool& blocking;  ///< where what may block runs
  BackgroundPool& scans;  ///< where pages of feeds are read, which gives way to writers
  boost::asio::thread_pool& topology;  ///< where ranges are split and merged, which takes long
  const Clock& clock;
  feed::Prefetcher& prefetcher;
  feed::Reader& feed;
  feed::Push& push;  ///< readers of the feed who wait

  /// Where clients are told to send their traffic; empty: wherever the request was sent to.
  std::string advertised_endpoint;

  /// The certificate chain in force, in PEM; empty: there is none.
  std::function<std::string()> certificate_pem;
  /// Whether a write would succeed. Blocks.
  std::function<Result<>()> check_ready;
  /// Prometheus text. Blocks briefly.
  std::function<std::string()> metrics;

  /// Builds indexes; null where nobody does, as in tests.
  maintenance::IndexBuilder* index_builder = nullptr;
  /// Says which are worth it. Null: nobody does.
  index::Advisor* index_advisor = nullptr;
  /// Clients are to merge the answers of ranges by themselves, as the service makes them: queries
  /// over several ranges that are more than a filter are refused with their plan, unless the
  /// request asks for the whole answer.
  bool refuses_cross_partition = true;
  /// Where queries run that an index or a key makes short, as long as they are. Null: with the long
  /// ones.
  BackgroundPool* short_queries = nullptr;
  /// A page of a feed or query ends after this time, and one document may take as much of a
  /// processor.
  std::chrono::milliseconds page_time_max{1000};
  /// By default every name.
  HostCheck hosts{};
  /// The account keys; null in tests of handlers, which are called without one.
  const Keyring* keys = nullptr;
  /// Reads keys and certificate again: see server::Server::reload(). Blocks.
  std::function<Result<>()> reload{};
  /// Describes the account to those who do not sign, too, while the well-known key is in force.
  bool shows_account_to_all = false;
  /// Null in tests of handlers.
  maintenance::BackupRunner* backups = nullptr;
  maintenance::CheckRunner* checks = nullptr;
};

/// Of a page that begins now.
inline WorkLimits page_limits(std::chrono::milliseconds page_time_max) {
  return {.deadline = std::chrono::steady_clock::now() + page_time_max,
          .item_time_max = page_time_max};
}

}  // namespace orrery::api

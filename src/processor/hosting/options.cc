#include "processor/hosting/options.h"

#include <algorithm>

#include <fmt/format.h>

#include "client/exchange/refusal.h"

namespace orrery::processor {

namespace {

void require(bool holds, const std::string& otherwise) {
  if (holds) return;
  throw client::failure_of(client::Failure::Argument, otherwise);
}

void check_limits(const RateLimits& limits) {
  for (const auto& limit : {limits.documents, limits.bytes, limits.request_units}) {
    require(!limit || *limit > 0, "a rate limit must be above 0; leave it out for no bound");
  }
}

void check_retry(const ChangeFeedHostOptions& options) {
  const RetryPolicy& retry = options.retry;
  require(retry.max_attempts >= 0, "retry.max_attempts must not be negative");
  require(retry.first_wait.count() >= 0 && retry.wait_max >= retry.first_wait,
          "retry.wait_max must not be below retry.first_wait");
  const bool has_container = options.dead_letter_container.has_value();
  const bool has_callback = options.dead_letter_callback != nullptr;
  require(!has_container || !has_callback,
          "dead letters go to a container or to a callback, not to both");
  require(retry.max_attempts == 0 || retry.then != RetryPolicy::Then::DeadLetter || has_container ||
              has_callback,
          "retry.then is DeadLetter, but there is neither a dead_letter_container nor a "
          "dead_letter_callback");
}

void check_feed(const MonitoredFeedOptions& options) {
  require(!options.max_item_count || *options.max_item_count > 0,
          "max_item_count must be above 0; leave it out for the server's choice");
  const bool from_past = options.start_from_beginning || options.start_time.has_value();
  require(options.mode == client::ChangeFeedMode::LatestVersion || !from_past,
          "with all versions a feed begins now or at a continuation, not in the past");
}

}  // namespace

std::vector<std::string> check_options(const std::string& host_name,
                                       const MonitoredFeedOptions& feed_options,
                                       const ChangeFeedHostOptions& options) {
  const bool blank = host_name.find_first_not_of(" \t\r\n") == std::string::npos;
  require(!blank, "a host needs a name");
  require(options.lease_prefix.find_first_of("/\\?#") == std::string::npos,
          "lease_prefix begins the ids of leases, which must not have '/', '\\', '?' or '#'");
  require(options.lease_acquire_interval.count() > 0, "lease_acquire_interval must be above 0");
  require(options.lease_renew_interval.count() > 0, "lease_renew_interval must be above 0");
  require(
      options.lease_renew_interval * 2 <= options.lease_expiration_interval,
      fmt::format("lease_renew_interval ({} ms) must not be above half of "
                  "lease_expiration_interval ({} ms): leases would expire under their owners",
                  options.lease_renew_interval.count(), options.lease_expiration_interval.count()));
  require(options.feed_poll_delay.count() >= 0, "feed_poll_delay must not be negative");
  require(options.long_poll_wait.count() >= 0, "long_poll_wait must not be negative");
  require(options.change_feed_timeout.count() > 0, "change_feed_timeout must be above 0");
  require(options.shutdown_deadline.count() >= 0, "shutdown_deadline must not be negative");
  require(options.min_partition_count >= 0 && options.max_partition_count >= 0,
          "partition counts must not be negative");
  require(options.max_partition_count == 0 ||
              options.min_partition_count <= options.max_partition_count,
          "min_partition_count must not be above max_partition_count");
  require(options.degree_of_parallelism > 0, "degree_of_parallelism must be above 0");
  require(options.query_partitions_max_batch_size > 0,
          "query_partitions_max_batch_size must be above 0");
  require(options.lanes > 0, "lanes must be above 0");
  require(options.lanes == 1 || !options.checkpoint_frequency.explicit_checkpoint,
          "with lanes the position is known only to the host: explicit checkpoints need lanes = 1");
  require(!options.batch_deadline || options.batch_deadline->count() > 0,
          "batch_deadline must be above 0");
  require(!options.close_after_deadline || options.batch_deadline.has_value(),
          "close_after_deadline needs a batch_deadline");
  check_retry(options);
  check_limits(options.limits);
  check_feed(feed_options);

  std::vector<std::string> warnings;
  if (options.lease_renew_interval * 3 > options.lease_expiration_interval) {
    warnings.push_back(
        "lease_renew_interval is above a third of lease_expiration_interval: two renewals that "
        "fail in a row lose a lease");
  }
  return warnings;
}

}  // namespace orrery::processor

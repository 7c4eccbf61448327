// Shared by hosts of the tests, in whatever process they are: their options, and a sink that
// refuses hosts whose epoch is over.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "orrery/processor.h"

namespace orrery::test {

/// Everything a hundred times as fast as in production.
inline processor::ChangeFeedHostOptions fast() {
  using namespace std::chrono_literals;
  processor::ChangeFeedHostOptions options;
  options.lease_renew_interval = 200ms;
  options.lease_acquire_interval = 150ms;
  options.lease_expiration_interval = 1000ms;
  options.feed_poll_delay = 50ms;
  options.long_poll_wait = 2s;
  options.shutdown_deadline = 5s;
  return options;
}

/// Keeps how far a lease has come, and by whom, in a container with the key `/id`. False, and
/// nothing is written, when a later owner of the lease was there.
inline bool sink_takes(const client::Container& sink, const std::string& lease, std::uint64_t epoch,
                       const std::string& to) {
  const std::string document = nlohmann::json{{"id", lease}, {"epoch", epoch}, {"to", to}}.dump();
  while (true) {
    try {
      const auto stored = sink.read_item(lease, lease);
      if (nlohmann::json::parse(stored.value).at("epoch").get<std::uint64_t>() > epoch) {
        return false;
      }
      client::ItemOptions if_unchanged;
      if_unchanged.if_match = stored.etag;
      sink.replace_item(lease, document, lease, if_unchanged);
      return true;
    } catch (const client::CosmosException& refusal) {
      if (refusal.status() == 412) continue;
      if (refusal.status() != 404) throw;
    }
    try {
      sink.create_item(document, lease);
      return true;
    } catch (const client::CosmosException& refusal) {
      if (refusal.status() != 409) throw;
    }
  }
}

}  // namespace orrery::test

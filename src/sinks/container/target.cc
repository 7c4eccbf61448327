#include "sinks/container/target.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/stop_wait.h"
#include "client/handles/container_access.h"
#include "json/value.h"

namespace orrery::sinks {
namespace {

constexpr std::chrono::milliseconds kWaitMax{2000};
/// Others may be at the ledger too, each at most once for each of its leases.
constexpr int kLedgerAttemptsMax = 1000;
/// Their positions go into one batch with the documents. Each split adds one; only leases that were
/// lost, and made anew after many merges, come near this.
constexpr std::size_t kPredecessorsMax = 50;

std::vector<std::vector<std::string>> unique_paths(const client::ContainerProperties& properties) {
  std::vector<std::vector<std::string>> paths;
  const auto policy =
      nlohmann::json::parse(properties.unique_key_policy, nullptr, /*allow_exceptions=*/false);
  if (!policy.is_object()) return paths;
  for (const auto& key : policy.value("uniqueKeys", nlohmann::json::array())) {
    for (const auto& path : key.value("paths", nlohmann::json::array())) {
      if (!path.is_string()) continue;
      if (auto names = parse_property_path(path.get<std::string>())) paths.push_back(*names);
    }
  }
  return paths;
}

}  // namespace

Target::Target(client::Container container, std::string name, std::string group,
               std::string source_rid)
    : Target(container, std::move(name), std::move(group), std::move(source_rid),
             container.read().value,
             client::ContainerAccess::pipeline(container)
                 .routing(container.link(), {})
                 ->definition()) {}

Target::Target(client::Container container, std::string name, std::string group,
               std::string source_rid, const client::ContainerProperties& properties,
               const PartitionKeyDefinition& definition)
    : container(std::move(container)),
      name(std::move(name)),
      source_rid(std::move(source_rid)),
      keys(definition),
      positions(std::move(group), definition, unique_paths(properties)) {}

client::PartitionKey key_for_calls(const PartitionKey& key) {
  // A key that is missing altogether is written differently for containers that have none.
  if (key.size() <= 1 &&
      (key.empty() || std::holds_alternative<Undefined>(key.components().front()))) {
    return client::PartitionKey::none();
  }
  return client::PartitionKey::from_json(key.to_json());
}

bool may_pass(int status, int sub_status) {
  return status == 0 || status == 408 || status == 410 || status == 429 || status == 449 ||
         status >= 500 || (status == 404 && sub_status == 1002);
}

bool may_pass(const client::CosmosException& failure) {
  switch (failure.failure()) {
    case client::Failure::Network:
    case client::Failure::Timeout:
    case client::Failure::Cancelled:
      return true;
    case client::Failure::Argument:
      return false;
    case client::Failure::Response:
      return may_pass(failure.status(), failure.sub_status());
  }
  return false;
}

void Patience::wait(std::optional<std::chrono::milliseconds> at_least) {
  const auto time = std::max(next_, at_least.value_or(next_));
  next_ = std::min(next_ * 2, kWaitMax);
  wait_unless_stopped(stop_, time);
}

// ── LedgerKeeper ─────────────────────────────────────────────────────────────────────────────────

LedgerKeeper::LedgerKeeper(const Target& target)
    : target_(target),
      id_(target.positions.ledger_id()),
      key_(key_for_calls(target.keys.key_of(target.positions.ledger_text(Ledger().to_json())))) {}

LedgerKeeper::Known LedgerKeeper::read() const {
  try {
    const auto answer = target_.container.read_item(id_, key_);
    auto ledger = Ledger::parse(answer.value);
    if (!ledger) {
      throw CopyFailure(fmt::format("the document '{}' in {} is not what 'orrery copy' wrote there",
                                    id_, target_.name));
    }
    if (ledger->source_rid != target_.source_rid) {
      throw CopyFailure(
          fmt::format("the positions of this group in {} are those of another source, or of one "
                      "that was deleted and made again. Take another --group",
                      target_.name));
    }
    return {*std::move(ledger), answer.etag};
  } catch (const client::CosmosException& failure) {
    if (!failure.is_not_found()) throw;
    return {{target_.source_rid, {}}, {}};
  }
}

LedgerKeeper::Registration LedgerKeeper::enter(const client::FeedRange& area, std::uint64_t epoch) {
  const std::scoped_lock lock(mutex_);
  for (int attempt = 1;; ++attempt) {
    Known known = read();
    Registration registration;
    registration.superseded = known.ledger.is_superseded(area, epoch);
    if (registration.superseded) return registration;
    registration.first = known.ledger.find(area) == nullptr;
    registration.predecessors = known.ledger.predecessors_of(area);
    if (registration.predecessors.size() > kPredecessorsMax) {
      throw CopyFailure(fmt::format(
          "{} has positions of too many former leases. Take another --group", target_.name));
    }
    known.ledger.take(area, epoch);
    const std::string text = target_.positions.ledger_text(known.ledger.to_json());
    try {
      client::ItemOptions options;
      options.return_content = false;
      options.if_match = known.etag;
      if (known.etag.empty()) {
        target_.container.create_item(text, key_, options);
      } else {
        target_.container.replace_item(id_, text, key_, options);
      }
      return registration;
    } catch (const client::CosmosException& failure) {
      const bool met =
          failure.is_conflict() || failure.is_precondition_failed() || failure.is_not_found();
      if (!met || attempt == kLedgerAttemptsMax) throw;
    }
  }
}

bool LedgerKeeper::is_superseded(const client::FeedRange& area, std::uint64_t epoch) {
  return read().ledger.is_superseded(area, epoch);
}

}  // namespace orrery::sinks

#include "sinks/container/verify.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "json/value.h"
#include "sinks/container/copy_failure.h"

namespace orrery::sinks {
namespace {

constexpr std::size_t kLinesMax = 20;
constexpr std::uint32_t kPageSize = 1000;

std::string id_of(std::string_view document) {
  std::string buffer;
  const auto value = json::Value::of_checked(document);
  return std::string(value.member("id").as_string(buffer));
}

client::ItemPages pages_of(const client::Container& container, const std::stop_token& stop) {
  client::ItemListOptions options;
  options.page_size = kPageSize;
  options.stop = stop;
  return container.list_items(options);
}

}  // namespace

void Comparison::note(std::string_view what, const PartitionKey& key, std::string_view id) {
  if (report_.lines.size() >= kLinesMax) return;
  report_.lines.push_back(fmt::format("{}: '{}', partition key {}", what, id, key.to_json()));
}

void Comparison::take_destination(std::string_view document) {
  if (PositionFormat::is_position(document)) return;
  const std::string text = without_system_properties(document);
  std::string place = destination_.key_of(text).canonical();
  const std::size_t key_size = place.size();
  entries_.insert_or_assign(place.append(id_of(document)),
                            Entry{std::hash<std::string>{}(text), key_size});
}

void Comparison::take_source(std::string_view document) {
  if (PositionFormat::is_position(document)) return;
  const std::string text = without_system_properties(document);
  const std::string id = id_of(document);
  const PartitionKey key = destination_.key_of(text);
  ++report_.compared;
  const auto found = entries_.find(key.canonical() + id);
  if (found == entries_.end()) {
    ++report_.missing;
    note("missing in the destination", key, id);
  } else if (std::exchange(found->second.found, true)) {
    ++report_.merged;
    note("several documents of the source are one in the destination", key, id);
  } else if (found->second.hash != std::hash<std::string>{}(text)) {
    ++report_.different;
    note("different", key, id);
  }
}

Comparison::Report Comparison::report() {
  const std::size_t components = destination_.definition().paths.size();
  for (const auto& [place, entry] : entries_) {
    if (entry.found) continue;
    ++report_.extra;
    const auto key = PartitionKey::from_canonical(place.substr(0, entry.key_size), components);
    if (key) note("only in the destination", *key, place.substr(entry.key_size));
  }
  return std::move(report_);
}

Comparison::Report compare(const client::Container& source, const CopyTarget& target,
                           const std::stop_token& stop) {
  Comparison comparison(target.keys);
  pages_of(target.container, stop).for_each([&](const client::ItemPage& page) {
    for (const std::string_view document : page) comparison.take_destination(document);
  });
  pages_of(source, stop).for_each([&](const client::ItemPage& page) {
    for (const std::string_view document : page) comparison.take_source(document);
  });
  return comparison.report();
}

std::uint64_t remove_positions(const CopyTarget& target, const std::stop_token& stop) {
  std::uint64_t removed = 0;
  std::vector<client::ItemOperation> ledger;
  const auto remove = [&](const std::vector<client::ItemOperation>& operations) {
    if (operations.empty()) return;
    const auto answer = target.container.execute_bulk(operations);
    for (const client::ItemResult& result : answer.results) {
      if (result.ok()) ++removed;
      if (!result.ok() && result.status != 404) {
        throw CopyFailure(
            fmt::format("a position can't be removed from {}: {}", target.name, result.message));
      }
    }
  };
  pages_of(target.container, stop).for_each([&](const client::ItemPage& page) {
    std::vector<client::ItemOperation> operations;
    for (const std::string_view document : page) {
      if (!target.positions.is_ours(document)) continue;
      std::string id = id_of(document);
      auto& list = id == target.positions.ledger_id() ? ledger : operations;
      list.push_back(client::ItemOperation::remove(std::move(id))
                         .with_partition_key(client_key(target.keys.key_of(document))));
    }
    remove(operations);
  });
  // The ledger goes last: as long as it is there, the next run after an interruption finds the
  // rest.
  remove(ledger);
  return removed;
}

}  // namespace orrery::sinks

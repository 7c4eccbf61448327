#include "catalog/loss_report.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "catalog/entries.h"
#include "storage/keys.h"
#include "storage/records.h"

namespace orrery::catalog {
namespace {

using storage::Family;

/// "database/container, range 0" for each partition that a container has.
Result<std::map<PartitionNumber, std::string>> partition_names(const storage::Snapshot& snapshot) {
  std::map<Rid, std::string> databases;
  std::vector<StoredContainer> containers;
  auto cursor = snapshot.cursor(Family::Catalog, "", std::string(8, '\xFF'));
  try {
    for (; cursor.valid(); cursor.next()) {
      if (cursor.key().starts_with('d')) {
        if (auto database = parse_database(cursor.key(), cursor.value())) {
          databases.emplace(database->rid, database->id);
        }
      } else if (cursor.key().starts_with('c')) {
        if (auto container = parse_container(cursor.key(), cursor.value())) {
          containers.push_back(std::move(*container));
        }
      }
    }
  } catch (const Json::exception& broken) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("a catalog entry cannot be read ({})", broken.what()));
  }
  ORRERY_TRY(cursor.status());
  std::map<PartitionNumber, std::string> names;
  for (const StoredContainer& container : containers) {
    for (const StoredRange& range : container.ranges) {
      names.emplace(range.partition,
                    fmt::format("{}/{}, range {}", databases[container.rid.database_rid()],
                                container.definition.id(), range.id.text()));
    }
  }
  return names;
}

}  // namespace

Result<std::vector<std::string>> describe_loss(const storage::Store& remains,
                                               const storage::Loss& loss) {
  ORRERY_TRY(const auto snapshot, remains.snapshot());
  ORRERY_TRY(const auto names, partition_names(snapshot));
  std::vector<std::string> lines;
  std::set<PartitionNumber> told;
  auto cursor = snapshot.cursor(Family::Heads, "", std::string(8, '\xFF'));
  for (; cursor.valid(); cursor.next()) {
    if (cursor.key().size() != storage::partition_prefix({}).size()) continue;
    const PartitionNumber partition{storage::read_u32(cursor.key().data())};
    const auto head = storage::Head::parse(cursor.value());
    const auto name = names.find(partition);
    if (!head || name == names.end()) continue;
    told.insert(partition);
    const auto lost = loss.heads.find(partition);
    if (lost != loss.heads.end() && lost->second > head->lsn) {
      lines.push_back(
          fmt::format("{}: LSNs {} to {}", name->second, head->lsn.value + 1, lost->second.value));
    } else if (loss.heads.empty()) {
      // Nothing of what is lost can be read, so it may have been in any of them.
      lines.push_back(
          fmt::format("{}: what was written after LSN {}", name->second, head->lsn.value));
    }
  }
  ORRERY_TRY(cursor.status());
  for (const auto& [partition, lsn] : loss.heads) {
    if (told.contains(partition)) continue;
    lines.push_back(
        fmt::format("a range that was made after the damage (partition {}): LSNs up to {}",
                    partition.value, lsn.value));
  }
  return lines;
}

}  // namespace orrery::catalog

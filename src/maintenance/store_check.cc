#include "maintenance/store_check.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "maintenance/document_families.h"
#include "partition/check/partition_check.h"
#include "storage/keys.h"

namespace orrery::maintenance {

using storage::Family;

namespace {

std::string name_of(const catalog::StoredCatalog& catalog,
                    const catalog::StoredContainer& container) {
  const auto database = catalog.databases.find(container.rid.database_rid());
  return fmt::format("{}/{}", database == catalog.databases.end() ? "?" : database->second->id,
                     container.definition.id());
}

bool is_garbage(const catalog::StoredCatalog& catalog, PartitionNumber partition) {
  return std::ranges::find(catalog.garbage, partition) != catalog.garbage.end();
}

}  // namespace

CheckReport StoreCheck::run() {
  store_.verify_tables(
      [this] { return pace_.go_on(partition::CheckPace::kPiecesPerLook); },
      [this](const std::string& table, const std::string& why) { findings_.add(table, why); });
  // A split or merge may bring new partitions meanwhile.
  while (check_partitions()) {
  }
  report_.partitions = seen_.size();
  report_.finding_count = findings_.count();
  report_.findings = findings_.kept();
  return std::move(report_);
}

bool StoreCheck::check_partitions() {
  const bool is_first = seen_.empty();
  std::vector<partition::CheckedPartition> due;
  {
    const auto snapshot = store_.snapshot();
    if (!snapshot) {
      findings_.add("store", snapshot.error().message());
      return false;
    }
    const auto catalog = catalog::read_catalog(*snapshot);
    if (!catalog) {
      findings_.add("catalog", catalog.error().message());
      return false;
    }
    if (is_first) check_catalog(*snapshot, *catalog);
    for (const catalog::StoredContainer& container : catalog->containers) {
      for (const catalog::StoredRange& range : container.ranges) {
        if (!seen_.insert(range.partition).second) continue;
        due.push_back(
            {.number = range.partition,
             .name = fmt::format("{}, range {}", name_of(*catalog, container), range.id.text()),
             .range = range.id,
             .epks = range.epks,
             .rules = make_rules_(container.definition)});
      }
    }
  }
  for (const partition::CheckedPartition& each : due) {
    // One of its own for each, since a snapshot that is kept for long keeps what was superseded.
    const auto snapshot = store_.snapshot();
    if (!snapshot) {
      findings_.add(each.name, snapshot.error().message());
      return false;
    }
    std::string value;
    if (snapshot->get(Family::Catalog, catalog::garbage_key(each.number), value) !=
        storage::Lookup::Missing) {
      continue;  // Others have taken its place meanwhile.
    }
    partition::PartitionCheck check(*snapshot, each, findings_, pace_);
    const bool has_ended = check.run();
    report_.documents += check.documents();
    if (!has_ended) {
      report_.is_stopped = true;
      return false;
    }
  }
  return !due.empty();
}

void StoreCheck::check_catalog(const storage::Snapshot& snapshot,
                               const catalog::StoredCatalog& catalog) {
  std::map<PartitionNumber, std::string> owners;
  for (const catalog::StoredContainer& container : catalog.containers) {
    const std::string name = name_of(catalog, container);
    if (!catalog.databases.contains(container.rid.database_rid())) {
      findings_.add(name, "its database is not there");
    }
    check_ranges(name, container);
    for (const catalog::StoredRange& range : container.ranges) {
      const auto [owner, is_new] = owners.emplace(range.partition, name);
      if (!is_new) {
        findings_.add(
            name, fmt::format("partition {} is also of {}", range.partition.value, owner->second));
      }
      if (range.partition.value > catalog.counters.partition) {
        findings_.add(name, fmt::format("partition {} is above the last one that was given: {}",
                                        range.partition.value, catalog.counters.partition));
      }
      if (is_garbage(catalog, range.partition)) {
        findings_.add(name,
                      fmt::format("partition {} is marked as garbage", range.partition.value));
      }
    }
  }
  check_strays(snapshot, catalog);
}

void StoreCheck::check_ranges(const std::string& name, const catalog::StoredContainer& container) {
  std::vector<const catalog::StoredRange*> ranges;
  ranges.reserve(container.ranges.size());
  for (const catalog::StoredRange& range : container.ranges) ranges.push_back(&range);
  std::ranges::sort(ranges, {}, [](const auto* range) { return range->epks.min; });
  Epk reached = Epk::min();
  for (const catalog::StoredRange* range : ranges) {
    if (range->epks.min != reached) {
      findings_.add(name,
                    fmt::format("range {} begins at [{}], where the one before it ends at [{}]",
                                range->id.text(), range->epks.min.hex(), reached.hex()));
    }
    reached = range->epks.max;
  }
  if (reached != Epk::max()) {
    findings_.add(name, fmt::format("the ranges end at [{}], and not at [FF]", reached.hex()));
  }
}

void StoreCheck::check_strays(const storage::Snapshot& snapshot,
                              const catalog::StoredCatalog& catalog) {
  std::set<PartitionNumber> known(catalog.garbage.begin(), catalog.garbage.end());
  for (const catalog::StoredContainer& container : catalog.containers) {
    for (const catalog::StoredRange& range : container.ranges) known.insert(range.partition);
  }
  std::set<PartitionNumber> strays;
  for (const Family family : kDocumentFamilies) {
    auto cursor = snapshot.cursor(family, "", std::string(8, '\xFF'));
    while (cursor.valid()) {
      const std::string_view key = cursor.key();
      if (key.size() < storage::partition_prefix({}).size()) {
        findings_.add("store", "a key is too short for one of a partition");
        cursor.next();
        continue;
      }
      const PartitionNumber number{storage::read_u32(key.data())};
      if (!known.contains(number)) strays.insert(number);
      cursor.seek(storage::partition_end(number));
    }
    if (const auto status = cursor.status(); !status) {
      findings_.add("store", status.error().message());
    }
  }
  for (const PartitionNumber number : strays) {
    findings_.add(fmt::format("partition {}", number.value),
                  "no container has it, and it is not marked as garbage");
  }
}

namespace {

/// The damaged tables of a store that cannot be opened: RocksDB does not always name the one that
/// it stumbled over.
CheckReport report_of_tables(const std::filesystem::path& directory) {
  CheckReport report;
  for (const auto& [table, why] : storage::damaged_tables(directory)) {
    report.findings.push_back({table, why});
  }
  return report;
}

}  // namespace

Result<CheckReport> check_directory(storage::StoreOptions options,
                                    const catalog::RulesMaker& make_rules, std::stop_token stop) {
  const auto directory = options.directory;
  storage::Loss loss;
  const auto opened = storage::Store::open_to_check(std::move(options), loss);
  if (!opened) {
    auto report = report_of_tables(directory);
    if (report.findings.empty()) return opened.error();
    report.findings.push_back({directory.string(), opened.error().message()});
    report.finding_count = report.findings.size();
    return report;
  }
  const auto& store = *opened;
  auto report = StoreCheck(*store, make_rules, {.rests = false, .stop = std::move(stop)}).run();
  if (!loss.is_empty()) {
    ++report.finding_count;
    report.findings.insert(
        report.findings.begin(),
        {directory.string(),
         fmt::format("{}. Acknowledged writes are missing: {}", loss.damage,
                     loss.operations > 0 ? fmt::format("{} operations", loss.operations)
                                         : fmt::format("{} commits", loss.commits))});
  }
  return report;
}

}  // namespace orrery::maintenance

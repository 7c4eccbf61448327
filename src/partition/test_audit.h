// For tests: whether what a store holds of a partition agrees with itself.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "partition/test_environment.h"
#include "protocol/ids.h"
#include "storage/keys.h"
#include "storage/records.h"
#include "storage/store.h"
#include "storage/test_store.h"

namespace orrery::partition {

/// What a partition holds, by id key without the partition.
struct Audited {
  storage::Head head;
  std::map<std::string, storage::IdEntry> entries;
  std::map<std::string, std::string> texts;
};

/// Checks that log, ids, rids, unique and head of a partition say the same, and returns what they
/// say. Every live document must have one entry in each; nothing else may be there. Unique entries
/// may be missing for a document whose values another took over after it had expired.
inline Audited audit(const storage::Store& store, PartitionNumber partition) {
  using storage::Family;
  Audited audited;
  const auto snapshot = store.snapshot();
  if (!snapshot) {
    ADD_FAILURE() << snapshot.error().message();
    return audited;
  }
  const std::string from = storage::partition_prefix(partition);
  const std::string to = storage::partition_end(partition);

  std::uint64_t bytes = 0;
  std::map<storage::LogPosition, std::vector<std::string>> unique_values;
  std::map<storage::LogPosition, std::string> log;
  for (const auto& [key, value] : contents(*snapshot, Family::Log, from, to)) {
    const auto record = storage::VersionRecord::parse(value);
    if (!record) {
      ADD_FAILURE() << "a broken record";
      continue;
    }
    const auto position = storage::log_position(key);
    const std::string name = record->key().bytes();
    EXPECT_TRUE(audited.texts.emplace(name, record->text).second)
        << record->id << " is in the log twice";
    log.emplace(position, name);
    bytes += record->text.size();
    for (const auto& unique : unique_values_in(record->text)) {
      unique_values[position].push_back(unique);
    }
    EXPECT_NE(record->text.find(ETag(position.lsn, record->header.ts).text().substr(1, 36)),
              std::string_view::npos)
        << record->id << " was stored with another version's etag";
  }
  for (const auto& [key, value] : contents(*snapshot, Family::Ids, from, to)) {
    const auto entry = storage::IdEntry::parse(value);
    if (!entry) {
      ADD_FAILURE() << "a broken entry";
      continue;
    }
    const std::string name = key.substr(4);
    audited.entries.emplace(name, *entry);
    const auto at = log.find(entry->position);
    EXPECT_TRUE(at != log.end() && at->second == name) << "an id that names no version";
    if (at != log.end()) EXPECT_EQ(entry->text_size, audited.texts[name].size());
  }
  std::set<storage::LogPosition> by_rid;
  for (const auto& [key, value] : contents(*snapshot, Family::Rids, from, to)) {
    const auto position = storage::parse_position_value(value);
    EXPECT_TRUE(position && log.contains(*position)) << "a rid that names no version";
    if (!position || !log.contains(*position)) continue;
    EXPECT_TRUE(by_rid.insert(*position).second) << "two rids name one version";
    const auto entry = audited.entries.find(log[*position]);
    if (entry == audited.entries.end()) continue;
    EXPECT_EQ(entry->second.header.number, storage::document_number(key));
  }
  EXPECT_EQ(audited.entries.size(), log.size());
  EXPECT_EQ(by_rid.size(), log.size());

  for (const auto& [key, value] : contents(*snapshot, Family::Unique, from, to)) {
    const auto position = storage::parse_position_value(value);
    const bool held = position && unique_values.contains(*position);
    EXPECT_TRUE(held) << "a unique value that no document has";
    if (!held) continue;
    bool found = false;
    for (const auto& unique : unique_values[*position]) found = found || key.ends_with(unique);
    EXPECT_TRUE(found) << "a unique value that its document does not have";
  }

  std::string value;
  if (store.get(Family::Heads, from, value, storage::Tier::Disk) == storage::Lookup::Found) {
    const auto head = storage::Head::parse(value);
    EXPECT_TRUE(head);
    if (head) audited.head = *head;
  }
  EXPECT_EQ(audited.head.documents, log.size());
  EXPECT_EQ(audited.head.text_bytes, bytes);
  if (!log.empty()) EXPECT_LE(log.rbegin()->first.lsn, audited.head.lsn);
  return audited;
}

}  // namespace orrery::partition

// For tests: whether what a store holds of a partition agrees with itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "index/terms.h"
#include "partition/check/partition_check.h"
#include "partition/test_environment.h"
#include "protocol/container/index_path.h"
#include "protocol/ids.h"
#include "storage/keys.h"
#include "storage/records.h"
#include "storage/store.h"
#include "storage/test_store.h"

namespace orrery::partition {

/// The contents of a partition, by id key without the partition.
struct Audited {
  storage::Head head;
  std::map<std::string, storage::IdEntry> entries;
  std::map<std::string, std::string> texts;
  /// In order; views into history_values.
  std::vector<std::pair<storage::LogPosition, storage::HistoryRecord>> history;
  std::deque<std::string> history_values;
  std::size_t expiry_entries = 0;
  std::size_t stale_expiry_entries = 0;
  std::size_t index_entries = 0;
};

/// The versions in the log, by position.
struct AuditedVersion {
  std::string name;  ///< the key
  storage::VersionHeader header;
  std::string text;
};
using AuditedLog = std::map<storage::LogPosition, AuditedVersion>;

/// Checks that history is what its head says, and where all of it is kept also that it leads to
/// what is in the log.
inline void audit_history(const storage::Snapshot& snapshot, PartitionNumber partition,
                          const AuditedLog& log, Audited& audited) {
  const auto& head = audited.head;
  std::uint64_t bytes = 0;
  for (auto& [key, value] :
       contents(snapshot, storage::Family::History, storage::partition_prefix(partition),
                storage::partition_end(partition))) {
    bytes += value.size();
    audited.history_values.push_back(std::move(value));
    const auto record = storage::HistoryRecord::parse(audited.history_values.back());
    if (!record) {
      ADD_FAILURE() << "a broken change";
      continue;
    }
    audited.history.emplace_back(storage::log_position(key), *record);
  }
  EXPECT_EQ(head.history_bytes, bytes);
  const bool kept = head.retention.history != storage::RetentionSettings::History::None;
  EXPECT_EQ(kept, head.history != nullptr);
  if (!kept) {
    EXPECT_TRUE(audited.history.empty()) << "changes that nobody keeps";
    return;
  }
  for (const auto& part : *head.history) {
    EXPECT_LE(part.tombstones_begin, part.all_begin);
    EXPECT_LE(part.all_begin, head.lsn);
  }

  struct Last {
    storage::LogPosition position;
    storage::HistoryRecord change;
  };
  std::map<DocumentNumber, Last> last;
  UnixSeconds ts = 0;
  for (const auto& [position, change] : audited.history) {
    const auto* part = storage::find_part(head.history, change.epk);
    if (part == nullptr) {
      ADD_FAILURE() << "a change of no part";
      continue;
    }
    EXPECT_LE(position.lsn, head.lsn);
    EXPECT_LT(position.index, head.index_bound);
    EXPECT_GE(position.lsn, part->tombstones_begin) << "a change that should have gone";
    if (position.lsn > head.merged_at) {
      EXPECT_GE(change.ts, ts);
      ts = change.ts;
    }
    if (position.lsn < part->all_begin) {
      EXPECT_TRUE(change.deletes() && change.current_text.empty() && change.previous_text.empty())
          << "more than a tombstone at " << position.lsn.value;
    }
    if (change.deletes()) EXPECT_EQ(change.current_text, "");
    if (position.lsn <= part->all_begin) continue;
    if (head.retention.history != storage::RetentionSettings::History::All) continue;
    const bool creates = change.operation == storage::HistoryRecord::Operation::Create;
    const auto before = last.find(change.number);
    if (creates) {
      EXPECT_EQ(before, last.end()) << "created twice";
      EXPECT_EQ(change.previous, Lsn{0});
      EXPECT_EQ(change.previous_text, "");
    } else if (before != last.end()) {
      EXPECT_EQ(change.previous, before->second.position.lsn);
      EXPECT_FALSE(before->second.change.deletes()) << "changed after it was deleted";
      if (!change.previous_text.empty()) {
        EXPECT_EQ(change.previous_text, before->second.change.current_text);
      }
    }
    if (!change.deletes()) EXPECT_NE(change.current_text, "");
    last[change.number] = {position, change};
  }
  if (head.retention.history != storage::RetentionSettings::History::All) return;
  std::map<DocumentNumber, const AuditedVersion*> live;
  for (const auto& [position, version] : log) {
    live.emplace(version.header.number, &version);
    const auto change = last.find(version.header.number);
    if (change == last.end()) {
      // It was there before.
      const auto* part = storage::find_part(head.history, version.name);
      EXPECT_TRUE(part == nullptr || position.lsn <= part->all_begin)
          << "a version without history";
      continue;
    }
    EXPECT_EQ(change->second.position.lsn, position.lsn);
    EXPECT_EQ(change->second.change.current_text, version.text);
    EXPECT_EQ(change->second.change.key().bytes(), version.name);
  }
  for (const auto& [number, change] : last) {
    EXPECT_EQ(change.change.deletes(), !live.contains(number)) << change.change.id;
  }
}

/// Checks that each version has the expiry entry that it should.
inline void audit_expiry(const storage::Snapshot& snapshot, PartitionNumber partition,
                         const AuditedLog& log, Audited& audited) {
  using Expiry = storage::RetentionSettings::Expiry;
  std::set<storage::LogPosition> found;
  for (const auto& [key, value] :
       contents(snapshot, storage::Family::Expiry, storage::partition_prefix(partition),
                storage::partition_end(partition))) {
    ++audited.expiry_entries;
    const auto entry = storage::expiry_entry(key);
    const auto version = log.find(entry.position);
    if (version == log.end()) {
      ++audited.stale_expiry_entries;
      continue;
    }
    EXPECT_EQ(storage::expiry_of(version->first, version->second.header), entry);
    found.insert(entry.position);
  }
  const Expiry expiry = audited.head.retention.expiry;
  if (expiry == Expiry::Off) EXPECT_EQ(audited.expiry_entries, 0u);
  if (expiry != Expiry::Complete) return;
  for (const auto& [position, version] : log) {
    if (!storage::expiry_of(position, version.header)) continue;
    EXPECT_TRUE(found.contains(position)) << "a version without its expiry entry";
  }
}

/// Checks that each index has just what the documents have that it should have by now.
inline void audit_indexes(const storage::Snapshot& snapshot, PartitionNumber partition,
                          const AuditedLog& log, Audited& audited) {
  using Entries = std::map<std::string, std::string>;
  Entries found;
  for (auto& [key, value] :
       contents(snapshot, storage::Family::Terms, storage::partition_prefix(partition),
                storage::partition_end(partition))) {
    found.emplace(std::move(key), std::move(value));
  }
  audited.index_entries = found.size();
  if (!audited.head.indexes) {
    EXPECT_TRUE(found.empty()) << "entries of no index";
    return;
  }
  // All that there can be, and what of it there must be.
  Entries possible, needed;
  for (const storage::IndexRecord& index : *audited.head.indexes) {
    EXPECT_LE(index.id, audited.head.last_index_id);
    const auto spec = IndexSpec::parse(index.spec);
    if (!spec) {
      ADD_FAILURE() << "no spec: " << index.spec;
      continue;
    }
    const index::TermFinder finder({*spec});
    for (const auto& [position, version] : log) {
      std::vector<std::vector<std::string>> terms(1);
      finder.find(version.text, terms);
      for (const std::string& term : terms[0]) {
        std::string key;
        storage::append_term_key(key, partition, index.id, term, version.header.number);
        const std::string value = storage::make_position_value(position);
        if (index.is_complete() || version.header.number <= index.built_up_to) {
          needed.emplace(key, value);
        }
        possible.emplace(std::move(key), value);
      }
    }
  }
  for (const auto& [key, value] : found) {
    const auto right = possible.find(key);
    EXPECT_NE(right, possible.end())
        << "an entry of nothing in index " << storage::parse_term_key(key).index;
    if (right != possible.end()) EXPECT_EQ(value, right->second) << "an entry of another version";
  }
  for (const auto& [key, value] : needed) {
    EXPECT_TRUE(found.contains(key))
        << "an entry is missing in index " << storage::parse_term_key(key).index;
  }
}

/// Checks that all that a store has of a partition says the same, and returns what that is. Every
/// live document must have one entry in log, ids and rids; nothing else may be there. Unique
/// entries may be missing for a document whose values another took over after it had expired, in a
/// store of the first version.
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
  AuditedLog log;
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
    log.emplace(position, AuditedVersion{name, record->header, std::string(record->text)});
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
    EXPECT_TRUE(at != log.end() && at->second.name == name) << "an id that names no version";
    if (at != log.end()) EXPECT_EQ(entry->text_size, audited.texts[name].size());
  }
  std::set<storage::LogPosition> by_rid;
  for (const auto& [key, value] : contents(*snapshot, Family::Rids, from, to)) {
    const auto position = storage::parse_position_value(value);
    EXPECT_TRUE(position && log.contains(*position)) << "a rid that names no version";
    if (!position || !log.contains(*position)) continue;
    EXPECT_TRUE(by_rid.insert(*position).second) << "two rids name one version";
    const auto entry = audited.entries.find(log[*position].name);
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
  if (!audited.head.is_reordered) {
    EXPECT_TRUE(std::ranges::is_sorted(log, {}, [](const auto& version) {
      return version.second.header.number;
    })) << "the log is said to be in the order of document numbers";
  }
  audit_history(*snapshot, partition, log, audited);
  audit_expiry(*snapshot, partition, log, audited);
  audit_indexes(*snapshot, partition, log, audited);

  // The check that operators run must agree with what tests find.
  Findings findings;
  CheckPace pace({}, /*rests=*/false);
  const CheckedPartition checked{.number = partition,
                                 .name = "tested",
                                 .range = RangeId{kRangeIdMax},
                                 .epks = {},
                                 .rules = rules_with_unique_keys()};
  EXPECT_TRUE(PartitionCheck(*snapshot, checked, findings, pace).run());
  for (const Finding& finding : findings.kept()) {
    ADD_FAILURE() << finding.where << ": " << finding.what;
  }
  return audited;
}

}  // namespace orrery::partition

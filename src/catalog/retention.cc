#include "catalog/retention.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace orrery::catalog {

using storage::RetentionSettings;

storage::RetentionSettings retention_of(const ContainerDefinition& definition) {
  RetentionSettings retention;
  const ChangeFeedPolicy& policy = definition.change_feed_policy();
  if (policy.keeps_all()) {
    retention.history = RetentionSettings::History::All;
    switch (policy.previous_image) {
      case ChangeFeedPolicy::PreviousImage::None:
        break;
      case ChangeFeedPolicy::PreviousImage::Delete:
        retention.previous_image = RetentionSettings::PreviousImage::Delete;
        break;
      case ChangeFeedPolicy::PreviousImage::All:
        retention.previous_image = RetentionSettings::PreviousImage::All;
        break;
    }
  } else if (policy.keeps_tombstones()) {
    retention.history = RetentionSettings::History::Tombstones;
  }
  if (definition.default_ttl()) retention.expiry = RetentionSettings::Expiry::Building;
  return retention;
}

bool retains_as_asked(const RetentionSettings& kept, const RetentionSettings& asked) {
  return kept.history == asked.history && kept.previous_image == asked.previous_image &&
         (kept.expiry == RetentionSettings::Expiry::Off) ==
             (asked.expiry == RetentionSettings::Expiry::Off);
}

storage::Head initial_head(Lsn lsn, UnixSeconds ts, const ContainerDefinition& definition) {
  storage::Head head;
  head.lsn = lsn;
  head.ts = ts;
  head.retention = retention_of(definition);
  // There is nothing to build entries for.
  if (head.retention.expiry != RetentionSettings::Expiry::Off)
    head.retention.expiry = RetentionSettings::Expiry::Complete;
  if (head.retention.history != RetentionSettings::History::None) {
    head.history = std::make_shared<const std::vector<storage::HistoryPart>>(
        std::vector<storage::HistoryPart>{{"", lsn, lsn}});
  }
  std::vector<storage::IndexRecord> indexes;
  for (const IndexSpec& index : definition.named_indexes()) {
    std::string spec = index.text();
    if (spec.size() > storage::kIndexSpecBytesMax) continue;
    indexes.push_back(
        {++head.last_index_id, std::move(spec), storage::IndexRecord::State::Complete, {}});
  }
  if (!indexes.empty()) {
    head.indexes = std::make_shared<const std::vector<storage::IndexRecord>>(std::move(indexes));
  }
  return head;
}

partition::HistoryTrim trim_of(const ChangeFeedPolicy& policy, UnixSeconds now,
                               std::uint64_t bytes_max) {
  constexpr UnixSeconds kMinute = 60;
  partition::HistoryTrim trim;
  trim.bytes_max = bytes_max;
  // Where only tombstones are kept, what is more than one has no time at all.
  trim.all_before = policy.keeps_all() ? now - kMinute * policy.retention_minutes
                                       : std::numeric_limits<UnixSeconds>::max();
  if (policy.tombstone_minutes == ChangeFeedPolicy::kForEver) {
    trim.tombstones_before = 0;
  } else {
    // A delete is kept as long as other changes at least.
    trim.tombstones_before =
        now - kMinute * std::max(policy.retention_minutes, policy.tombstone_minutes);
  }
  return trim;
}

}  // namespace orrery::catalog

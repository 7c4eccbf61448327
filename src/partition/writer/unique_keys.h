// UniqueKeys: which document of a logical partition holds which values of unique keys.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "partition/writer/stage_state.h"
#include "partition/writer/transaction.h"
#include "protocol/ids.h"
#include "storage/keys.h"
#include "storage/records.h"

namespace orrery::partition {

/// The key in `unique` of the values of one unique key (`policy`, by its place in the container).
std::string unique_key(PartitionNumber partition, const storage::DocumentKey& key,
                       std::size_t policy, std::string_view values);

/// A part of the stage. Errors as TransactionView says.
class UniqueKeys {
 public:
  explicit UniqueKeys(StageState& state) : state_(state) {}

  /// Another document that holds values which somebody wants.
  struct Rival {
    storage::DocumentKey key;
    storage::LogPosition position;
  };
  /// Nothing when they are free, or held by the version at `own`, which is about to be replaced.
  Result<std::optional<Rival>> find_rival(const storage::DocumentKey& key, std::size_t policy,
                                          std::string_view values,
                                          std::optional<storage::LogPosition> own);
  /// The version at `position` holds the values from now on.
  void claim(const storage::DocumentKey& key, const std::vector<std::string>& values,
             storage::LogPosition position);
  /// The version that `entry` names holds nothing any more.
  Result<> release(const storage::DocumentKey& key, const storage::IdEntry& entry,
                   const Rules& rules);

 private:
  Result<std::vector<std::string>> values_of(const storage::DocumentKey& key,
                                             const storage::IdEntry& entry, const Rules& rules);

  StageState& state_;
};

}  // namespace orrery::partition

// StagedMap: values by key that are staged and not yet committed, on top of those in the store.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "protocol/ids.h"

namespace orrery::partition {

/// A transaction sets values at once, so that it sees its own, and then either keeps them or rolls
/// them back. Not thread-safe: the writer's.
template <typename Value>
class StagedMap {
 public:
  struct Staged {
    Lsn lsn;  ///< of the transaction that set it
    Value value;
  };

  /// Null when nothing is staged under the key.
  const Staged* find(const std::string& key) const {
    const auto found = values_.find(key);
    return found != values_.end() ? &found->second : nullptr;
  }
  const std::unordered_map<std::string, Staged>& all() const { return values_; }

  /// In the transaction that would get `lsn`.
  void set(std::string key, Lsn lsn, Value value) {
    Staged& slot = values_[key];
    // Transactions are staged in the order of their LSNs.
    ORRERY_ASSERT(slot.lsn <= lsn);
    std::optional<Staged> before;
    if (slot.lsn != Lsn{}) before = std::move(slot);
    slot = Staged{lsn, std::move(value)};
    undo_.emplace_back(std::move(key), std::move(before));
  }
  /// The transaction has failed.
  void roll_back() {
    for (auto undo = undo_.rbegin(); undo != undo_.rend(); ++undo) {
      if (undo->second) {
        values_[undo->first] = std::move(*undo->second);
      } else {
        values_.erase(undo->first);
      }
    }
    undo_.clear();
  }
  /// The transaction is staged under `lsn`.
  void keep(Lsn lsn) {
    ORRERY_ASSERT(order_.empty() || order_.back().first <= lsn);
    for (auto& [key, before] : undo_) order_.emplace_back(lsn, std::move(key));
    undo_.clear();
  }

  /// Values up to `lsn` are in the store now.
  void forget_committed(Lsn lsn) {
    while (!order_.empty() && order_.front().first <= lsn) {
      const auto found = values_.find(order_.front().second);
      if (found != values_.end() && found->second.lsn <= lsn) values_.erase(found);
      order_.pop_front();
    }
    // Each value has its place in the order: the map is as small as what is under way.
    ORRERY_ASSERT(values_.size() <= order_.size());
  }
  void clear() {
    values_.clear();
    order_.clear();
    undo_.clear();
  }

 private:
  std::unordered_map<std::string, Staged> values_;
  std::deque<std::pair<Lsn, std::string>> order_;  // In commit order, to forget them by.
  /// The values that the transaction under way has replaced; nothing: there was none.
  std::vector<std::pair<std::string, std::optional<Staged>>> undo_;
};

}  // namespace orrery::partition

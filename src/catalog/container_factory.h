// ContainerFactory: makes containers of their stored form, and back.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "catalog/entries.h"
#include "catalog/resources.h"
#include "partition/writer/transaction.h"
#include "storage/life.h"
#include "storage/records.h"
#include "storage/store.h"

namespace orrery::catalog {

/// Makes the rules of a container's unique keys; given by the layer that can parse documents.
using RulesMaker = std::function<partition::Rules(const ContainerDefinition&)>;

/// Thread-safe, once the life is known.
class ContainerFactory {
 public:
  ContainerFactory(const storage::Store& store, RulesMaker make_rules)
      : store_(store), make_rules_(std::move(make_rules)) {}

  ContainerPtr make(StoredContainer stored, const std::string& database_id,
                    std::vector<Range> ranges) const;
  /// The head that a new container begins with: 1, or above the head that the name's last bearer
  /// had, and where this life of the store began. Blocks. Unavailable when the disk cannot be read.
  Result<storage::Head> first_head(const std::string& database_id, UnixSeconds now,
                                   const ContainerDefinition& definition) const;

  /// The life of the store as it was opened. It never changes afterwards: read again after a disk
  /// error it is the same.
  void set_life(const storage::Life& life);
  const std::string& life_text() const { return life_text_; }

 private:
  const storage::Store& store_;
  const RulesMaker make_rules_;
  storage::Life life_;
  std::string life_text_;
};

StoredContainer stored_form(const Container& container);

}  // namespace orrery::catalog

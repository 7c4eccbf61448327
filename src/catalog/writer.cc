#include "catalog/writer.h"

#include <utility>

namespace orrery::catalog {

Writer::Transaction Writer::begin() { return Transaction(*this); }

Writer::Transaction Writer::begin(partition::StoreGeneration generation) {
  return Transaction(*this, generation);
}

void Writer::load(const Counters& counters) {
  std::lock_guard lock(counters_mutex_);
  counters_ = counters;
}

Writer::Transaction::Transaction(Writer& writer,
                                 std::optional<partition::StoreGeneration> generation)
    : turn_(writer.turn_mutex_),
      writer_(writer),
      generation_(generation ? *generation : writer.committer_.generation()) {
  std::lock_guard lock(writer_.counters_mutex_);
  counters = writer_.counters_;
  ++counters.version;
}

Result<> Writer::Transaction::commit(const std::function<void()>& publish) {
  batch.put(storage::Family::Catalog, counters_key(), make_value(counters));
  return writer_.committer_.commit(std::move(batch), generation_, [&] {
    {
      std::lock_guard lock(writer_.counters_mutex_);
      writer_.counters_ = counters;
    }
    publish();
  });
}

}  // namespace orrery::catalog

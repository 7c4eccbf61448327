#include "sinks/container/ledger.h"

#include <fmt/format.h>

#include "sinks/container/copy_failure.h"

namespace orrery::sinks {
namespace {

/// Others may write the ledger too, each at most once for each of its leases.
constexpr int kLedgerAttemptsMax = 1000;
/// Their positions go into one batch with the documents. Each split adds one; only leases that were
/// lost, and made anew after many merges, come near this.
constexpr std::size_t kPredecessorsMax = 50;

}  // namespace

LedgerStore::LedgerStore(const CopyTarget& target)
    : target_(target),
      id_(target.positions.ledger_id()),
      key_(client_key(target.keys.key_of(target.positions.ledger_text(Ledger().to_json())))) {}

LedgerStore::Known LedgerStore::read() const {
  try {
    const auto answer = target_.container.read_item(id_, key_);
    auto ledger = Ledger::parse(answer.value);
    if (!ledger) {
      throw CopyFailure(fmt::format("the document '{}' in {} is not what 'orrery copy' wrote there",
                                    id_, target_.name));
    }
    if (ledger->source_rid != target_.source_rid) {
      throw CopyFailure(
          fmt::format("the positions of this group in {} are those of another source, or of one "
                      "that was deleted and made again",
                      target_.name),
          CopyFailure::Remedy::OtherGroup);
    }
    return {*std::move(ledger), answer.etag};
  } catch (const client::CosmosException& failure) {
    if (!failure.is_not_found()) throw;
    return {{target_.source_rid, {}}, {}};
  }
}

LedgerStore::Registration LedgerStore::register_owner(const client::FeedRange& area,
                                                      std::uint64_t epoch) {
  const std::scoped_lock lock(mutex_);
  for (int attempt = 1;; ++attempt) {
    Known known = read();
    Registration registration;
    registration.superseded = known.ledger.is_superseded(area, epoch);
    if (registration.superseded) return registration;
    registration.first = known.ledger.find(area) == nullptr;
    registration.predecessors = known.ledger.predecessors_of(area);
    if (registration.predecessors.size() > kPredecessorsMax) {
      throw CopyFailure(fmt::format("{} has positions of too many former leases", target_.name),
                        CopyFailure::Remedy::OtherGroup);
    }
    known.ledger.put(area, epoch);
    const std::string text = target_.positions.ledger_text(known.ledger.to_json());
    try {
      client::ItemOptions options;
      options.return_content = false;
      options.if_match = known.etag;
      if (known.etag.empty()) {
        target_.container.create_item(text, key_, options);
      } else {
        target_.container.replace_item(id_, text, key_, options);
      }
      return registration;
    } catch (const client::CosmosException& failure) {
      const bool lost_race =
          failure.is_conflict() || failure.is_precondition_failed() || failure.is_not_found();
      if (!lost_race || attempt == kLedgerAttemptsMax) throw;
    }
  }
}

bool LedgerStore::is_superseded(const client::FeedRange& area, std::uint64_t epoch) {
  return read().ledger.is_superseded(area, epoch);
}

}  // namespace orrery::sinks

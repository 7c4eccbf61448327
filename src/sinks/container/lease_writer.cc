#include "sinks/container/lease_writer.h"

#include <algorithm>

#include <fmt/format.h>

#include "sinks/container/copy_failure.h"
#include "sinks/container/retry.h"

namespace orrery::sinks {
namespace {

/// Logical partitions whose positions are cached, of one lease.
constexpr std::size_t kCachedMax = 200'000;
/// Servers take 2 MB of body; some of it is for what stands around the operations.
constexpr std::size_t kBatchBytesMax = (std::size_t{2} << 20) - 512;
constexpr std::size_t kBatchOperationsMax = 100;
constexpr std::size_t kBulkDocumentBytesMax = std::size_t{1} << 20;
/// More digits in its numbers, a rid, an etag beside it.
constexpr std::size_t kPositionGrowthMax = 256;
/// A name that is taken, of a document that is not there: so often, and it is no coincidence.
constexpr int kPhantomsMax = 3;

/// For operations whose answers need no documents.
client::BulkOptions write_options(const std::stop_token& stop) {
  return {.stop = stop, .headers = {{"prefer", "return=minimal"}}};
}

/// A document of the size that servers just take leaves no room for what stands around it in bulk.
client::ItemResult send_alone(const client::Container& container,
                              const client::ItemOperation& operation, const std::stop_token& stop) {
  client::ItemOptions options;
  options.stop = stop;
  options.if_match = operation.if_match;
  options.return_content = false;
  client::ItemResult result;
  try {
    const auto answer =
        operation.kind == client::ItemOperation::Kind::Create
            ? container.create_item(operation.json, *operation.partition_key, options)
            : container.replace_item(operation.id, operation.json, *operation.partition_key,
                                     options);
    result.status = answer.status;
    result.etag = answer.etag;
  } catch (const client::CosmosException& failure) {
    if (failure.failure() != client::Failure::Response) throw;
    result.status = failure.status();
    result.sub_status = failure.sub_status();
    result.message = failure.what();
    result.retry_after = failure.retry_after();
  }
  return result;
}

/// Creates and replaces, each by itself.
std::vector<client::ItemResult> send(const client::Container& container,
                                     const std::vector<client::ItemOperation>& operations,
                                     const std::stop_token& stop) {
  std::vector<client::ItemResult> results(operations.size());
  std::vector<client::ItemOperation> together;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (operations[i].json.size() > kBulkDocumentBytesMax) {
      results[i] = send_alone(container, operations[i], stop);
    } else {
      together.push_back(operations[i]);
      places.push_back(i);
    }
  }
  if (together.empty()) return results;
  auto response = container.execute_bulk(together, write_options(stop));
  for (std::size_t i = 0; i < places.size(); ++i) {
    results[places[i]] = std::move(response.results[i]);
  }
  return results;
}

EpkRange epk_range(const client::FeedRange& area) {
  EpkRange range;
  if (const auto min = Epk::from_hex(area.min)) range.min = *min;
  if (const auto max = Epk::from_hex(area.max)) range.max = *max;
  return range;
}

}  // namespace

LeaseWriter::LeaseWriter(CopyTarget& target, LedgerStore& ledger, client::FeedRange area,
                         std::uint64_t epoch, LedgerStore::Registration registration)
    : target_(target),
      ledger_(ledger),
      area_(std::move(area)),
      epoch_(epoch),
      registration_(std::move(registration)) {
  for (const Ledger::Entry& entry : registration_.predecessors) {
    areas_before_.push_back(epk_range(entry.area));
  }
}

void LeaseWriter::refuse(const SourceChange& change, int status, const std::string& message) const {
  const std::string which = fmt::format("document '{}' (partition key {} in {})", change.id,
                                        change.key.to_json(), target_.name);
  if (status == 409) {
    throw CopyFailure(fmt::format("{} breaks a unique key of the destination: {}", which, message));
  }
  if (status == 413) {
    throw CopyFailure(fmt::format("{} is too large for the destination: {}", which, message));
  }
  throw CopyFailure(fmt::format("{} was refused with {}: {}", which, status, message));
}

// ── cache of positions
// ────────────────────────────────────────────────────────────────────────────────

std::optional<LeaseWriter::Positions> LeaseWriter::cached(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = cache_.find(key);
  return found == cache_.end() ? std::nullopt : std::optional(found->second);
}

void LeaseWriter::cache(const std::string& key, Positions known) {
  const std::scoped_lock lock(mutex_);
  // The cache is cleared when it is full: all of them can be read again in the destination.
  if (cache_.size() >= kCachedMax && !cache_.contains(key)) cache_.clear();
  cache_.insert_or_assign(key, std::move(known));
}

void LeaseWriter::evict(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  cache_.erase(key);
}

Position LeaseWriter::read_position(const client::FeedRange& area, const client::PartitionKey& key,
                                    const std::stop_token& stop) const {
  client::ItemOptions options;
  options.stop = stop;
  try {
    const auto answer = target_.container.read_item(target_.positions.id_of(area), key, options);
    auto position = PositionFormat::parse(answer.value);
    if (!position) {
      throw CopyFailure(fmt::format("the document '{}' in {} is not what 'orrery copy' wrote there",
                                    target_.positions.id_of(area), target_.name));
    }
    return *std::move(position);
  } catch (const client::CosmosException& failure) {
    if (!failure.is_not_found()) throw;
    return {};
  }
}

LeaseWriter::Positions LeaseWriter::read(const PartitionKey& key,
                                         const std::stop_token& stop) const {
  const client::PartitionKey call_key = client_key(key);
  Positions known;
  known.own = read_position(area_, call_key, stop);
  for (const Ledger::Entry& entry : registration_.predecessors) {
    known.before.push_back(read_position(entry.area, call_key, stop));
  }
  return known;
}

bool LeaseWriter::is_applied(const SourceChange& change, const Positions& known) const {
  if (known.own.applied.includes(change)) return true;
  for (std::size_t i = 0; i < known.before.size(); ++i) {
    // A position tells only of what lies in its area. LSNs of one place in the hash space rise
    // through all splits and merges, so that within it they can be compared.
    if (known.before[i].applied.includes(change) && areas_before_[i].contains(change.source_epk)) {
      return true;
    }
  }
  return false;
}

// ── with positions ───────────────────────────────────────────────────────────────────────────────

WriteOutcome LeaseWriter::write_key(const std::vector<const SourceChange*>& changes,
                                    const std::stop_token& stop) {
  std::size_t written = 0;
  const WriteOutcome outcome = apply(changes, stop, written);
  target_.written += written;
  if (outcome == WriteOutcome::Done) target_.skipped += changes.size() - written;
  return outcome;
}

WriteOutcome LeaseWriter::apply(const std::vector<const SourceChange*>& changes,
                                const std::stop_token& stop, std::size_t& written) {
  const PartitionKey& key = changes.front()->key;
  const std::string name = key.canonical();
  Backoff backoff(stop);
  bool first_look = true;
  while (!stop.stop_requested()) {
    std::optional<std::chrono::milliseconds> retry_after;
    try {
      std::optional<Positions> known = cached(name);
      if (!known) {
        // Without earlier owners there is nothing to read; if that is wrong, the batch is refused.
        const bool untouched =
            first_look && registration_.first && registration_.predecessors.empty();
        known = untouched ? Positions() : read(key, stop);
      }
      first_look = false;
      if (known->own.epoch > epoch_) return WriteOutcome::Lost;
      std::vector<const SourceChange*> left;
      for (const SourceChange* change : changes) {
        if (!is_applied(*change, *known)) left.push_back(change);
      }
      if (left.empty()) {
        cache(name, *std::move(known));
        return WriteOutcome::Done;
      }
      const std::size_t positions = 1 + registration_.predecessors.size();
      const std::size_t position_bytes =
          operation_bytes(target_.positions.text_of(area_, key, known->own).size()) +
          kPositionGrowthMax;
      const BatchPlan plan = plan_batch(
          left, {kBatchOperationsMax - positions, kBatchBytesMax - positions * position_bytes});
      if (plan.too_large) {
        const WriteOutcome outcome = write_where_different(plan.changes, stop, written);
        if (outcome != WriteOutcome::Done) return outcome;
      }
      switch (write_batch(key, *known, plan, stop)) {
        case BatchOutcome::Done:
          if (!plan.too_large) written += plan.changes.size();
          cache(name, *std::move(known));
          backoff = Backoff(stop);
          continue;
        case BatchOutcome::PositionMoved:
          evict(name);
          continue;
        case BatchOutcome::TryLater:
          break;
      }
    } catch (const client::CosmosException& failure) {
      if (!is_transient(failure)) {
        throw CopyFailure(fmt::format("{}: {}", target_.name, failure.what()));
      }
      if (failure.failure() != client::Failure::Cancelled) target_.report_waiting(failure.what());
      retry_after = failure.retry_after();
    }
    // The outcome of the batch is not known here; the position tells.
    evict(name);
    backoff.wait(retry_after);
  }
  return WriteOutcome::Interrupted;
}

/// Changes `known` to what it is afterwards.
LeaseWriter::BatchOutcome LeaseWriter::write_batch(const PartitionKey& key, Positions& known,
                                                   const BatchPlan& plan,
                                                   const std::stop_token& stop) {
  std::vector<client::ItemOperation> operations;
  const auto put_position = [&](const client::FeedRange& area, const Position& before,
                                const Position& after) {
    std::string text = target_.positions.text_of(area, key, after);
    operations.push_back(before.etag.empty() ? client::ItemOperation::create(std::move(text))
                                             : client::ItemOperation::replace(
                                                   target_.positions.id_of(area), std::move(text))
                                                   .with_if_match(before.etag));
  };
  Positions after = known;
  after.own.epoch = epoch_;
  after.own.applied = plan.applied;
  put_position(area_, known.own, after.own);
  // Fences off former owners of a part of this area, which may still write.
  std::vector<Position*> moved{&after.own};
  for (std::size_t i = 0; i < known.before.size(); ++i) {
    const Ledger::Entry& entry = registration_.predecessors[i];
    if (!known.before[i].etag.empty() && known.before[i].epoch > entry.epoch) continue;
    after.before[i].epoch = epoch_;
    put_position(entry.area, known.before[i], after.before[i]);
    moved.push_back(&after.before[i]);
  }
  if (!plan.too_large) {
    for (const SourceChange* change : plan.changes) {
      operations.push_back(client::ItemOperation::upsert(change->text));
    }
  }
  const client::BatchResponse response =
      target_.container.execute_batch(operations, client_key(key), write_options(stop));
  const BatchOutcome outcome = settle(response, moved.size(), plan);
  if (outcome == BatchOutcome::Done) {
    for (std::size_t i = 0; i < moved.size(); ++i) moved[i]->etag = response.results[i].etag;
    known = std::move(after);
  }
  return outcome;
}

LeaseWriter::BatchOutcome LeaseWriter::settle(const client::BatchResponse& response,
                                              std::size_t positions, const BatchPlan& plan) const {
  if (response.ok()) return BatchOutcome::Done;
  constexpr int kFailedDependency = 424;
  const auto guilty = std::ranges::find_if(response.results, [](const client::ItemResult& result) {
    return !result.ok() && result.status != kFailedDependency;
  });
  if (guilty == response.results.end() || is_transient(guilty->status, guilty->sub_status)) {
    target_.report_waiting(guilty == response.results.end() ? "a batch was refused"
                                                            : guilty->message);
    return BatchOutcome::TryLater;
  }
  const auto index = static_cast<std::size_t>(guilty - response.results.begin());
  if (index >= positions) {
    refuse(*plan.changes[index - positions], guilty->status, guilty->message);
  }
  if (guilty->status == 409 || guilty->status == 412 || guilty->status == 404) {
    return BatchOutcome::PositionMoved;
  }
  throw CopyFailure(fmt::format("a position was refused by {} with {}: {}", target_.name,
                                guilty->status, guilty->message));
}

// ── by comparing ─────────────────────────────────────────────────────────────────────────────────

/// One round of creating, comparing and replacing.
struct LeaseWriter::CompareRound {
  std::vector<const SourceChange*> changes;
  std::vector<const SourceChange*> taken;      ///< their ids are
  std::vector<const SourceChange*> differing;  ///< from what is there
  std::vector<client::ItemOperation> replaces;
  std::vector<const SourceChange*> again;
  std::unordered_map<const SourceChange*, int> phantoms;
  std::optional<std::chrono::milliseconds> retry_after;
  std::size_t written = 0;
};

WriteOutcome LeaseWriter::write_compared(std::vector<const SourceChange*> changes,
                                         const std::stop_token& stop) {
  const std::size_t count = changes.size();
  std::size_t written = 0;
  const WriteOutcome outcome = write_where_different(std::move(changes), stop, written);
  target_.written += written;
  if (outcome == WriteOutcome::Done) target_.skipped += count - written;
  return outcome;
}

WriteOutcome LeaseWriter::write_where_different(std::vector<const SourceChange*> changes,
                                                const std::stop_token& stop, std::size_t& written) {
  Backoff backoff(stop);
  CompareRound round;
  round.changes = std::move(changes);
  while (!stop.stop_requested()) {
    try {
      create(round, stop);
      compare(round, stop);
      if (!replace(round, stop)) return WriteOutcome::Lost;
    } catch (const client::CosmosException& failure) {
      if (!is_transient(failure)) {
        throw CopyFailure(fmt::format("{}: {}", target_.name, failure.what()));
      }
      if (failure.failure() != client::Failure::Cancelled) target_.report_waiting(failure.what());
      round.retry_after = failure.retry_after();
      round.again = round.changes;
    }
    written += round.written;
    if (round.again.empty()) return WriteOutcome::Done;
    backoff.wait(round.retry_after);
    CompareRound next;
    next.changes = std::move(round.again);
    next.phantoms = std::move(round.phantoms);
    round = std::move(next);
  }
  return WriteOutcome::Interrupted;
}

void LeaseWriter::retry_later(CompareRound& round, const SourceChange* change,
                              const client::ItemResult& result) const {
  if (!is_transient(result.status, result.sub_status)) {
    refuse(*change, result.status, result.message);
  }
  target_.report_waiting(result.message.empty() ? "there is no answer" : result.message);
  round.retry_after = std::max(round.retry_after, result.retry_after);
  round.again.push_back(change);
}

void LeaseWriter::create(CompareRound& round, const std::stop_token& stop) const {
  std::vector<client::ItemOperation> creates;
  creates.reserve(round.changes.size());
  for (const SourceChange* change : round.changes) {
    creates.push_back(
        client::ItemOperation::create(change->text).with_partition_key(client_key(change->key)));
  }
  const auto created = send(target_.container, creates, stop);
  for (std::size_t i = 0; i < round.changes.size(); ++i) {
    const client::ItemResult& result = created[i];
    if (result.ok()) {
      ++round.written;
    } else if (result.status == 409) {
      round.taken.push_back(round.changes[i]);
    } else {
      retry_later(round, round.changes[i], result);
    }
  }
}

void LeaseWriter::compare(CompareRound& round, const std::stop_token& stop) const {
  if (round.taken.empty()) return;
  std::vector<client::ItemOperation> reads;
  reads.reserve(round.taken.size());
  for (const SourceChange* change : round.taken) {
    reads.push_back(
        client::ItemOperation::read(change->id).with_partition_key(client_key(change->key)));
  }
  client::BulkOptions options;
  options.stop = stop;
  const auto found = target_.container.execute_bulk(reads, options);
  for (std::size_t i = 0; i < round.taken.size(); ++i) {
    const client::ItemResult& result = found.results[i];
    const SourceChange* change = round.taken[i];
    if (result.status == 404 && result.sub_status != 1002) {
      // Gone meanwhile; or it never was, and another document has what must be unique.
      if (++round.phantoms[change] == kPhantomsMax) refuse(*change, 409, "its id is not taken");
      round.again.push_back(change);
    } else if (!result.ok()) {
      retry_later(round, change, result);
    } else if (without_system_properties(result.json) != change->text) {
      round.differing.push_back(change);
      round.replaces.push_back(client::ItemOperation::replace(change->id, change->text)
                                   .with_if_match(result.etag)
                                   .with_partition_key(client_key(change->key)));
    }
  }
}

/// False: another owner has the lease.
bool LeaseWriter::replace(CompareRound& round, const std::stop_token& stop) {
  if (round.replaces.empty()) return true;
  // The documents that were read may be newer than these changes, if another owner has the lease
  // now. It was in the ledger before it wrote anything: so the ledger is read after them.
  if (ledger_.is_superseded(area_, epoch_)) return false;
  const auto replaced = send(target_.container, round.replaces, stop);
  for (std::size_t i = 0; i < round.differing.size(); ++i) {
    const client::ItemResult& result = replaced[i];
    if (result.ok()) {
      ++round.written;
    } else if (result.status == 412 || result.status == 404) {
      round.again.push_back(round.differing[i]);
    } else {
      retry_later(round, round.differing[i], result);
    }
  }
  return true;
}

}  // namespace orrery::sinks

// The part of Stage that does what is not a write of a client: deleting whole keys, purging what
// has expired, and changing and tidying what is kept.
#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "partition/writer/stage.h"
#include "storage/keys.h"

namespace orrery::partition {

using storage::Family;
using storage::IdEntry;
using storage::Keeping;
using Operation = storage::HistoryRecord::Operation;

namespace {

/// How soon a trim that had to be put off is worth another try.
constexpr UnixSeconds kTrimAgainSeconds = 10;

}  // namespace

Result<> Stage::needs_disk() {
  if (tier_ == storage::Tier::Disk) return {};
  would_block_ = true;
  return Error(ErrorCode::Internal, "a scan may block");
}

Superseded Stage::superseded() const {
  return [this](const std::string& id_key, storage::LogPosition position) {
    const auto staged = documents_.find(id_key);
    return staged != documents_.end() &&
           (!staged->second.entry || staged->second.entry->position != position);
  };
}

Result<Committed> Stage::attempt(const DeleteByKey& work, const Scope& scope) {
  ORRERY_TRY(needs_disk());
  storage::DocumentKey prefix = work.key;
  prefix.id.clear();
  const std::string from = storage::id_key(partition_, prefix);
  std::string to = from;
  // No byte of UTF-8 is 0xFF, so this is beyond every id.
  to.push_back('\xFF');

  // Committed documents, overlaid with what is staged. One more than goes into a transaction tells
  // whether there are more; staged deletions may take some away again.
  std::map<std::string, std::optional<IdEntry>> found;
  ORRERY_TRY(const auto snapshot, store_.snapshot());
  auto cursor = snapshot.cursor(Family::Ids, from, to);
  const std::size_t limit = kDeleteByKeyDocumentsMax + 1 + documents_.size();
  for (; cursor.valid() && found.size() < limit; cursor.next()) {
    found.emplace(cursor.key(), IdEntry::parse(cursor.value()));
  }
  ORRERY_TRY(cursor.status());
  for (const auto& [id_key, staged] : documents_) {
    if (id_key.starts_with(from)) {
      rests_on_staged_ = true;
      found.insert_or_assign(id_key, staged.entry);
    }
  }

  Committed committed;
  for (const auto& [id_key, entry] : found) {
    if (!entry) continue;
    if (committed.writes.size() == kDeleteByKeyDocumentsMax) {
      committed.more = true;
      break;
    }
    storage::DocumentKey document = prefix;
    document.id = id_key.substr(from.size());
    // What has expired goes with the rest: it only waits to be purged.
    const bool expired = storage::expired(entry->header.ts, entry->header.own_ttl,
                                          scope.rules.default_ttl, scope.now);
    ORRERY_TRY(auto written, erase_version(document, *entry, scope,
                                           static_cast<std::uint32_t>(committed.writes.size()),
                                           expired ? Operation::TtlDelete : Operation::Delete));
    committed.writes.push_back(std::move(written));
  }
  return committed;
}

Result<Committed> Stage::attempt(const ExpiryPurge& work, const Scope& scope) {
  Committed committed;
  for (const PurgeCandidate& candidate : work.candidates) {
    ORRERY_TRY(const bool purged, purge_one(candidate, scope));
    if (purged) ++committed.tidied;
  }
  return committed;
}

Result<bool> Stage::purge_one(const PurgeCandidate& candidate, const Scope& scope) {
  // Switched off since the candidate was found: the entries went with it.
  if (head_.keeping.expiry == Keeping::Expiry::Off) return false;
  ORRERY_TRY(const bool stored,
             look_up(Family::Log, storage::log_key(partition_, candidate.entry.position)));
  if (!stored) {
    // Candidates come from what is committed, and so would their versions: this one is gone.
    writer_.erase_stale_expiry(candidate.entry);
    return false;
  }
  const auto record = storage::VersionRecord::parse(scratch_);
  ORRERY_ASSERT(record.has_value());
  const storage::DocumentKey key = record->key();
  ORRERY_TRY(const auto existing, find(key, scope));
  // Superseded by what is staged, together with its entry.
  if (!existing || existing->entry.position != candidate.entry.position) return false;
  if (!existing->expired) return false;
  ORRERY_TRY(purge_version(key, existing->entry, scope));
  return true;
}

Result<Committed> Stage::attempt(const RetentionChange& work, const Scope&) {
  storage::Head& head = writer_.head();
  Keeping keeping = work.keeping;
  const Keeping before = head.keeping;
  // The head without this transaction: what comes after it is kept.
  const Lsn now = head_.lsn;

  if (keeping.expiry == Keeping::Expiry::Off) {
    if (before.expiry != Keeping::Expiry::Off) writer_.erase_all_expiry();
  } else if (before.expiry != Keeping::Expiry::Off) {
    keeping.expiry = before.expiry;
  } else {
    keeping.expiry = Keeping::Expiry::Building;
    expiry_build_.restart();
    // The build walks what is committed; what is staged may come behind it.
    for (const auto& [id_key, staged] : documents_) {
      if (!staged.entry) continue;
      const auto entry = expiry_of(staged.entry->position, staged.entry->header);
      if (entry) writer_.put_expiry(*entry);
    }
  }

  if (keeping.history == Keeping::History::None) {
    keeping.previous_image = Keeping::PreviousImage::None;
    if (before.history != Keeping::History::None) {
      writer_.erase_all_history();
      head.history = nullptr;
      trimmer_.restart();
    }
  } else if (before.history == Keeping::History::None) {
    head.history = std::make_shared<const std::vector<storage::HistoryPart>>(
        std::vector<storage::HistoryPart>{{"", now, now}});
    trimmer_.restart();
  } else if (before.history != keeping.history) {
    // What was recorded before keeps its deletes only, or will once it has been trimmed.
    const Lsn reduced =
        std::ranges::min(*head.history, {}, &storage::HistoryPart::all_begin).all_begin;
    trimmer_.restart(reduced);
    if (keeping.history == Keeping::History::All) {
      auto parts = std::make_shared<std::vector<storage::HistoryPart>>(*head.history);
      for (storage::HistoryPart& part : *parts) part.all_begin = now;
      head.history = std::move(parts);
    }
  }
  head.keeping = keeping;
  return Committed{};
}

Result<Committed> Stage::attempt(const ExpiryBuildStep&, const Scope&) {
  Committed committed;
  switch (head_.keeping.expiry) {
    case Keeping::Expiry::Off:
      return Error(ErrorCode::Conflict, "no expiry entries are kept here");
    case Keeping::Expiry::Complete:
      return committed;
    case Keeping::Expiry::Building:
      break;
  }
  ORRERY_TRY(needs_disk());
  ORRERY_TRY(committed.more, expiry_build_.step(store_, partition_, superseded(), writer_));
  if (!committed.more) writer_.head().keeping.expiry = Keeping::Expiry::Complete;
  return committed;
}

Result<Committed> Stage::attempt(const HistoryTrim& trim, const Scope&) {
  Committed committed;
  if (head_.keeping.history == Keeping::History::None) return committed;
  // Not under whoever copies it: later.
  if (mirror_) {
    committed.next_in = kTrimAgainSeconds;
    return committed;
  }
  // Said by somebody who has not heard yet that everything is kept now.
  if (head_.keeping.history == Keeping::History::All &&
      trim.all_before == std::numeric_limits<UnixSeconds>::max()) {
    return committed;
  }
  ORRERY_TRY(needs_disk());
  ORRERY_TRY(const auto step, trimmer_.step(store_, partition_, trim, writer_));
  committed.more = step.more;
  committed.tidied = step.records;
  committed.next_in = step.next_in;
  return committed;
}

}  // namespace orrery::partition

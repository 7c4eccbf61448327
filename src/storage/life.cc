#include "storage/life.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "storage/batch.h"
#include "storage/keys.h"
#include "storage/records.h"
#include "storage/store.h"

namespace orrery::storage {
namespace {

constexpr char kLifeFormat = 1;
constexpr std::size_t kLifeSize = 41;

Life::Id draw_id() {
  std::random_device device;
  Life::Id id;
  for (auto& byte : id) byte = static_cast<std::uint8_t>(device());
  return id;
}

Result<> commit_durably(Store& store, const Batch& batch) {
  const Batch* const batches[] = {&batch};
  return store.commit(batches, Durability::Strict);
}

}  // namespace

Result<std::optional<Life>> find_life(const Store& store) {
  std::string value;
  switch (store.get(Family::Catalog, kLifeKey, value, Tier::Disk)) {
    case Lookup::Missing:
      return std::optional<Life>();
    case Lookup::Found:
      if (auto life = Life::parse(value)) return life;
      return Error(ErrorCode::Unavailable,
                   "the store's life record is of a format that this version cannot read. Start "
                   "the version of Orrery that wrote it last");
    default:
      return Error(ErrorCode::Unavailable,
                   "the store's life record could not be read: a file of the store is damaged, and "
                   "the line before this one says which. Restore the newest back-up");
  }
}

namespace {

using Heads = std::vector<std::pair<std::string, Head>>;

/// Every partition's, with its key.
Result<Heads> read_heads(const Store& store) {
  ORRERY_TRY(const auto snapshot, store.snapshot());
  Heads heads;
  auto cursor = snapshot.cursor(Family::Heads, "", std::string(8, '\xFF'));
  for (; cursor.valid(); cursor.next()) {
    if (cursor.key().size() != partition_prefix({}).size()) continue;
    auto head = Head::parse(cursor.value());
    if (!head) {
      return Error(ErrorCode::Unavailable,
                   "the head of a range is of a format that this version cannot read. Start the "
                   "version of Orrery that wrote it last");
    }
    heads.emplace_back(cursor.key(), std::move(*head));
  }
  ORRERY_TRY(cursor.status());
  return heads;
}

}  // namespace

std::string Life::text() const {
  std::string text = fmt::format("{}-", number);
  for (const std::uint8_t byte : id) fmt::format_to(std::back_inserter(text), "{:02x}", byte);
  return text;
}

std::optional<Life> Life::parse(std::string_view value) {
  if (value.size() != kLifeSize || value[0] != kLifeFormat) return {};
  Life life;
  life.number = read_u64(value.data() + 1);
  life.first_lsn = Lsn{read_u64(value.data() + 9)};
  life.began = static_cast<UnixSeconds>(read_u64(value.data() + 17));
  std::ranges::copy(value.substr(25), life.id.begin());
  return life;
}

std::string Life::make() const {
  std::string out;
  out.reserve(kLifeSize);
  out.push_back(kLifeFormat);
  append_u64(out, number);
  append_u64(out, first_lsn.value);
  append_u64(out, static_cast<std::uint64_t>(began));
  out.append(id.begin(), id.end());
  return out;
}

Result<Life> open_life(Store& store, UnixSeconds now) {
  ORRERY_TRY(const auto found, find_life(store));
  if (found) return *found;
  Life life;
  life.began = now;
  life.id = draw_id();
  Batch batch;
  batch.put(Family::Catalog, kLifeKey, life.make());
  ORRERY_TRY(commit_durably(store, batch));
  return life;
}

Result<Life> begin_life(Store& store, UnixSeconds now) {
  ORRERY_TRY(const auto found, find_life(store));
  const Life ended = found.value_or(Life{});
  ORRERY_TRY(auto heads, read_heads(store));
  Lsn highest = ended.first_lsn;
  for (const auto& [key, head] : heads) highest = std::max(highest, head.lsn);

  Life life;
  life.number = ended.number + 1;
  life.first_lsn = Lsn{highest.value + kLsnLiftMin};
  // A clock that is a century ahead must not use up all LSNs at once.
  if (now > 0 && now <= UINT32_MAX) {
    const Lsn by_clock{static_cast<std::uint64_t>(now) * kLsnsPerSecondMax};
    life.first_lsn = std::max(life.first_lsn, by_clock);
  }
  life.began = now;
  life.id = draw_id();
  if (life.first_lsn.value > kLsnMax - kLsnLiftMin) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("a new life of the store would begin at position {}, but clients "
                             "cannot read positions above {}. Copy the containers into a new data "
                             "directory (orrery copy)",
                             life.first_lsn.value, kLsnMax));
  }
  Batch batch;
  for (auto& [key, head] : heads) {
    head.resume_at(life.first_lsn);
    batch.put(Family::Heads, key, head.make());
  }
  batch.put(Family::Catalog, kLifeKey, life.make());
  ORRERY_TRY(store.require_gaps());
  ORRERY_TRY(commit_durably(store, batch));
  return life;
}

}  // namespace orrery::storage

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/perf_level.h>

#include "base/diagnostics.h"
#include "storage/handle.h"
#include "storage/store.h"
#include "storage/value_cache.h"

namespace orrery::storage {
namespace {

/// So many cursors wait for their next use, at most: about as many as there are event loops.
constexpr std::size_t kIdleCursorsMax = 8;

}  // namespace

struct Snapshot::Cursor::State {
  std::string lower;
  std::string upper;
  // RocksDB keeps pointers to these: they change with the bounds, and stay where they are.
  rocksdb::Slice lower_slice;
  rocksdb::Slice upper_slice;
  std::unique_ptr<rocksdb::Iterator> iterator;
  Snapshot::State* snapshot = nullptr;
  /// Where it goes when it is not wanted any more; null: nowhere.
  SharedSnapshot* home = nullptr;

  /// To be followed by a seek.
  void set_bounds(std::string_view from, std::string_view to) {
    lower = from;
    upper = to;
    lower_slice = lower;
    upper_slice = upper;
  }
};

// ── shared snapshots
// ──────────────────────────────────────────────────────────────────────────────────────

SharedSnapshot::SharedSnapshot(rocksdb::DB& db) : db_(db), snapshot_(db.GetSnapshot()) {}

SharedSnapshot::~SharedSnapshot() {
  idle_.clear();
  db_.ReleaseSnapshot(snapshot_);
}

bool SharedSnapshot::is_now() const {
  return snapshot_->GetSequenceNumber() == db_.GetLatestSequenceNumber();
}

std::unique_ptr<Snapshot::Cursor::State> SharedSnapshot::take_cursor() {
  std::lock_guard lock(mutex_);
  if (idle_.empty()) return nullptr;
  auto cursor = std::move(idle_.back());
  idle_.pop_back();
  return cursor;
}

void SharedSnapshot::give_back(std::unique_ptr<Snapshot::Cursor::State> cursor) {
  std::lock_guard lock(mutex_);
  if (idle_.size() < kIdleCursorsMax) idle_.push_back(std::move(cursor));
}

// ── snapshots ────────────────────────────────────────────────────────────────────────────────────

struct Snapshot::State {
  std::shared_ptr<Store::Handle> handle;
  std::shared_ptr<SharedSnapshot> shared;
  Tier tier = Tier::Disk;
  bool has_missed = false;

  rocksdb::ReadOptions options() const {
    rocksdb::ReadOptions options;
    options.snapshot = shared->snapshot();
    if (tier == Tier::Memory) options.read_tier = rocksdb::kBlockCacheTier;
    return options;
  }
  /// Whether that is why a read came to nothing.
  bool is_miss(const rocksdb::Status& status) {
    if (status.IsIncomplete()) has_missed = true;
    return status.IsIncomplete();
  }
  /// "Found" with nothing in it: see Store::get.
  bool is_unopened(const rocksdb::Slice& value) {
    if (tier != Tier::Memory || !value.empty()) return false;
    has_missed = true;
    return true;
  }
};

Result<Snapshot> Store::snapshot(Tier tier) const {
  auto state = std::make_unique<Snapshot::State>();
  state->tier = tier;
  state->handle = tier == Tier::Memory ? handle() : wait_for_handle();
  if (!state->handle) {
    return Error(ErrorCode::Unavailable, "the store is being reopened after a disk error");
  }
  auto& db = *state->handle->db;
  state->shared =
      tier == Tier::Memory ? state->handle->latest->of(db) : std::make_shared<SharedSnapshot>(db);
  return Snapshot(std::move(state));
}

Snapshot::Snapshot(std::unique_ptr<State> state) : state_(std::move(state)) {}
Snapshot::Snapshot(Snapshot&&) noexcept = default;
Snapshot& Snapshot::operator=(Snapshot&&) noexcept = default;
Snapshot::~Snapshot() = default;

bool Snapshot::has_missed() const { return state_->has_missed; }

Lookup Snapshot::get(Family family, std::string_view key, std::string& out) const {
  rocksdb::PinnableSlice value(&out);
  const auto status =
      state_->handle->db->Get(state_->options(), state_->handle->family(family), key, &value);
  if (status.ok()) {
    if (state_->is_unopened(value)) return Lookup::Unknown;
    if (value.IsPinned()) out.assign(value.data(), value.size());
    return Lookup::Found;
  }
  if (status.IsNotFound()) return Lookup::Missing;
  if (state_->is_miss(status)) return Lookup::Unknown;
  diagnostics::error("a read from the store failed: {}", status.ToString());
  return Lookup::Failed;
}

struct Snapshot::Values::State {
  std::vector<std::string_view> views;
  /// The memory that they refer to, in either place.
  std::vector<ValueCache::Pin> cached;
  std::vector<rocksdb::PinnableSlice> read;

  // Of those that are not cached.
  std::vector<std::size_t> places;
  std::vector<rocksdb::Slice> keys;
  std::vector<rocksdb::Status> statuses;

  void reset() {
    views.clear();
    cached.clear();
    for (rocksdb::PinnableSlice& value : read) value.Reset();
    places.clear();
    keys.clear();
  }
};

Snapshot::Values::Values() : state_(std::make_unique<State>()) {}
Snapshot::Values::Values(Values&&) noexcept = default;
Snapshot::Values::~Values() = default;
std::string_view Snapshot::Values::operator[](std::size_t place) const {
  return state_->views[place];
}

Result<bool> Snapshot::get_versions(std::span<const std::string> keys, Values& out) const {
  auto& handle = *state_->handle;
  auto& values = *out.state_;
  values.reset();
  for (std::size_t place = 0; place < keys.size(); ++place) {
    if (auto pin = handle.versions.find(keys[place])) {
      values.views.push_back(pin.value());
      values.cached.push_back(std::move(pin));
    } else {
      values.views.emplace_back();
      values.places.push_back(place);
      values.keys.push_back(keys[place]);
    }
  }
  const std::size_t count = values.keys.size();
  if (count == 0) return true;
  if (values.read.size() < count) values.read.resize(count);
  values.statuses.assign(count, {});
  if (state_->tier == Tier::Disk) {
    handle.db->MultiGet(state_->options(), handle.family(Family::Log), count, values.keys.data(),
                        values.read.data(), values.statuses.data());
  } else {
    // Reading several together, RocksDB looks at the disk whatever it is told.
    for (std::size_t i = 0; i < count; ++i) {
      values.statuses[i] = handle.db->Get(state_->options(), handle.family(Family::Log),
                                          values.keys[i], &values.read[i]);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const rocksdb::Status& status = values.statuses[i];
    if (status.IsNotFound()) return false;
    if (state_->is_miss(status) || (status.ok() && state_->is_unopened(values.read[i]))) {
      return Error(ErrorCode::NotInMemory, "the value is not in memory");
    }
    if (!status.ok()) {
      const auto error = disk_error("a read from the store failed", status);
      diagnostics::error("{}", error.message());
      return error;
    }
    const std::size_t place = values.places[i];
    values.views[place] = values.read[i].ToStringView();
    handle.versions.insert(keys[place], values.views[place]);
  }
  return true;
}

Snapshot::Cursor::Cursor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Snapshot::Cursor::Cursor(Cursor&&) noexcept = default;
Snapshot::Cursor::~Cursor() {
  if (!state_ || state_->home == nullptr || !state_->iterator->status().ok()) return;
  state_->home->give_back(std::move(state_));
}

Snapshot::Cursor Snapshot::cursor(Family family, std::string_view lower, std::string_view upper,
                                  Access access) const {
  // Those over index entries are for short queries, of which there are many.
  const bool is_shared =
      state_->tier == Tier::Memory && family == Family::Terms && access == Access::Point;
  std::unique_ptr<Cursor::State> state;
  if (is_shared) state = state_->shared->take_cursor();
  const bool is_new = state == nullptr;
  // Of this thread: RocksDB counts what each step of a cursor does, and nobody asks for it.
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
  if (is_new) state = std::make_unique<Cursor::State>();
  state->set_bounds(lower, upper);
  state->snapshot = state_.get();
  if (is_shared) state->home = state_->shared.get();
  if (is_new) {
    rocksdb::ReadOptions options = state_->options();
    options.iterate_lower_bound = &state->lower_slice;
    options.iterate_upper_bound = &state->upper_slice;
    if (access == Access::Scan) {
      options.fill_cache = false;
      options.readahead_size = 256 << 10;
    }
    state->iterator.reset(state_->handle->db->NewIterator(options, state_->handle->family(family)));
  }
  state->iterator->Seek(lower);
  return Cursor(std::move(state));
}

void Snapshot::Cursor::seek(std::string_view key) { state_->iterator->Seek(key); }
void Snapshot::Cursor::seek_for_prev(std::string_view key) { state_->iterator->SeekForPrev(key); }
void Snapshot::Cursor::next() { state_->iterator->Next(); }
void Snapshot::Cursor::prev() { state_->iterator->Prev(); }
bool Snapshot::Cursor::valid() const {
  if (state_->iterator->Valid()) {
    // That RocksDB heeds bounds which have changed since it was opened is nothing it promises.
    return state_->home == nullptr || (key() >= state_->lower && key() < state_->upper);
  }
  state_->snapshot->is_miss(state_->iterator->status());
  return false;
}
std::string_view Snapshot::Cursor::key() const { return state_->iterator->key().ToStringView(); }
std::string_view Snapshot::Cursor::value() const {
  return state_->iterator->value().ToStringView();
}
Result<> Snapshot::Cursor::status() const {
  const auto status = state_->iterator->status();
  if (status.ok()) return {};
  const auto error = disk_error("a scan of the store failed", status);
  // One that only has to be asked again is no failure.
  if (!status.IsIncomplete()) diagnostics::error("{}", error.message());
  return error;
}

}  // namespace orrery::storage

#include "storage/recovery/watermark_keeper.h"

#include "base/diagnostics.h"

namespace orrery::storage {
namespace {

constexpr std::chrono::seconds kInterval{1};

}  // namespace

WatermarkKeeper::WatermarkKeeper(const std::filesystem::path& data_directory, bool is_strict)
    : store_(data_directory / "store"),
      is_strict_(is_strict),
      watermark_(data_directory / kWatermarkFile),
      is_loss_pending_(watermark_.mark() && watermark_.mark()->is_loss_pending) {}

WatermarkKeeper::~WatermarkKeeper() { stop(); }

std::optional<SyncedMark> WatermarkKeeper::mark() const {
  std::lock_guard lock(mutex_);
  return watermark_.mark();
}

void WatermarkKeeper::start() {
  thread_ = std::thread([this] { run(); });
}

void WatermarkKeeper::stop() {
  {
    std::lock_guard lock(stop_mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void WatermarkKeeper::run() {
  std::unique_lock lock(stop_mutex_);
  while (!stopping_) {
    lock.unlock();
    // An older mark is still true, so a disk that refuses does no harm here.
    if (const auto written = write(); !written) {
      diagnostics::debug("the watermark was not written: {}", written.error().message());
    }
    lock.lock();
    wake_.wait_for(lock, kInterval, [this] { return stopping_; });
  }
}

Result<> WatermarkKeeper::write() {
  std::lock_guard lock(mutex_);
  return write_locked();
}

Result<> WatermarkKeeper::write_locked() {
  if (is_loss_pending_) return {};
  const auto& last = watermark_.mark();
  SyncedMark mark;
  // Before the MANIFEST is looked at: what is noted must be at least as old as what is looked at.
  mark.operation = synced();
  const bool tables_changed = tables_changed_.exchange(false, std::memory_order_relaxed);
  if (!tables_changed && last && last->operation == mark.operation) return {};
  if (tables_changed) {
    auto extent = sync_manifest(store_, manifest_);
    if (!extent) {
      tables_changed_.store(true, std::memory_order_relaxed);
      return Error(extent.error());
    }
    manifest_ = *extent;
  }
  mark.manifest = manifest_.number;
  mark.manifest_size = manifest_.size;
  mark.boot = current_boot();
  mark.is_strict = is_strict_;
  if (last == mark) return {};
  return watermark_.write(mark);
}

Result<> WatermarkKeeper::begin_loss() {
  std::lock_guard lock(mutex_);
  SyncedMark mark = watermark_.mark().value_or(SyncedMark{});
  mark.is_loss_pending = true;
  ORRERY_TRY(watermark_.write(mark));
  is_loss_pending_ = true;
  return {};
}

Result<> WatermarkKeeper::settle_loss() {
  std::lock_guard lock(mutex_);
  is_loss_pending_ = false;
  tables_changed_.store(true, std::memory_order_relaxed);
  return write_locked();
}

}  // namespace orrery::storage

#include "storage/recovery/watermark.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/fnv1a.h"
#include "storage/durable_file.h"
#include "storage/keys.h"
#include "storage/recovery/rocks_log.h"

namespace orrery::storage {
namespace {

constexpr std::string_view kMagic = "orrerywm";
constexpr char kMarkFormat = 1;
constexpr std::size_t kSlotSize = 4 << 10;
constexpr std::size_t kSlots = 2;
constexpr std::size_t kCheckedSize = 64;
constexpr std::string_view kManifestPrefix = "MANIFEST-";

std::string make_slot(const SyncedMark& mark, std::uint64_t count) {
  std::string slot(kMagic);
  slot.push_back(kMarkFormat);
  slot.push_back(mark.is_strict ? 1 : 0);
  slot.push_back(mark.is_loss_pending ? 1 : 0);
  slot.append(5, '\0');
  append_u64(slot, count);
  append_u64(slot, mark.operation);
  append_u64(slot, mark.manifest);
  append_u64(slot, mark.manifest_size);
  slot.append(mark.boot.begin(), mark.boot.end());
  append_u64(slot, fnv1a(slot));
  slot.resize(kSlotSize);
  return slot;
}

std::optional<std::pair<SyncedMark, std::uint64_t>> parse_slot(std::string_view slot) {
  if (slot.size() < kCheckedSize + 8 || !slot.starts_with(kMagic) || slot[8] != kMarkFormat)
    return {};
  const char* at = slot.data();
  if (read_u64(at + kCheckedSize) != fnv1a(slot.substr(0, kCheckedSize))) return {};
  SyncedMark mark;
  mark.is_strict = at[9] != 0;
  mark.is_loss_pending = at[10] != 0;
  mark.operation = read_u64(at + 24);
  mark.manifest = read_u64(at + 32);
  mark.manifest_size = read_u64(at + 40);
  std::memcpy(mark.boot.data(), at + 48, mark.boot.size());
  return std::pair(mark, read_u64(at + 16));
}

/// The number in CURRENT's line, "MANIFEST-000012".
std::optional<std::uint64_t> current_manifest(const std::filesystem::path& store) {
  auto line = read_bytes(store / "CURRENT");
  if (!line || !line->starts_with(kManifestPrefix) || !line->ends_with('\n')) return {};
  const char* const end = line->data() + line->size() - 1;
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(line->data() + kManifestPrefix.size(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return {};
  return number;
}

std::filesystem::path manifest_path(const std::filesystem::path& store, std::uint64_t number) {
  return store / fmt::format("{}{:06}", kManifestPrefix, number);
}

/// Up to where the MANIFEST holds whole records, knowing that it does up to `from`.
Result<std::uint64_t> manifest_size(const std::filesystem::path& path, std::uint64_t from) {
  const std::uint64_t block = from / kRocksLogBlockSize * kRocksLogBlockSize;
  ORRERY_TRY(const auto bytes, read_bytes(path, block));
  if (block + bytes.size() < from) return block + bytes.size();
  return block + sound_size(bytes, from - block);
}

}  // namespace

std::array<std::uint8_t, 16> current_boot() {
  std::array<std::uint8_t, 16> boot{};
  const auto text = read_bytes("/proc/sys/kernel/random/boot_id");
  if (!text) return boot;
  std::string digits;
  for (const char c : *text) {
    if (c != '-' && c != '\n') digits.push_back(c);
  }
  if (digits.size() != 2 * boot.size()) return boot;
  for (std::size_t i = 0; i < boot.size(); ++i) {
    std::from_chars(digits.data() + 2 * i, digits.data() + 2 * i + 2, boot[i], 16);
  }
  return boot;
}

Watermark::Watermark(std::filesystem::path path) : path_(std::move(path)) {
  const auto bytes = read_bytes(path_);
  if (!bytes) return;
  for (std::size_t slot = 0; slot < kSlots && slot * kSlotSize < bytes->size(); ++slot) {
    const auto parsed = parse_slot(std::string_view(*bytes).substr(slot * kSlotSize, kSlotSize));
    if (!parsed || parsed->second < count_) continue;
    mark_ = parsed->first;
    count_ = parsed->second;
  }
  is_damaged_ = !mark_;
}

Watermark::~Watermark() {
  if (file_ >= 0) ::close(file_);
}

Result<> Watermark::open_file() {
  if (file_ >= 0) return {};
  std::error_code ignored;
  if (std::filesystem::file_size(path_, ignored) != kSlots * kSlotSize) {
    ORRERY_TRY(write_durably(path_, std::string(kSlots * kSlotSize, '\0')));
  }
  file_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  if (file_ >= 0) return {};
  return Error(ErrorCode::Unavailable,
               fmt::format("cannot open {}: {}", path_.string(), std::strerror(errno)));
}

Result<> Watermark::write(const SyncedMark& mark) {
  ORRERY_TRY(open_file());
  const std::uint64_t count = count_ + 1;
  const std::string slot = make_slot(mark, count);
  const auto offset = static_cast<off_t>(count % kSlots * kSlotSize);
  if (::pwrite(file_, slot.data(), slot.size(), offset) != static_cast<ssize_t>(slot.size()) ||
      ::fdatasync(file_) != 0) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("cannot write {}: {}", path_.string(), std::strerror(errno)));
  }
  count_ = count;
  mark_ = mark;
  return {};
}

Result<ManifestExtent> sync_manifest(const std::filesystem::path& store, ManifestExtent known) {
  const auto number = current_manifest(store);
  if (!number) return Error(ErrorCode::Unavailable, "CURRENT cannot be read");
  const auto path = manifest_path(store, *number);
  const std::uint64_t from = known.number == *number ? known.size : 0;
  ORRERY_TRY(const auto size, manifest_size(path, from));
  // RocksDB has synced what it relies on. The rest may be there and not on the disk yet.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool is_synced = file >= 0 && ::fdatasync(file) == 0;
  const int failure = errno;
  if (file >= 0) ::close(file);
  if (is_synced) return ManifestExtent{*number, size};
  return Error(ErrorCode::Unavailable,
               fmt::format("cannot sync {}: {}", path.string(), std::strerror(failure)));
}

Result<> check_manifest(const std::filesystem::path& store, const SyncedMark& mark) {
  if (mark.manifest == 0) return {};
  const auto number = current_manifest(store);
  if (!number || *number > mark.manifest) return {};
  if (*number < mark.manifest) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("{} names MANIFEST-{:06}, but MANIFEST-{:06} was in use before",
                             (store / "CURRENT").string(), *number, mark.manifest));
  }
  const auto path = manifest_path(store, *number);
  const auto size = manifest_size(path, 0);
  if (!size || *size >= mark.manifest_size) return {};
  return Error(ErrorCode::Unavailable,
               fmt::format("{} is damaged or cut off at byte {}: {} bytes of it were on the disk",
                           path.string(), *size, mark.manifest_size));
}

}  // namespace orrery::storage

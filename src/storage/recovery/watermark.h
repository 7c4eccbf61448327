// The watermark: up to where writes were certainly on stable storage when somebody last looked.
//
// A write-ahead log that lost its end looks like one that a crash has torn, and a MANIFEST that
// lost its end is just an older one. So what was there is noted beside the store, about once a
// second while there are commits and at every orderly stop, and an opening that finds less is
// refused.
//
// The file `watermark` has two slots of 4 KiB, written in turn, so that a crash while one is
// written leaves the other. The valid one with the higher count holds. Integers are big-endian.
//   offset 0   size 8   "orrerywm"               offset 24  size 8   last synced operation
//   offset 8   size 1   format version: 1        offset 32  size 8   number of the MANIFEST
//   offset 9   size 1   1: strict durability     offset 40  size 8   its size in whole records
//   offset 10  size 1   1: a loss was accepted,  offset 48  size 16  id of the machine's boot
//                       and no new life began    offset 64  size 8   FNV-1a of all before
//   offset 11  size 5   zero                     offset 72           zeros
//   offset 16  size 8   count of slots written
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace orrery::storage {

inline constexpr const char* kWatermarkFile = "watermark";

struct SyncedMark {
  /// RocksDB numbers all operations; this one and those before it were synced.
  std::uint64_t operation = 0;
  std::uint64_t manifest = 0;           ///< number of the file; 0: none is known
  std::uint64_t manifest_size = 0;      ///< so much of it was there, in whole records, and synced
  std::array<std::uint8_t, 16> boot{};  ///< zeros: not known
  bool is_strict = true;
  bool is_loss_pending = false;

  bool operator==(const SyncedMark&) const = default;
};

/// Which boot of the machine this is; zeros where the system does not tell.
std::array<std::uint8_t, 16> current_boot();

class Watermark {
 public:
  /// Reads the file, if it is there. Blocks.
  explicit Watermark(std::filesystem::path path);
  ~Watermark();
  Watermark(const Watermark&) = delete;
  Watermark& operator=(const Watermark&) = delete;

  /// The newest mark; nothing when there is no file, or none of its slots is valid.
  const std::optional<SyncedMark>& mark() const { return mark_; }
  /// Whether there is a file without a valid slot.
  bool is_damaged() const { return is_damaged_; }

  /// Durable when it returns. Blocks. One thread at a time. Unavailable when the disk refuses; then
  /// the mark before holds.
  Result<> write(const SyncedMark& mark);

 private:
  Result<> open_file();

  const std::filesystem::path path_;
  int file_ = -1;
  std::uint64_t count_ = 0;
  std::optional<SyncedMark> mark_;
  bool is_damaged_ = false;
};

/// Number and size in whole records of the MANIFEST that CURRENT names, synced. `known` is what was
/// found before, so that only the rest is read. Blocks. Unavailable when it cannot be read.
struct ManifestExtent {
  std::uint64_t number = 0;
  std::uint64_t size = 0;
  bool operator==(const ManifestExtent&) const = default;
};
Result<ManifestExtent> sync_manifest(const std::filesystem::path& store, ManifestExtent known);

/// Whether CURRENT and the MANIFEST that it names are no older than the mark says. Unavailable with
/// what is damaged. Unreadable files are left to RocksDB.
Result<> check_manifest(const std::filesystem::path& store, const SyncedMark& mark);

}  // namespace orrery::storage

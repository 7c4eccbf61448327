// Batch: what one or more transactions put into and take out of the store, as one flat run of
// bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace orrery::storage {

/// The column families. design: every key and value format is drawn in keys.h and records.h.
enum class Family : std::uint8_t { Catalog, Heads, Log, Ids, Rids, Unique, History, Expiry, Terms };
inline constexpr std::size_t kFamilyCount = 9;

/// Operations in the order in which they apply. Knows nothing of RocksDB, so that a commit log can
/// carry it elsewhere.
class Batch {
 public:
  void put(Family family, std::string_view key, std::string_view value) {
    append_operation(Kind::Put, family, key, value);
  }
  void erase(Family family, std::string_view key) {
    append_operation(Kind::Erase, family, key, {});
  }
  /// For keys that are put once and erased once: leaves less behind for scans to step over.
  void erase_single(Family family, std::string_view key) {
    append_operation(Kind::EraseSingle, family, key, {});
  }
  /// Erases [from, to).
  void erase_range(Family family, std::string_view from, std::string_view to) {
    append_operation(Kind::EraseRange, family, from, to);
  }

  void append(const Batch& other) { bytes_.append(other.bytes_); }

  bool empty() const { return bytes_.empty(); }
  std::size_t byte_size() const { return bytes_.size(); }
  void clear() { bytes_.clear(); }

  enum class Kind : std::uint8_t { Put, Erase, EraseSingle, EraseRange };

  /// Calls visit(Kind, Family, key, value) for each operation.
  template <typename Visit>
  void for_each(Visit visit) const;

 private:
  // One operation:
  //   offset 0   size 1   kind                 offset 6    size 4   value size
  //   offset 1   size 1   family               offset 10            key, then value
  //   offset 2   size 4   key size
  static constexpr std::size_t kHeaderSize = 10;

  void append_operation(Kind kind, Family family, std::string_view key, std::string_view value) {
    char header[kHeaderSize];
    header[0] = static_cast<char>(kind);
    header[1] = static_cast<char>(family);
    const auto key_size = static_cast<std::uint32_t>(key.size());
    const auto value_size = static_cast<std::uint32_t>(value.size());
    __builtin_memcpy(header + 2, &key_size, 4);
    __builtin_memcpy(header + 6, &value_size, 4);
    bytes_.append(header, kHeaderSize).append(key).append(value);
  }

  std::string bytes_;
};

template <typename Visit>
void Batch::for_each(Visit visit) const {
  const char* at = bytes_.data();
  const char* end = at + bytes_.size();
  while (at != end) {
    std::uint32_t key_size, value_size;
    __builtin_memcpy(&key_size, at + 2, 4);
    __builtin_memcpy(&value_size, at + 6, 4);
    const std::string_view key(at + kHeaderSize, key_size);
    const std::string_view value(at + kHeaderSize + key_size, value_size);
    visit(static_cast<Kind>(at[0]), static_cast<Family>(at[1]), key, value);
    at += kHeaderSize + key_size + value_size;
  }
}

}  // namespace orrery::storage

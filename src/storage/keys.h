// Every key format of the store. Integers are big-endian, so that byte order is logical order.
//
//   family    key
//   catalog   one letter, then ids: see catalog/entries.h
//   heads     partition 4
//   log       partition 4, LSN 8, index 4                        one forward scan is the feed
//   ids       partition 4, document key                          see DocumentKey
//   rids      partition 4, document number 8                     `_rid` order
//   unique    partition 4, EPK, partition key, policy 2, values
//   history   partition 4, LSN 8, index 4                        every change, oldest first
//   expiry    partition 4, kind 1, second 8, LSN 8, index 4      what is due first
//   terms     partition 4, index id 4, term, document number 8   what secondary indexes hold
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "protocol/ids.h"

namespace orrery::storage {

inline void append_u16(std::string& out, std::uint16_t value) {
  const std::uint16_t swapped = __builtin_bswap16(value);
  out.append(reinterpret_cast<const char*>(&swapped), 2);
}
inline void append_u32(std::string& out, std::uint32_t value) {
  const std::uint32_t swapped = __builtin_bswap32(value);
  out.append(reinterpret_cast<const char*>(&swapped), 4);
}
inline void append_u64(std::string& out, std::uint64_t value) {
  const std::uint64_t swapped = __builtin_bswap64(value);
  out.append(reinterpret_cast<const char*>(&swapped), 8);
}
inline std::uint16_t read_u16(const char* at) {
  std::uint16_t value;
  __builtin_memcpy(&value, at, 2);
  return __builtin_bswap16(value);
}
inline std::uint32_t read_u32(const char* at) {
  std::uint32_t value;
  __builtin_memcpy(&value, at, 4);
  return __builtin_bswap32(value);
}
inline std::uint64_t read_u64(const char* at) {
  std::uint64_t value;
  __builtin_memcpy(&value, at, 8);
  return __builtin_bswap64(value);
}

/// Names one version of a document inside its partition.
struct LogPosition {
  Lsn lsn;
  std::uint32_t index = 0;  ///< place in the transaction
  auto operator<=>(const LogPosition&) const = default;

  /// The least position above this one.
  LogPosition next() const {
    return index == UINT32_MAX ? LogPosition{orrery::next(lsn), 0} : LogPosition{lsn, index + 1};
  }
};

inline constexpr std::size_t kLogKeySize = 4 + 8 + 4;
inline constexpr std::size_t kRidKeySize = 4 + 8;

inline std::string partition_prefix(PartitionNumber partition) {
  std::string key;
  append_u32(key, partition.value);
  return key;
}
/// The first key after all of the partition's. Partition numbers stay below 2^32 - 1.
inline std::string partition_end(PartitionNumber partition) {
  return partition_prefix(PartitionNumber{partition.value + 1});
}

inline std::string log_key(PartitionNumber partition, LogPosition position) {
  std::string key;
  key.reserve(kLogKeySize);
  append_u32(key, partition.value);
  append_u64(key, position.lsn.value);
  append_u32(key, position.index);
  return key;
}
inline LogPosition log_position(std::string_view log_key) {
  return {Lsn{read_u64(log_key.data() + 4)}, read_u32(log_key.data() + 12)};
}

/// The same bytes in `history`, where the index counts the changes of a transaction: there may be
/// more of them than versions, since what has expired is purged by the write that meets it.
inline std::string history_key(PartitionNumber partition, LogPosition position) {
  return log_key(partition, position);
}

/// When a version is due, in `expiry`. A hint: it counts only while the version is in the log.
struct ExpiryEntry {
  enum class Kind : std::uint8_t {
    Default = 0,  ///< the container's default decides; the second is `_ts`, so that a new default
                  ///< moves no entry
    Own = 1,      ///< its own TTL decides; the second is when it is due
  };
  Kind kind = Kind::Default;
  UnixSeconds second = 0;
  LogPosition position;
  auto operator<=>(const ExpiryEntry&) const = default;
};

inline constexpr std::size_t kExpiryKeySize = 4 + 1 + 8 + 8 + 4;

inline std::string expiry_key(PartitionNumber partition, const ExpiryEntry& entry) {
  std::string key;
  key.reserve(kExpiryKeySize);
  append_u32(key, partition.value);
  key.push_back(static_cast<char>(entry.kind));
  append_u64(key, static_cast<std::uint64_t>(entry.second));
  append_u64(key, entry.position.lsn.value);
  append_u32(key, entry.position.index);
  return key;
}
inline ExpiryEntry expiry_entry(std::string_view expiry_key) {
  const char* at = expiry_key.data();
  return {static_cast<ExpiryEntry::Kind>(at[4]), static_cast<UnixSeconds>(read_u64(at + 5)),
          LogPosition{Lsn{read_u64(at + 13)}, read_u32(at + 21)}};
}

inline std::string rid_key(PartitionNumber partition, DocumentNumber number) {
  std::string key;
  key.reserve(kRidKeySize);
  append_u32(key, partition.value);
  append_u64(key, number.value);
  return key;
}
inline DocumentNumber document_number(std::string_view rid_key) {
  return DocumentNumber{read_u64(rid_key.data() + 4)};
}

// An entry of a secondary index. The term is the sort key of the value (json/sort_key.h), or of
// several of them: no term is the beginning of another one, so it needs no length.
inline constexpr std::size_t kTermPrefixSize = 4 + 4;
inline constexpr std::size_t kTermKeySizeMin = kTermPrefixSize + 8;

/// The prefix of all entries of one index.
inline std::string terms_prefix(PartitionNumber partition, std::uint32_t index) {
  std::string key;
  append_u32(key, partition.value);
  append_u32(key, index);
  return key;
}
/// The first key after all of the index's. Ids of indexes stay below 2^32 - 1.
inline std::string terms_end(PartitionNumber partition, std::uint32_t index) {
  return terms_prefix(partition, index + 1);
}
inline void append_term_key(std::string& out, PartitionNumber partition, std::uint32_t index,
                            std::string_view term, DocumentNumber number) {
  append_u32(out, partition.value);
  append_u32(out, index);
  out.append(term);
  append_u64(out, number.value);
}
/// The parts of a key in `terms`, which has kTermKeySizeMin bytes at least.
struct TermKey {
  std::uint32_t index;
  std::string_view term;
  DocumentNumber number;
};
inline TermKey parse_term_key(std::string_view key) {
  return {read_u32(key.data() + 4), key.substr(kTermPrefixSize, key.size() - kTermKeySizeMin),
          DocumentNumber{read_u64(key.data() + key.size() - 8)}};
}

}  // namespace orrery::storage

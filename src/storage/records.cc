#include "storage/records.h"

#include <cstring>

namespace orrery::storage {
namespace {

constexpr char kFormat = 1;
constexpr char kDocument = 1;
constexpr std::size_t kVersionHeaderSize = 32;
constexpr std::size_t kIdEntrySize = 44;
constexpr std::size_t kPositionSize = 13;
constexpr std::size_t kHeadSize = 49;

}  // namespace

std::optional<VersionRecord> VersionRecord::parse(std::string_view value) {
  if (value.size() < kVersionHeaderSize || value[0] != kFormat || value[1] != kDocument) return {};
  const char* at = value.data();
  const std::size_t epk_size = read_u16(at + 2);
  const std::size_t key_size = read_u16(at + 4);
  const std::size_t id_size = read_u16(at + 6);
  if (value.size() < kVersionHeaderSize + epk_size + key_size + id_size) return {};
  VersionRecord record;
  record.header.ts = static_cast<UnixSeconds>(read_u64(at + 8));
  record.header.own_ttl = static_cast<std::int32_t>(read_u32(at + 16));
  record.header.indexed_leaves = read_u32(at + 20);
  record.header.number = DocumentNumber{read_u64(at + 24)};
  std::string_view rest = value.substr(kVersionHeaderSize);
  const auto take = [&rest](std::size_t size) {
    const auto part = rest.substr(0, size);
    rest.remove_prefix(size);
    return part;
  };
  record.epk = take(epk_size);
  record.partition_key = take(key_size);
  record.id = take(id_size);
  record.text = rest;
  return record;
}

std::string VersionRecord::make(const VersionHeader& header, const DocumentKey& key,
                                std::string_view text) {
  std::string out;
  out.reserve(kVersionHeaderSize + key.epk.size() + key.partition_key.size() + key.id.size() +
              text.size());
  out.push_back(kFormat);
  out.push_back(kDocument);
  append_u16(out, static_cast<std::uint16_t>(key.epk.size()));
  append_u16(out, static_cast<std::uint16_t>(key.partition_key.size()));
  append_u16(out, static_cast<std::uint16_t>(key.id.size()));
  append_u64(out, static_cast<std::uint64_t>(header.ts));
  append_u32(out, static_cast<std::uint32_t>(header.own_ttl));
  append_u32(out, header.indexed_leaves);
  append_u64(out, header.number.value);
  out.append(key.epk).append(key.partition_key).append(key.id).append(text);
  return out;
}

std::optional<IdEntry> IdEntry::parse(std::string_view value) {
  if (value.size() != kIdEntrySize || value[0] != kFormat) return {};
  const char* at = value.data();
  IdEntry entry;
  entry.position = {Lsn{read_u64(at + 8)}, read_u32(at + 4)};
  entry.header.number = DocumentNumber{read_u64(at + 16)};
  entry.header.ts = static_cast<UnixSeconds>(read_u64(at + 24));
  entry.header.own_ttl = static_cast<std::int32_t>(read_u32(at + 32));
  entry.text_size = read_u32(at + 36);
  entry.header.indexed_leaves = read_u32(at + 40);
  return entry;
}

std::string IdEntry::make() const {
  std::string out;
  out.reserve(kIdEntrySize);
  out.push_back(kFormat);
  out.append(3, '\0');
  append_u32(out, position.index);
  append_u64(out, position.lsn.value);
  append_u64(out, header.number.value);
  append_u64(out, static_cast<std::uint64_t>(header.ts));
  append_u32(out, static_cast<std::uint32_t>(header.own_ttl));
  append_u32(out, text_size);
  append_u32(out, header.indexed_leaves);
  return out;
}

std::string make_position_value(LogPosition position) {
  std::string out;
  out.reserve(kPositionSize);
  out.push_back(kFormat);
  append_u64(out, position.lsn.value);
  append_u32(out, position.index);
  return out;
}

std::optional<LogPosition> parse_position_value(std::string_view value) {
  if (value.size() != kPositionSize || value[0] != kFormat) return {};
  return LogPosition{Lsn{read_u64(value.data() + 1)}, read_u32(value.data() + 9)};
}

std::optional<Head> Head::parse(std::string_view value) {
  if (value.size() != kHeadSize || value[0] != kFormat) return {};
  const char* at = value.data();
  Head head;
  head.lsn = Lsn{read_u64(at + 1)};
  head.ts = static_cast<UnixSeconds>(read_u64(at + 9));
  head.document_sequence = read_u64(at + 17);
  head.history_begin = Lsn{read_u64(at + 25)};
  head.documents = read_u64(at + 33);
  head.text_bytes = read_u64(at + 41);
  return head;
}

std::string Head::make() const {
  std::string out;
  out.reserve(kHeadSize);
  out.push_back(kFormat);
  append_u64(out, lsn.value);
  append_u64(out, static_cast<std::uint64_t>(ts));
  append_u64(out, document_sequence);
  append_u64(out, history_begin.value);
  append_u64(out, documents);
  append_u64(out, text_bytes);
  return out;
}

}  // namespace orrery::storage

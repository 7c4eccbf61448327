#include "storage/records.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"

namespace orrery::storage {
namespace {

constexpr char kRecordFormat = 1;
constexpr char kCreated = 1;  // Stores of the first version have this for all.
constexpr char kReplaced = 2;
constexpr std::size_t kVersionHeaderSize = 32;
constexpr std::size_t kIdEntrySize = 44;
constexpr std::size_t kPositionSize = 13;
constexpr std::size_t kHistoryHeaderSize = 36;
constexpr char kHeadFormat = 3;
constexpr char kHeadFormat4 = 4;  // With gaps. Only where there are some: older versions read 3.
constexpr char kHeadFormat2 = 2;  // Without indexes.
constexpr std::size_t kHeadFormat1Size = 49;
constexpr std::size_t kHeadFixedSize = 66;
constexpr std::size_t kIndexHeaderSize = 15;
constexpr std::size_t kGapSize = 16;

/// Requests with longer keys and ids are refused, so that their sizes fit into the records.
void check_sizes(std::string_view epk, std::string_view partition_key, std::string_view id) {
  ORRERY_ASSERT(epk.size() <= UINT16_MAX && partition_key.size() <= UINT16_MAX &&
                id.size() <= UINT16_MAX);
}

}  // namespace

std::optional<VersionRecord> VersionRecord::parse(std::string_view value) {
  if (value.size() < kVersionHeaderSize || value[0] != kRecordFormat) return {};
  if (value[1] != kCreated && value[1] != kReplaced) return {};
  const char* at = value.data();
  const std::size_t epk_size = read_u16(at + 2);
  const std::size_t key_size = read_u16(at + 4);
  const std::size_t id_size = read_u16(at + 6);
  if (value.size() < kVersionHeaderSize + epk_size + key_size + id_size) return {};
  VersionRecord record;
  record.header.replaces = value[1] == kReplaced;
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
  check_sizes(key.epk, key.partition_key, key.id);
  std::string out;
  out.reserve(kVersionHeaderSize + key.epk.size() + key.partition_key.size() + key.id.size() +
              text.size());
  out.push_back(kRecordFormat);
  out.push_back(header.replaces ? kReplaced : kCreated);
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
  if (value.size() != kIdEntrySize || value[0] != kRecordFormat) return {};
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
  out.push_back(kRecordFormat);
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
  out.push_back(kRecordFormat);
  append_u64(out, position.lsn.value);
  append_u32(out, position.index);
  return out;
}

std::optional<LogPosition> parse_position_value(std::string_view value) {
  if (value.size() != kPositionSize || value[0] != kRecordFormat) return {};
  return LogPosition{Lsn{read_u64(value.data() + 1)}, read_u32(value.data() + 9)};
}

std::optional<ExpiryEntry> expiry_of(LogPosition position, const VersionHeader& header) {
  if (header.own_ttl == kTtlNever) return {};
  if (header.own_ttl == kTtlAbsent) {
    return ExpiryEntry{ExpiryEntry::Kind::Default, header.ts, position};
  }
  return ExpiryEntry{ExpiryEntry::Kind::Own, header.ts + header.own_ttl, position};
}

std::optional<HistoryRecord> HistoryRecord::parse(std::string_view value) {
  if (value.size() < kHistoryHeaderSize || value[0] != kRecordFormat) return {};
  const char* at = value.data();
  if (at[1] < 1 || at[1] > 4) return {};
  const std::size_t epk_size = read_u16(at + 2);
  const std::size_t key_size = read_u16(at + 4);
  const std::size_t id_size = read_u16(at + 6);
  const std::size_t current_size = read_u32(at + 32);
  if (value.size() < kHistoryHeaderSize + epk_size + key_size + id_size + current_size) return {};
  HistoryRecord record;
  record.operation = static_cast<Operation>(at[1]);
  record.ts = static_cast<UnixSeconds>(read_u64(at + 8));
  record.previous = Lsn{read_u64(at + 16)};
  record.number = DocumentNumber{read_u64(at + 24)};
  std::string_view rest = value.substr(kHistoryHeaderSize);
  const auto take = [&rest](std::size_t size) {
    const auto part = rest.substr(0, size);
    rest.remove_prefix(size);
    return part;
  };
  record.epk = take(epk_size);
  record.partition_key = take(key_size);
  record.id = take(id_size);
  record.current_text = take(current_size);
  record.previous_text = rest;
  return record;
}

std::string HistoryRecord::make() const {
  check_sizes(epk, partition_key, id);
  std::string out;
  out.reserve(kHistoryHeaderSize + epk.size() + partition_key.size() + id.size() +
              current_text.size() + previous_text.size());
  out.push_back(kRecordFormat);
  out.push_back(static_cast<char>(operation));
  append_u16(out, static_cast<std::uint16_t>(epk.size()));
  append_u16(out, static_cast<std::uint16_t>(partition_key.size()));
  append_u16(out, static_cast<std::uint16_t>(id.size()));
  append_u64(out, static_cast<std::uint64_t>(ts));
  append_u64(out, previous.value);
  append_u64(out, number.value);
  append_u32(out, static_cast<std::uint32_t>(current_text.size()));
  out.append(epk).append(partition_key).append(id).append(current_text).append(previous_text);
  return out;
}

const HistoryPart* find_part(const HistoryParts& parts, std::string_view epk) {
  if (!parts) return nullptr;
  const HistoryPart* found = nullptr;
  for (const HistoryPart& part : *parts) {
    if (part.epk_min > epk) break;
    found = &part;
  }
  return found;
}

const IndexRecord* find_index(const IndexRecords& indexes, std::string_view spec) {
  if (!indexes) return nullptr;
  const auto found = std::ranges::find(*indexes, spec, &IndexRecord::spec);
  return found != indexes->end() ? &*found : nullptr;
}

const IndexRecord* find_index(const IndexRecords& indexes, std::uint32_t id) {
  if (!indexes) return nullptr;
  const auto found = std::ranges::find(*indexes, id, &IndexRecord::id);
  return found != indexes->end() ? &*found : nullptr;
}

namespace {

std::optional<Head> parse_head_format_1(std::string_view value) {
  if (value.size() != kHeadFormat1Size) return {};
  const char* at = value.data();
  Head head;
  head.lsn = Lsn{read_u64(at + 1)};
  head.ts = static_cast<UnixSeconds>(read_u64(at + 9));
  head.document_sequence = read_u64(at + 17);
  head.documents = read_u64(at + 33);
  head.text_bytes = read_u64(at + 41);
  head.is_reordered = true;
  return head;
}

/// Takes them from the front of `rest`.
bool parse_history_parts(std::string_view& rest, std::size_t count, Head& head) {
  if (count == 0) return true;
  auto history = std::make_shared<std::vector<HistoryPart>>(count);
  for (HistoryPart& part : *history) {
    if (rest.size() < 2) return false;
    const std::size_t epk_size = read_u16(rest.data());
    if (rest.size() < 2 + epk_size + 16) return false;
    part.epk_min = rest.substr(2, epk_size);
    rest.remove_prefix(2 + epk_size);
    part.all_begin = Lsn{read_u64(rest.data())};
    part.tombstones_begin = Lsn{read_u64(rest.data() + 8)};
    rest.remove_prefix(16);
  }
  head.history = std::move(history);
  return true;
}

/// Likewise, with what is before them.
bool parse_indexes(std::string_view& rest, Head& head) {
  if (rest.size() < 6) return false;
  head.last_index_id = read_u32(rest.data());
  const std::size_t count = read_u16(rest.data() + 4);
  rest.remove_prefix(6);
  if (count == 0) return true;
  if (count > kIndexesMax) return false;
  auto indexes = std::make_shared<std::vector<IndexRecord>>(count);
  for (IndexRecord& index : *indexes) {
    if (rest.size() < kIndexHeaderSize) return false;
    if (rest[4] < 0 || rest[4] > 1) return false;
    index.id = read_u32(rest.data());
    index.state = static_cast<IndexRecord::State>(rest[4]);
    index.built_up_to = DocumentNumber{read_u64(rest.data() + 5)};
    const std::size_t spec_size = read_u16(rest.data() + 13);
    if (rest.size() < kIndexHeaderSize + spec_size) return false;
    index.spec = rest.substr(kIndexHeaderSize, spec_size);
    rest.remove_prefix(kIndexHeaderSize + spec_size);
  }
  head.indexes = std::move(indexes);
  return true;
}

/// Likewise, with their number.
bool parse_gaps(std::string_view& rest, Head& head) {
  if (rest.size() < 2) return false;
  const std::size_t count = read_u16(rest.data());
  rest.remove_prefix(2);
  if (count == 0 || count > kLsnGapsMax || rest.size() < count * kGapSize) return false;
  auto gaps = std::make_shared<std::vector<LsnGap>>(count);
  for (LsnGap& gap : *gaps) {
    gap = {Lsn{read_u64(rest.data())}, Lsn{read_u64(rest.data() + 8)}};
    rest.remove_prefix(kGapSize);
  }
  head.gaps = std::move(gaps);
  return true;
}

/// Shared ones that are the same, or say the same.
template <typename T>
bool same(const std::shared_ptr<const T>& a, const std::shared_ptr<const T>& b) {
  return a == b || (a && b && *a == *b);
}

}  // namespace

std::optional<Head> Head::parse(std::string_view value) {
  if (!value.empty() && value[0] == kRecordFormat) return parse_head_format_1(value);
  if (value.size() < kHeadFixedSize) return {};
  const bool has_gaps = value[0] == kHeadFormat4;
  const bool has_indexes = has_gaps || value[0] == kHeadFormat;
  if (!has_indexes && value[0] != kHeadFormat2) return {};
  const char* at = value.data();
  if (at[41] < 0 || at[41] > 2 || at[42] < 0 || at[42] > 2 || at[43] < 0 || at[43] > 2) return {};
  Head head;
  head.lsn = Lsn{read_u64(at + 1)};
  head.ts = static_cast<UnixSeconds>(read_u64(at + 9));
  head.document_sequence = read_u64(at + 17);
  head.documents = read_u64(at + 25);
  head.text_bytes = read_u64(at + 33);
  head.retention.history = static_cast<RetentionSettings::History>(at[41]);
  head.retention.previous_image = static_cast<RetentionSettings::PreviousImage>(at[42]);
  head.retention.expiry = static_cast<RetentionSettings::Expiry>(at[43]);
  head.history_bytes = read_u64(at + 44);
  head.merged_at = Lsn{read_u64(at + 52)};
  head.index_bound = read_u32(at + 60);
  std::string_view rest = value.substr(kHeadFixedSize);
  if (!parse_history_parts(rest, read_u16(at + 64), head)) return {};
  head.is_reordered = true;  // Older formats did not know.
  if (has_indexes) {
    if (rest.empty() || (rest.front() != 0 && rest.front() != 1)) return {};
    head.is_reordered = rest.front() == 1;
    rest.remove_prefix(1);
    if (!parse_indexes(rest, head)) return {};
  }
  if (has_gaps && !parse_gaps(rest, head)) return {};
  if (!rest.empty()) return {};
  return head;
}

std::string Head::make() const {
  // A head is a part of every commit: what it carries is bounded, and parse() takes no more.
  ORRERY_ASSERT(!history || history->size() <= UINT16_MAX);
  ORRERY_ASSERT(!indexes || indexes->size() <= kIndexesMax);
  ORRERY_ASSERT(!gaps || gaps->size() <= kLsnGapsMax);
  std::string out;
  // Most EPKs and specs are short.
  out.reserve(kHeadFixedSize + 7 + (history ? history->size() * 34 : 0) +
              (indexes ? indexes->size() * (kIndexHeaderSize + 24) : 0) +
              (gaps ? 2 + gaps->size() * kGapSize : 0));
  out.push_back(gaps ? kHeadFormat4 : kHeadFormat);
  append_u64(out, lsn.value);
  append_u64(out, static_cast<std::uint64_t>(ts));
  append_u64(out, document_sequence);
  append_u64(out, documents);
  append_u64(out, text_bytes);
  out.push_back(static_cast<char>(retention.history));
  out.push_back(static_cast<char>(retention.previous_image));
  out.push_back(static_cast<char>(retention.expiry));
  append_u64(out, history_bytes);
  append_u64(out, merged_at.value);
  append_u32(out, index_bound);
  append_u16(out, static_cast<std::uint16_t>(history ? history->size() : 0));
  if (history) {
    for (const HistoryPart& part : *history) {
      append_u16(out, static_cast<std::uint16_t>(part.epk_min.size()));
      out.append(part.epk_min);
      append_u64(out, part.all_begin.value);
      append_u64(out, part.tombstones_begin.value);
    }
  }
  out.push_back(is_reordered ? 1 : 0);
  append_u32(out, last_index_id);
  append_u16(out, static_cast<std::uint16_t>(indexes ? indexes->size() : 0));
  if (indexes) {
    for (const IndexRecord& index : *indexes) {
      append_u32(out, index.id);
      out.push_back(static_cast<char>(index.state));
      append_u64(out, index.built_up_to.value);
      append_u16(out, static_cast<std::uint16_t>(index.spec.size()));
      out.append(index.spec);
    }
  }
  if (gaps) {
    append_u16(out, static_cast<std::uint16_t>(gaps->size()));
    for (const LsnGap& gap : *gaps) {
      append_u64(out, gap.ended.value);
      append_u64(out, gap.resumed.value);
    }
  }
  return out;
}

std::uint64_t Head::lsns_above(Lsn position) const {
  if (position >= lsn) return 0;
  std::uint64_t count = lsn.value - position.value;
  if (!gaps) return count;
  for (const LsnGap& gap : *gaps) {
    // One that is above belongs to a head that was cut back.
    if (gap.resumed <= position || gap.resumed > lsn) continue;
    count -= gap.resumed.value - std::max(gap.ended, position).value;
  }
  return count;
}

Lsn Head::advanced(Lsn position, std::uint64_t count) const {
  Lsn reached{position.value + count};
  if (!gaps) return reached;
  for (const LsnGap& gap : *gaps) {
    if (gap.resumed <= position) continue;
    if (reached <= gap.ended) break;
    reached.value += gap.resumed.value - std::max(gap.ended, position).value;
  }
  return reached;
}

const LsnGap* Head::gap_around(Lsn position) const {
  if (!gaps) return nullptr;
  const auto found = std::ranges::find_if(*gaps, [position](const LsnGap& gap) {
    return gap.ended < position && position < gap.resumed;
  });
  return found != gaps->end() ? &*found : nullptr;
}

void Head::resume_at(Lsn resumed) {
  // A new life begins above all LSNs of those before it.
  ORRERY_ASSERT(resumed >= lsn);
  std::vector<LsnGap> all;
  if (gaps) all = *gaps;
  all.push_back({lsn, resumed});
  if (all.size() > kLsnGapsMax) {
    all[1].ended = all[0].ended;
    all.erase(all.begin());
  }
  gaps = std::make_shared<const std::vector<LsnGap>>(std::move(all));
  lsn = resumed;
}

bool Head::operator==(const Head& other) const {
  return same(history, other.history) && same(indexes, other.indexes) && same(gaps, other.gaps) &&
         last_index_id == other.last_index_id && lsn == other.lsn && ts == other.ts &&
         document_sequence == other.document_sequence && documents == other.documents &&
         text_bytes == other.text_bytes && retention == other.retention &&
         history_bytes == other.history_bytes && merged_at == other.merged_at &&
         index_bound == other.index_bound && is_reordered == other.is_reordered;
}

}  // namespace orrery::storage

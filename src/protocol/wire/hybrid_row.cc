#include "protocol/wire/hybrid_row.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>

#include "protocol/utf8.h"

namespace orrery {
namespace {

static_assert(std::endian::native == std::endian::little, "integers are copied as they are");

constexpr char kRowVersion = '\x81';
constexpr std::int32_t kSegmentSchema = 2147473648;
constexpr std::int32_t kRecordSchema = 2147473649;
constexpr std::int32_t kOperationSchema = 2145473648;
constexpr std::int32_t kResultSchema = 2145473649;
constexpr std::size_t kSegmentSize = 10;
constexpr std::size_t kRecordSize = 13;
constexpr std::int32_t kDocumentResource = 2;

// Columns of an operation, by token: 1 operationType and 2 resourceType are fixed, 3 partitionKey,
// 4 effectivePartitionKey, 5 id, 6 binaryId and 7 resourceBody variable, the rest sparse. A
// column's presence bit is its token less one.
enum OperationToken : std::uint32_t {
  kOperationType = 1,
  kResourceType = 2,
  kPartitionKey = 3,
  kEffectivePartitionKey = 4,
  kId = 5,
  kBinaryId = 6,
  kResourceBody = 7,
  kIndexingDirective = 8,
  kIfMatch = 9,
  kIfNoneMatch = 10,
  kTimeToLive = 11,
  kMinimalReturn = 12,
};

// Columns of a result: 1 statusCode and 2 subStatusCode are fixed, 3 eTag and 4 resourceBody
// variable, 5 retryAfterMilliseconds and 6 requestCharge sparse.
constexpr std::uint32_t kRetryAfterToken = 5;
constexpr std::uint32_t kRequestChargeToken = 6;

enum TypeCode : std::uint8_t {
  kFalse = 2,
  kTrue = 3,
  kInt32 = 7,
  kUInt32 = 11,
  kFloat64 = 16,
  kUtf8 = 20,
  kBinary = 21,
};

/// tables[0] is the usual one; tables[n] moves a byte's remainder n bytes further, so that eight
/// bytes are taken at a time.
constexpr auto kCrcTables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) * 0xEDB88320u);
    tables[0][byte] = value;
  }
  for (std::size_t table = 1; table < 8; ++table) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[table - 1][byte];
      tables[table][byte] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}();

/// Reads forward through a stream and never beyond `end`. Places in messages count from the start
/// of the body.
class Reader {
 public:
  Reader(std::string_view body, std::size_t at, std::size_t end)
      : body_(body), at_(at), end_(end) {}

  std::size_t at() const { return at_; }
  bool at_end() const { return at_ == end_; }
  std::size_t left() const { return end_ - at_; }

  template <typename T>
  Result<T> fixed(std::string_view what) {
    if (left() < sizeof(T)) return ends_within(what);
    T value;
    std::memcpy(&value, body_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  Result<std::uint32_t> varuint(std::string_view what) {
    // Five bytes hold every length and token there is.
    std::uint64_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      ORRERY_TRY(const auto byte, fixed<std::uint8_t>(what));
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if ((byte & 0x80) == 0) {
        if (value > UINT32_MAX) break;
        return static_cast<std::uint32_t>(value);
      }
    }
    return bad(fmt::format("{} is not a varuint of 32 bits", what));
  }

  Result<std::string_view> bytes(std::string_view what) {
    ORRERY_TRY(const auto size, varuint(what));
    return take(size, what);
  }

  Result<std::string> text(std::string_view what) {
    ORRERY_TRY(const auto taken, bytes(what));
    if (!is_valid_utf8(taken)) return bad(fmt::format("{} is not valid UTF-8", what));
    return std::string(taken);
  }

  Result<std::string_view> take(std::size_t size, std::string_view what) {
    if (size > left()) {
      return bad(fmt::format("{} claims {} bytes where {} are left", what, size, left()));
    }
    const auto taken = body_.substr(at_, size);
    at_ += size;
    return taken;
  }

  /// The version byte and the schema that every row begins with.
  Result<std::int32_t> row_header(std::string_view what) {
    ORRERY_TRY(const auto version, fixed<char>(what));
    if (version != kRowVersion) {
      --at_;
      return bad(fmt::format("{} begins with {:#04x} and not with 0x81", what,
                             static_cast<unsigned char>(version)));
    }
    return fixed<std::int32_t>(what);
  }

  Error bad(std::string_view what) const {
    return Error(ErrorCode::BadRequest,
                 fmt::format("The binary batch request is malformed at byte {}: {}.", at_, what));
  }

 private:
  Error ends_within(std::string_view what) const {
    return bad(fmt::format("it ends within {}", what));
  }

  std::string_view body_;
  std::size_t at_;
  std::size_t end_;
};

Result<> skip_rest_of_segment(Reader& reader) {
  ORRERY_TRY(const auto presence, reader.fixed<std::uint8_t>("the segment header"));
  ORRERY_TRY(const auto length, reader.fixed<std::int32_t>("the segment header"));
  if ((presence & 1) == 0 || length < static_cast<std::int32_t>(kSegmentSize)) {
    return reader.bad("the segment header has no valid length");
  }
  ORRERY_TRY(reader.take(static_cast<std::size_t>(length) - kSegmentSize, "the segment header"));
  return {};
}

Result<BatchOperationType> operation_type(const Reader& reader, std::int32_t number) {
  switch (const auto type = static_cast<BatchOperationType>(number)) {
    case BatchOperationType::Create:
    case BatchOperationType::Patch:
    case BatchOperationType::Read:
    case BatchOperationType::Delete:
    case BatchOperationType::Replace:
    case BatchOperationType::Upsert:
      return type;
  }
  return reader.bad(
      fmt::format("the operation type {} is none of Create (0), Patch (1), Read (2), Delete (4), "
                  "Replace (5) and Upsert (20)",
                  number));
}

Result<> read_sparse_column(Reader& reader, BatchOperation& operation) {
  ORRERY_TRY(const auto type, reader.fixed<std::uint8_t>("a sparse column"));
  ORRERY_TRY(const auto token, reader.varuint("a sparse column's token"));
  const auto has_type = [&](bool right) -> Result<> {
    if (right) return {};
    return reader.bad(fmt::format("the column with token {} has the wrong type {}", token, type));
  };
  const auto read_text = [&](std::string& into) -> Result<> {
    ORRERY_TRY(has_type(type == kUtf8));
    ORRERY_TRY(into, reader.text("a sparse column's text"));
    return {};
  };
  switch (token) {
    case kIndexingDirective:
      return read_text(operation.indexing_directive);
    case kIfMatch:
      return read_text(operation.if_match);
    case kIfNoneMatch:
      return read_text(operation.if_none_match);
    case kTimeToLive: {  // Internal to the service: it has no meaning here.
      ORRERY_TRY(has_type(type == kInt32));
      ORRERY_TRY(reader.fixed<std::int32_t>("timeToLiveInSeconds"));
      return {};
    }
    case kMinimalReturn:
      ORRERY_TRY(has_type(type == kFalse || type == kTrue));
      operation.minimal_return = type == kTrue;
      return {};
    default:
      return reader.bad(fmt::format("an operation has no sparse column with token {}", token));
  }
}

Result<BatchOperation> read_operation(Reader reader) {
  ORRERY_TRY(const auto schema, reader.row_header("an operation"));
  if (schema != kOperationSchema) {
    return reader.bad(fmt::format("a record has schema {} where a batch operation's is {}", schema,
                                  kOperationSchema));
  }
  ORRERY_TRY(const auto presence, reader.fixed<std::uint8_t>("an operation"));
  const auto has = [presence](OperationToken token) {
    return ((presence >> (token - 1)) & 1) != 0;
  };
  ORRERY_TRY(const auto type, reader.fixed<std::int32_t>("operationType"));
  ORRERY_TRY(const auto resource, reader.fixed<std::int32_t>("resourceType"));
  if (!has(kOperationType)) return reader.bad("an operation lacks its operationType");
  if (has(kResourceType) && resource != kDocumentResource) {
    return reader.bad(fmt::format("the resourceType {} is not that of documents, {}", resource,
                                  kDocumentResource));
  }
  BatchOperation operation;
  ORRERY_TRY(operation.type, operation_type(reader, type));
  if (has(kPartitionKey)) {
    ORRERY_TRY(operation.partition_key, reader.text("partitionKey"));
  }
  if (has(kEffectivePartitionKey)) ORRERY_TRY(reader.bytes("effectivePartitionKey"));
  if (has(kId)) {
    ORRERY_TRY(operation.id, reader.text("id"));
  }
  if (has(kBinaryId)) ORRERY_TRY(reader.bytes("binaryId"));
  if (has(kResourceBody)) {
    ORRERY_TRY(operation.resource_body, reader.bytes("resourceBody"));
  }
  while (!reader.at_end()) ORRERY_TRY(read_sparse_column(reader, operation));
  return operation;
}

template <typename T>
void append_fixed(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void append_varuint(std::string& out, std::size_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void append_bytes(std::string& out, std::string_view bytes) {
  append_varuint(out, bytes.size());
  out.append(bytes);
}

void append_row_header(std::string& out, std::int32_t schema) {
  out.push_back(kRowVersion);
  append_fixed(out, schema);
}

void append_result(std::string& out, const BatchResult& result) {
  append_row_header(out, kResultSchema);
  const std::string_view body = result.message.empty() ? result.resource_body : result.message;
  const unsigned presence =
      0b0011u | (result.etag.empty() ? 0u : 0b0100u) | (body.empty() ? 0u : 0b1000u);
  out.push_back(static_cast<char>(presence));
  append_fixed(out, static_cast<std::int32_t>(result.status));
  append_fixed(out, static_cast<std::int32_t>(result.substatus));
  if (!result.etag.empty()) append_bytes(out, result.etag);
  if (!body.empty()) append_bytes(out, body);
  if (result.retry_after_ms != 0) {
    out.push_back(static_cast<char>(kUInt32));
    append_varuint(out, kRetryAfterToken);
    append_fixed(out, result.retry_after_ms);
  }
  out.push_back(static_cast<char>(kFloat64));
  append_varuint(out, kRequestChargeToken);
  append_fixed(out, static_cast<double>(result.charge_hundredths) / 100.0);
}

}  // namespace

bool is_hybrid_row(std::string_view body) { return !body.empty() && body.front() == kRowVersion; }

Result<std::vector<BatchOperation>> read_hybrid_row_batch(std::string_view body) {
  Reader reader(body, 0, body.size());
  ORRERY_TRY(const auto first, reader.row_header("the segment header"));
  if (first != kSegmentSchema) {
    return reader.bad(fmt::format("it begins with schema {} and not with a segment header, {}",
                                  first, kSegmentSchema));
  }
  ORRERY_TRY(skip_rest_of_segment(reader));

  std::vector<BatchOperation> operations;
  while (!reader.at_end()) {
    ORRERY_TRY(const auto schema, reader.row_header("a record header"));
    if (schema == kSegmentSchema) {
      ORRERY_TRY(skip_rest_of_segment(reader));
      continue;
    }
    if (schema != kRecordSchema) {
      return reader.bad(fmt::format("schema {} is that of neither a segment nor a record", schema));
    }
    ORRERY_TRY(const auto length, reader.fixed<std::int32_t>("a record header"));
    ORRERY_TRY(const auto checksum, reader.fixed<std::uint32_t>("a record header"));
    if (length < 0) return reader.bad(fmt::format("a record claims {} bytes", length));
    const std::size_t begin = reader.at();
    ORRERY_TRY(const auto row, reader.take(static_cast<std::size_t>(length), "a record"));
    if (operations.size() == kBatchOperationsMax)
      return check_batch_size(operations.size() + 1).error();
    if (const auto actual = crc32(row); actual != checksum) {
      return reader.bad(
          fmt::format("the record that ends there has the CRC-32 {:08x}, its header says {:08x}",
                      actual, checksum));
    }
    ORRERY_TRY(auto operation, read_operation(Reader(body, begin, begin + row.size())));
    operations.push_back(std::move(operation));
  }
  ORRERY_TRY(check_batch_size(operations.size()));
  return operations;
}

std::string write_hybrid_row_batch(std::span<const BatchResult> results) {
  std::string out;
  append_row_header(out, kSegmentSchema);
  out.push_back('\x01');
  append_fixed(out, static_cast<std::int32_t>(kSegmentSize));
  for (const BatchResult& result : results) {
    append_row_header(out, kRecordSchema);
    const std::size_t length_at = out.size();
    out.append(kRecordSize - 5, '\0');
    const std::size_t row_at = out.size();
    append_result(out, result);
    const auto row = std::string_view(out).substr(row_at);
    const auto length = static_cast<std::int32_t>(row.size());
    const std::uint32_t checksum = crc32(row);
    std::memcpy(out.data() + length_at, &length, sizeof length);
    std::memcpy(out.data() + length_at + sizeof length, &checksum, sizeof checksum);
  }
  return out;
}

std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t remainder = 0xFFFFFFFFu;
  std::size_t at = 0;
  for (; bytes.size() - at >= 8; at += 8) {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    std::memcpy(&low, bytes.data() + at, 4);
    std::memcpy(&high, bytes.data() + at + 4, 4);
    low ^= remainder;
    remainder = kCrcTables[7][low & 0xFF] ^ kCrcTables[6][(low >> 8) & 0xFF] ^
                kCrcTables[5][(low >> 16) & 0xFF] ^ kCrcTables[4][low >> 24] ^
                kCrcTables[3][high & 0xFF] ^ kCrcTables[2][(high >> 8) & 0xFF] ^
                kCrcTables[1][(high >> 16) & 0xFF] ^ kCrcTables[0][high >> 24];
  }
  for (; at < bytes.size(); ++at) {
    remainder = (remainder >> 8) ^
                kCrcTables[0][(remainder ^ static_cast<unsigned char>(bytes[at])) & 0xFF];
  }
  return ~remainder;
}

}  // namespace orrery

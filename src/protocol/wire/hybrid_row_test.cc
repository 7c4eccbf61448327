#include "protocol/wire/hybrid_row.h"

#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string from_hex(std::string_view hex) {
  std::string bytes;
  int digits = 0;
  unsigned value = 0;
  for (const char c : hex) {
    if (c == ' ') continue;
    value = value * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    if (++digits % 2 == 0) {
      bytes.push_back(static_cast<char>(value));
      value = 0;
    }
  }
  return bytes;
}

template <typename T>
std::string little_endian(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

const std::string kSegment = from_hex("81 f0 d8 ff 7f 01 0a 00 00 00");
const std::string kOperation = from_hex("81 70 54 e1 7f");

std::string record(const std::string& row) {
  return from_hex("81 f1 d8 ff 7f") + little_endian(static_cast<std::int32_t>(row.size())) +
         little_endian(crc32(row)) + row;
}
/// An operation row: presence, type, document, and what follows the fixed columns.
std::string operation(std::uint8_t presence, std::int32_t type, const std::string& rest) {
  return kOperation + little_endian(presence) + little_endian(type) + little_endian(2) + rest;
}

std::string row_refusal(const std::string& body) {
  const auto read = read_hybrid_row_batch(body);
  EXPECT_FALSE(read);
  if (read) return {};
  EXPECT_EQ(read.error().code(), ErrorCode::BadRequest);
  return read.error().message();
}

// ── published vectors ────────────────────────────────────────────────────────────────────────────

const std::string kDeleteX = from_hex(
    "81 f1 d8 ff 7f 10 00 00 00 a7 fa f6 37 "
    "81 70 54 e1 7f 13 04 00 00 00 02 00 00 00 01 78");

TEST(HybridRow, CrcIsThatOfZip) {
  EXPECT_EQ(crc32(""), 0u);
  EXPECT_EQ(crc32("123456789"), 0xCBF43926u);
  EXPECT_EQ(crc32(from_hex("81 70 54 E1 7F 13 04 00 00 00 02 00 00 00 02 61 31")), 0x521F3847u);
}

TEST(HybridRow, APublishedOperationIsRead) {
  const auto read = read_hybrid_row_batch(kSegment + kDeleteX);
  ASSERT_TRUE(read) << read.error().message();
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ(read->front().type, BatchOperationType::Delete);
  EXPECT_EQ(read->front().id, "x");
  EXPECT_EQ(read->front().partition_key, std::nullopt);
  EXPECT_EQ(read->front().resource_body, std::nullopt);
}

TEST(HybridRow, PublishedResultsAreWrittenByteForByte) {
  BatchResult deleted;
  deleted.status = 204;
  deleted.charge_hundredths = 629;
  EXPECT_EQ(write_hybrid_row_batch({&deleted, 1}),
            kSegment + from_hex("81 f1 d8 ff 7f 18 00 00 00 bb eb ce 5b "
                                "81 71 54 e1 7f 03 cc 00 00 00 00 00 00 00 "
                                "10 06 29 5c 8f c2 f5 28 19 40"));
  BatchResult created;
  created.status = 201;
  created.etag = "\"e1\"";
  created.resource_body = R"({"id":"x"})";
  created.charge_hundredths = 571;
  EXPECT_EQ(write_hybrid_row_batch({&created, 1}),
            kSegment + from_hex("81 f1 d8 ff 7f 28 00 00 00 c5 fc 87 9a "
                                "81 71 54 e1 7f 0f c9 00 00 00 00 00 00 00 04 22 65 31 22 "
                                "0a 7b 22 69 64 22 3a 22 78 22 7d 10 06 d7 a3 70 3d 0a d7 16 40"));
}

// ── operations ───────────────────────────────────────────────────────────────────────────────────

TEST(HybridRow, AllColumnsOfAnOperationAreRead) {
  const std::string row = operation(
      0b1111111, 5,
      "\x05[\"a\"]" + from_hex("02 aa bb") + "\x02i1" + from_hex("01 cc") + "\x0b{\"id\":\"i1\"}" +
          from_hex("14 08") + "\x07" + "Exclude" + from_hex("14 09") + "\x04\"m\"!" +
          from_hex("14 0a") + "\x03\"n\"" + from_hex("07 0b 05 00 00 00") + from_hex("03 0c"));
  const std::string body = kSegment + record(row);  // The result refers to it.
  const auto read = read_hybrid_row_batch(body);
  ASSERT_TRUE(read) << read.error().message();
  const BatchOperation& got = read->front();
  EXPECT_EQ(got.type, BatchOperationType::Replace);
  EXPECT_EQ(got.partition_key, R"(["a"])");
  EXPECT_EQ(got.id, "i1");
  EXPECT_EQ(got.resource_body, R"({"id":"i1"})");
  EXPECT_EQ(got.indexing_directive, "Exclude");
  EXPECT_EQ(got.if_match, "\"m\"!");
  EXPECT_EQ(got.if_none_match, "\"n\"");
  EXPECT_TRUE(got.minimal_return);
}

TEST(HybridRow, SeveralOperationsKeepTheirOrderAndTypes) {
  std::string body = kSegment;
  const std::vector<std::int32_t> types = {0, 1, 2, 4, 5, 20};
  for (const auto type : types) body += record(operation(0b11, type, ""));
  const auto read = read_hybrid_row_batch(body);
  ASSERT_TRUE(read) << read.error().message();
  ASSERT_EQ(read->size(), types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    EXPECT_EQ(static_cast<std::int32_t>((*read)[i].type), types[i]);
  }
}

TEST(HybridRow, ALongerSegmentHeaderAndOneBetweenRecordsAreSkipped) {
  const std::string longer = from_hex("81 f0 d8 ff 7f 01 0d 00 00 00 14 02 00");
  const auto read = read_hybrid_row_batch(longer + kDeleteX + longer + kDeleteX);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->size(), 2u);
}

TEST(HybridRow, LongBodiesHaveLengthsOfSeveralBytes) {
  const std::string document(300'000, 'x');
  std::string length;
  for (std::size_t left = document.size(); left > 0; left >>= 7) {
    length.push_back(static_cast<char>((left & 0x7F) | (left > 0x7F ? 0x80 : 0)));
  }
  const std::string body = kSegment + record(operation(0b1000011, 0, length + document));
  const auto read = read_hybrid_row_batch(body);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->front().resource_body, document);
  EXPECT_EQ(read->front().resource_body->data(), body.data() + body.size() - document.size())
      << "not copied";
}

// ── hostile input ────────────────────────────────────────────────────────────────────────────────

TEST(HybridRow, AStreamThatEndsAnywhereWithinARecordIsRefused) {
  const std::string whole = kSegment + kDeleteX;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string message = row_refusal(whole.substr(0, size));
    if (size == kSegment.size()) {
      EXPECT_EQ(message, "Batch request has no operations.");
    } else {
      EXPECT_THAT(message, StartsWith("The binary batch request is malformed at byte "));
    }
  }
}

TEST(HybridRow, ARowThatEndsEarlyIsRefusedAlsoWithARightChecksum) {
  const std::string row = operation(0b1010111, 0, "\x03[1]\x01i\x02{}" + from_hex("14 09 01 22"));
  ASSERT_TRUE(read_hybrid_row_batch(kSegment + record(row)));
  for (std::size_t size = 0; size < row.size(); ++size) {
    const auto read = read_hybrid_row_batch(kSegment + record(row.substr(0, size)));
    // Where the sparse columns begin a row may end.
    EXPECT_EQ(read.has_value(), size == row.size() - 4) << size;
  }
}

TEST(HybridRow, AWrongChecksumIsRefused) {
  std::string body = kSegment + kDeleteX;
  body.back() = 'y';
  EXPECT_THAT(row_refusal(body), HasSubstr("CRC-32"));
}

TEST(HybridRow, LengthsBeyondTheBodyAreRefused) {
  const auto header = from_hex("81 f1 d8 ff 7f");
  for (const std::int32_t length : {17, 1'000'000, INT32_MAX, -1, INT32_MIN}) {
    EXPECT_THAT(row_refusal(kSegment + header + little_endian(length) + kDeleteX.substr(9)),
                HasSubstr("claims"));
  }
  for (const std::int32_t length : {-1, 0, 9, INT32_MIN}) {
    EXPECT_THAT(row_refusal(kSegment.substr(0, 6) + little_endian(length) + kDeleteX),
                HasSubstr("no valid length"));
  }
  EXPECT_THAT(row_refusal(kSegment.substr(0, 6) + little_endian(INT32_MAX) + kDeleteX),
              HasSubstr("claims"));
  EXPECT_THAT(row_refusal(kSegment.substr(0, 5) + '\0' + kSegment.substr(6) + kDeleteX),
              HasSubstr("no valid length"));
  for (const auto* varuint : {"ff ff ff ff 0f", "80 80 80 80 01"}) {
    EXPECT_THAT(row_refusal(kSegment + record(operation(0b10011, 4, from_hex(varuint)))),
                HasSubstr("id claims"));
  }
  for (const auto* varuint :
       {"ff ff ff ff 1f", "80 80 80 80 80 01", "ff ff ff ff ff ff ff ff ff 01"}) {
    EXPECT_THAT(row_refusal(kSegment + record(operation(0b10011, 4, from_hex(varuint)))),
                HasSubstr("not a varuint"));
  }
}

TEST(HybridRow, OtherSchemasTypesAndTokensAreRefused) {
  EXPECT_THAT(row_refusal(kDeleteX), HasSubstr("segment header"));
  EXPECT_THAT(row_refusal(kSegment + "[]"), HasSubstr("0x5b"));
  EXPECT_THAT(row_refusal(kSegment + from_hex("81 70 54 e1 7f")), HasSubstr("neither"));
  EXPECT_THAT(row_refusal(kSegment + record(from_hex("81 71 54 e1 7f 03 cc 00 00 00 00 00 00 00"))),
              HasSubstr("batch operation"));
  EXPECT_THAT(row_refusal(kSegment + record(operation(0b11, 3, ""))),
              HasSubstr("operation type 3"));
  EXPECT_THAT(row_refusal(kSegment + record(operation(0b10, 0, ""))), HasSubstr("lacks"));
  EXPECT_THAT(
      row_refusal(kSegment + record(kOperation + '\x03' + little_endian(0) + little_endian(1))),
      HasSubstr("resourceType"));
  EXPECT_THAT(row_refusal(kSegment + record(operation(0b11, 0, from_hex("07 09 00 00 00 00")))),
              HasSubstr("wrong type"));
  EXPECT_THAT(row_refusal(kSegment + record(operation(0b11, 0, from_hex("14 0d 00")))),
              HasSubstr("token 13"));
  EXPECT_THAT(row_refusal(kSegment + record(operation(0b10011, 0, from_hex("01 ff")))),
              HasSubstr("UTF-8"));
}

TEST(HybridRow, ABatchHasOneToAHundredOperations) {
  EXPECT_EQ(row_refusal(kSegment), "Batch request has no operations.");
  std::string body = kSegment;
  for (int i = 0; i < 100; ++i) body += kDeleteX;
  EXPECT_EQ(read_hybrid_row_batch(body).value().size(), 100u);
  EXPECT_EQ(row_refusal(body + kDeleteX),
            "Batch request has more operations than what is supported.");
}

// ── results ──────────────────────────────────────────────────────────────────────────────────────

TEST(HybridRow, AFailureCarriesItsTextAndWhenToTryAgain) {
  BatchResult busy;
  busy.status = 429;
  busy.substatus = 3092;
  busy.message = "busy";
  busy.retry_after_ms = 20;
  busy.charge_hundredths = 100;
  const std::string row = from_hex("81 71 54 e1 7f 0b ad 01 00 00 14 0c 00 00 04") + "busy" +
                          from_hex("0b 05 14 00 00 00 10 06") + little_endian(1.0);
  EXPECT_EQ(write_hybrid_row_batch({&busy, 1}), kSegment + record(row));
}

TEST(HybridRow, OnlyTheFirstByteTellsTheFormsApart) {
  EXPECT_TRUE(is_hybrid_row(kSegment));
  EXPECT_FALSE(is_hybrid_row(""));
  EXPECT_FALSE(is_hybrid_row("[]"));
  EXPECT_FALSE(is_hybrid_row(" [\x81"));
}

}  // namespace
}  // namespace orrery

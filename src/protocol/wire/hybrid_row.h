// The binary form of batches, which .NET's client speaks always: a RecordIO stream of HybridRows.
// All integers are little-endian. A varuint has 7 bits per byte, the lowest first; the highest bit
// says that more follow.
//
//   stream   segment, then records; further segments may stand between records
//
//   segment  offset 0   size 1   0x81, the version of the row format
//            offset 1   size 4   schema 2147473648
//            offset 5   size 1   presence: bit 0, the length
//            offset 6   size 4   length of this row, from offset 0; what is beyond 10 is skipped
//
//   record   offset 0   size 1   0x81
//            offset 1   size 4   schema 2147473649
//            offset 5   size 4   length of the row that follows
//            offset 9   size 4   its CRC-32, as zip computes it
//            offset 13           the row
//
//   row      offset 0   size 1   0x81
//            offset 1   size 4   schema
//            offset 5   size 1   presence of fixed and variable columns, the first in bit 0
//            offset 6   size 8   two fixed columns, int32 each, zero when absent
//            then the present variable columns in order: varuint length, bytes
//            then sparse columns to the end of the row: type code, varuint token, value
//
// The columns of the two row schemas stand in hybrid_row.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/wire/batch.h"

namespace orrery {

/// Whether a body is in the binary form; a JSON array begins with another byte.
bool is_hybrid_row(std::string_view body);

/// Reads a stream of operations. BadRequest, saying at which byte and what is wrong; also when
/// there are none, or more than kBatchOperationsMax.
Result<std::vector<BatchOperation>> read_hybrid_row_batch(std::string_view body);

/// A stream of results, in the order given. The text of a failure is sent as its body.
std::string write_hybrid_row_batch(std::span<const BatchResult> results);

/// CRC-32 of zip: reflected polynomial 0xEDB88320, begun and ended with all bits inverted.
std::uint32_t crc32(std::string_view bytes);

}  // namespace orrery

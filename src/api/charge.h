// Request charges: one deterministic formula, so that the same request on the same data costs the
// same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace orrery::api {

/// In hundredths of a request unit, so that sums are exact and text has two decimals.
struct Charge {
  std::int64_t hundredths = 100;

  /// "5.24", "1": as the service writes it.
  std::string text() const;
  void append_text(std::string& out) const;
};

inline constexpr Charge kRefused{100};  ///< anything refused that is not named below; 404 and 304
inline constexpr Charge kFailedWrite{124};  ///< 409 and 412
inline constexpr Charge kMetadataRead{100};
inline constexpr Charge kMetadataWrite{500};

Charge read_charge(std::size_t bytes);
Charge create_charge(std::size_t bytes, std::size_t indexed_leaves, std::size_t unique_keys);
/// Replace, and upsert of what exists.
Charge replace_charge(std::size_t bytes, std::size_t indexed_leaves, std::size_t unique_keys);
Charge feed_page_charge(std::size_t page_bytes);
/// Charges for documents read and for bytes sent.
Charge query_page_charge(std::size_t documents, std::size_t document_bytes, std::size_t page_bytes);

}  // namespace orrery::api

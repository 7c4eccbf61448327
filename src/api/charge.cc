#include "api/charge.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace orrery::api {
namespace {

double kilobytes(std::size_t bytes) { return std::max(1.0, static_cast<double>(bytes) / 1024.0); }
Charge rounded(double units) { return Charge{std::llround(units * 100.0)}; }

double read_units(std::size_t bytes) { return 1.0 + (kilobytes(bytes) - 1.0) / 11.0; }
double create_units(std::size_t bytes, std::size_t leaves, std::size_t unique_keys) {
  return 5.0 + (kilobytes(bytes) - 1.0) / 2.2 + 0.12 * static_cast<double>(leaves) +
         static_cast<double>(unique_keys);
}

}  // namespace

void Charge::append_text(std::string& out) const {
  char text[32];
  char* end = std::to_chars(text, text + sizeof text, hundredths / 100).ptr;
  if (const auto fraction = hundredths % 100; fraction != 0) {
    *end++ = '.';
    *end++ = static_cast<char>('0' + fraction / 10);
    if (fraction % 10 != 0) *end++ = static_cast<char>('0' + fraction % 10);
  }
  out.append(text, end);
}

std::string Charge::text() const {
  std::string out;
  append_text(out);
  return out;
}

Charge read_charge(std::size_t bytes) { return rounded(read_units(bytes)); }
Charge create_charge(std::size_t bytes, std::size_t indexed_leaves, std::size_t unique_keys) {
  return rounded(create_units(bytes, indexed_leaves, unique_keys));
}
Charge replace_charge(std::size_t bytes, std::size_t indexed_leaves, std::size_t unique_keys) {
  return rounded(2.0 * create_units(bytes, indexed_leaves, unique_keys) - 1.0);
}
Charge feed_page_charge(std::size_t page_bytes) {
  return rounded(1.0 + read_units(page_bytes) / 2.0);
}

Charge query_page_charge(std::size_t documents, std::size_t document_bytes,
                         std::size_t page_bytes) {
  return rounded(2.2 + 0.02 * static_cast<double>(documents) +
                 (static_cast<double>(document_bytes) / 64.0 + static_cast<double>(page_bytes)) /
                     1024.0 / 11.0);
}

}  // namespace orrery::api

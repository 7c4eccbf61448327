// Requests and responses as the rest of the server sees them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/header_name.h"

namespace orrery::http {

/// A complete request. Its views point into the connection's buffer and live until the response has
/// been handed back.
class Request {
 public:
  std::string_view method;  ///< as sent: "GET"
  std::string_view target;  ///< as sent: "/dbs/d?x"
  std::string_view body;    ///< whole; empty when there is none
  bool secure = false;      ///< arrived over TLS
  bool from_loopback = false;

  /// The first header of that name, without surrounding white space; empty when absent.
  std::string_view header(HeaderName name) const {
    for (const Field& field : fields_) {
      if (field.hash == name.hash && equal_ignoring_case(field.name, name.text)) return field.value;
    }
    return {};
  }
  /// Tells an absent header from an empty one.
  bool has_header(HeaderName name) const {
    for (const Field& field : fields_) {
      if (field.hash == name.hash && equal_ignoring_case(field.name, name.text)) return true;
    }
    return false;
  }

  void add_header(std::string_view name, std::string_view value) {
    fields_.push_back({header_hash(name), name, value});
  }
  std::size_t header_count() const { return fields_.size(); }
  void clear() {
    method = target = body = {};
    fields_.clear();
  }

 private:
  struct Field {
    std::uint32_t hash;
    std::string_view name;
    std::string_view value;
  };
  std::vector<Field> fields_;
};

/// A response under construction: header lines are written straight into the text that is sent.
class Response {
 public:
  int status = 200;
  std::string body;

  /// `name` must be lower case, as clients of the 2010s look it up so. `value` must have no CR or
  /// LF: such characters are dropped, since a header must never be able to end the head.
  void add(std::string_view name, std::string_view value);
  void add(std::string_view name, std::uint64_t value);
  std::string_view header_lines() const { return lines_; }

  /// After this response the connection is closed.
  bool close = false;

 private:
  std::string lines_;
};

}  // namespace orrery::http

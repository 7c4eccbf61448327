#include "protocol/wire/resource_path.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "base/hex_digit.h"
#include "protocol/base64.h"
#include "protocol/utf8.h"

namespace orrery {
namespace {

/// dbs/d/colls/c/docs/x/attachments/a
constexpr std::size_t kSegmentsMax = 8;

bool is_unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

Error no_such_route(std::string_view path) {
  return Error(ErrorCode::NotFound,
               "Resource Not Found: the service has no route '/" + std::string(path) + "'");
}

/// A path that was normalised but not yet decoded, and the same decoded.
struct Segments {
  std::string raw;      ///< joined by single slashes; empty when nothing is escaped
  std::string decoded;  ///< likewise
  /// Where each segment ends in `raw` and in `decoded`.
  struct End {
    std::size_t raw;
    std::size_t decoded;
  };
  std::vector<End> ends;

  std::size_t size() const { return ends.size(); }
  std::string_view decoded_at(std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends[i - 1].decoded + 1;
    return std::string_view(decoded).substr(begin, ends[i].decoded - begin);
  }
  /// The first `count` segments, joined.
  std::string_view raw_prefix(std::size_t count) const {
    return count == 0 ? std::string_view() : std::string_view(raw).substr(0, ends[count - 1].raw);
  }
  std::string_view decoded_prefix(std::size_t count) const {
    return count == 0 ? std::string_view()
                      : std::string_view(decoded).substr(0, ends[count - 1].decoded);
  }
};

Result<> append_decoded(std::string& out, std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t percent = std::min(text.find('%', at), text.size());
    out.append(text, at, percent - at);
    at = percent;
    if (at == text.size()) break;
    const int high = at + 2 < text.size() ? hex_value(text[at + 1]) : -1;
    const int low = at + 2 < text.size() ? hex_value(text[at + 2]) : -1;
    if (high < 0 || low < 0) {
      return Error(ErrorCode::BadRequest, "A '%' is not followed by two hex digits");
    }
    out += static_cast<char>(high << 4 | low);
    at += 3;
  }
  return Result<>();
}

/// Collapses repeated slashes and drops the outer ones by skipping empty segments, then decodes
/// each: an escaped slash belongs to its segment.
Result<Segments> split(std::string_view path) {
  Segments segments;
  const bool has_escapes = path.contains('%');
  if (has_escapes) segments.raw.reserve(path.size());
  segments.decoded.reserve(path.size());
  segments.ends.reserve(kSegmentsMax);
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view segment = path.substr(at, end - at);
    at = end + 1;
    if (segment.empty()) continue;
    if (segments.size() > 0) segments.decoded += '/';
    ORRERY_TRY(append_decoded(segments.decoded, segment));
    if (has_escapes) {
      if (segments.size() > 0) segments.raw += '/';
      segments.raw += segment;
    }
    segments.ends.push_back({segments.raw.size(), segments.decoded.size()});
  }
  if (!is_valid_utf8(segments.decoded)) {
    return Error(ErrorCode::BadRequest, "The path is not UTF-8 once its escapes are decoded");
  }
  return segments;
}

struct Route {
  ResourceType type;
  /// The words of the path; between them stand names.
  std::array<std::string_view, 4> words;
  bool has_feed = true;
  bool has_members = true;
};

using enum ResourceType;
constexpr Route kRoutes[] = {
    {Documents, {"dbs", "colls", "docs"}},
    {Ranges, {"dbs", "colls", "pkranges"}},
    {Containers, {"dbs", "colls"}},
    {Databases, {"dbs"}},
    {Procedures, {"dbs", "colls", "sprocs"}},
    {Triggers, {"dbs", "colls", "triggers"}},
    {Udfs, {"dbs", "colls", "udfs"}},
    {Conflicts, {"dbs", "colls", "conflicts"}},
    {Attachments, {"dbs", "colls", "docs", "attachments"}},
    {Users, {"dbs", "users"}},
    {Permissions, {"dbs", "users", "permissions"}},
    {EncryptionKeys, {"dbs", "clientencryptionkeys"}},
    {Offers, {"offers"}},
    {Media, {"media"}, false, true},
    {Addresses, {"addresses"}, true, false},
};

const Route* find_route(const Segments& segments) {
  const std::size_t words = (segments.size() + 1) / 2;
  const bool is_feed = segments.size() % 2 != 0;
  for (const Route& route : kRoutes) {
    const auto count = static_cast<std::size_t>(
        std::ranges::count_if(route.words, [](std::string_view word) { return !word.empty(); }));
    if (count != words || !(is_feed ? route.has_feed : route.has_members)) continue;
    bool fits = true;
    for (std::size_t i = 0; i < words && fits; ++i) {
      fits = segments.decoded_at(2 * i) == route.words[i];
    }
    if (fits) return &route;
  }
  return nullptr;
}

/// The operations on a container as a whole.
std::optional<ResourceType> operation_of(const Segments& segments) {
  const bool operation = segments.size() == 6 && segments.decoded_at(0) == "dbs" &&
                         segments.decoded_at(2) == "colls" &&
                         segments.decoded_at(4) == "operations";
  if (!operation) return {};
  const std::string_view name = segments.decoded_at(5);
  if (name == "partitionkeydelete") return PartitionKeyDelete;
  if (name == "split") return Split;
  if (name == "merge") return Merge;
  return {};
}

/// Orrery's own routes. The explorer's lead to files: nothing in them may climb out of its
/// directory.
bool is_own_route(const Segments& segments) {
  const std::string_view first = segments.decoded_at(0);
  if (first == "_health" || first == "_ready" || first == "_metrics") return segments.size() == 1;
  if (first != "_explorer") return false;
  for (std::size_t i = 1; i < segments.size(); ++i) {
    const std::string_view segment = segments.decoded_at(i);
    const bool plain = std::ranges::none_of(segment, [](char c) {
      return c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
    });
    if (!plain || segment == "." || segment == "..") return false;
  }
  return true;
}

/// Whether clients take this second segment of a link for a rid. They only look at how it decodes,
/// so bits that base64 leaves over may be anything.
bool looks_like_database_rid(std::string_view segment) {
  if (segment.size() != 8 || !segment.ends_with("==")) return false;
  return std::ranges::all_of(segment.substr(0, 6), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/' || c == '-';
  });
}

/// The rid of the attachment that a media id belongs to: its first 20 bytes. An id without the byte
/// after them is the rid itself, and clients sign what they cannot decode as it is.
std::string attachment_rid(std::string_view media_id) {
  constexpr std::size_t kRidSize = 20;
  const auto bytes = base64_decode(media_id, Base64Alphabet::Rid);
  if (!bytes || bytes->size() <= kRidSize) return std::string(media_id);
  return base64_encode(std::string_view(*bytes).substr(0, kRidSize), Base64Alphabet::Rid);
}

void add_candidate(std::vector<std::string>& candidates, std::string candidate) {
  if (std::ranges::find(candidates, candidate) == candidates.end()) {
    candidates.push_back(std::move(candidate));
  }
}

/// Fills in the names and what is signed: the link is the first `link_size` segments.
void describe(ResourcePath& path, const Segments& segments, std::size_t link_size) {
  path.names.reserve(link_size / 2);
  for (std::size_t i = 1; i < link_size; i += 2) path.names.emplace_back(segments.decoded_at(i));

  path.link_candidates.emplace_back(segments.decoded_prefix(link_size));
  if (!segments.raw.empty()) {
    add_candidate(path.link_candidates, std::string(segments.raw_prefix(link_size)));
  }

  if (path.names.empty()) return;
  if (path.type == Offers) {
    path.rid_link = path.names.back();
  } else if (path.type == Media) {
    path.rid_link = attachment_rid(path.names.back());
  } else if (looks_like_database_rid(path.names.front())) {
    path.rid_link = path.names.back();
  }
}

/// Ids may contain '?', which some clients do not escape.
Result<> add_query_to_id(ResourcePath& path) {
  if (!is_valid_utf8(path.query)) {
    return Error(ErrorCode::BadRequest, "The query string, which is part of the id, is not UTF-8");
  }
  const std::string suffix = "?" + path.query;
  path.names.back() += suffix;
  const std::size_t count = path.link_candidates.size();
  for (std::size_t i = 0; i < count; ++i) {
    add_candidate(path.link_candidates, path.link_candidates[i] + suffix);
  }
  return Result<>();
}

/// HTTP lets a client send the whole URL, as to a proxy; what counts begins after the host.
std::string_view without_origin(std::string_view target) {
  for (std::string_view scheme : {"http://", "https://"}) {
    if (target.starts_with(scheme)) {
      return target.substr(std::min(target.find_first_of("/?", scheme.size()), target.size()));
    }
  }
  return target;
}

}  // namespace

std::string_view resource_type_name(ResourceType type) {
  switch (type) {
    case Account:
    case Own:
      return "";
    case Administration:
      return "orrery";
    case Databases:
      return "dbs";
    case Containers:
    case PartitionKeyDelete:
    case Split:
    case Merge:
      return "colls";
    case Documents:
      return "docs";
    case Procedures:
      return "sprocs";
    case Triggers:
      return "triggers";
    case Udfs:
      return "udfs";
    case Conflicts:
      return "conflicts";
    case Ranges:
      return "pkranges";
    case Attachments:
      return "attachments";
    case Users:
      return "users";
    case Permissions:
      return "permissions";
    case Offers:
      return "offers";
    case Media:
      return "media";
    case EncryptionKeys:
      return "clientencryptionkeys";
    case Addresses:
      return "addresses";
  }
  return "";
}

Result<ResourcePath> parse_resource_path(std::string_view target) {
  target = without_origin(target);
  const std::size_t question = target.find('?');
  const bool has_query = question != std::string_view::npos;
  ORRERY_TRY(Segments segments, split(target.substr(0, question)));

  ResourcePath path;
  if (has_query) path.query = target.substr(question + 1);
  if (segments.size() == 0) {
    describe(path, segments, 0);
  } else if (is_own_route(segments)) {
    path.type = Own;
    path.link_candidates.emplace_back();
  } else if (segments.decoded_at(0) == "_orrery") {
    path.type = Administration;
    path.link_candidates.push_back(segments.decoded);
  } else if (const auto operation = operation_of(segments)) {
    path.type = *operation;
    describe(path, segments, 4);
  } else if (const Route* route = find_route(segments)) {
    path.type = route->type;
    path.is_feed = segments.size() % 2 != 0;
    describe(path, segments, path.is_feed ? segments.size() - 1 : segments.size());
    if (has_query && path.type == Documents && !path.is_feed) {
      ORRERY_TRY(add_query_to_id(path));
    }
  } else {
    return no_such_route(segments.decoded);
  }
  path.text = std::move(segments.decoded);
  return path;
}

Result<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  ORRERY_TRY(append_decoded(decoded, text));
  return decoded;
}

std::string percent_encode_path(std::string_view text) {
  std::string encoded;
  encoded.reserve(text.size());
  for (char c : text) {
    if (is_unreserved(c) || c == '/') {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += '%';
      encoded += "0123456789ABCDEF"[byte >> 4];
      encoded += "0123456789ABCDEF"[byte & 0xF];
    }
  }
  return encoded;
}

}  // namespace orrery

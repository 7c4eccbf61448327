#include "api/authenticator.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "protocol/wire/headers.h"

namespace orrery::api {
namespace {

constexpr UnixSeconds kTokenLife = 900;
constexpr UnixSeconds kClockSkew = 900;

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

/// The type and link that a client may have signed.
struct Candidate {
  std::string_view type;
  std::string_view link;
};

/// For a route that does not exist, the general rule: the parent's link for a list, its own for a
/// member, and for an operation that of the container it is for.
struct UnknownRoute {
  std::string type;
  std::string link;
};
UnknownRoute unknown_route(std::string_view target, bool decoded) {
  target = target.substr(0, target.find('?'));
  std::vector<std::string> segments;
  while (!target.empty()) {
    const auto slash = target.find('/');
    const auto segment = target.substr(0, slash);
    if (!segment.empty()) {
      auto text = decoded ? percent_decode(segment) : Result<std::string>(std::string(segment));
      segments.push_back(text ? std::move(*text) : std::string(segment));
    }
    if (slash == std::string_view::npos) break;
    target.remove_prefix(slash + 1);
  }
  UnknownRoute route;
  if (segments.empty()) return route;
  const bool list = segments.size() % 2 == 1;
  const bool operation = segments.size() == 6 && segments[4] == "operations";
  route.type = operation ? segments[2] : list ? segments.back() : segments[segments.size() - 2];
  const std::size_t in_link = operation ? 4 : list ? segments.size() - 1 : segments.size();
  for (std::size_t i = 0; i < in_link; ++i) {
    if (i > 0) route.link.push_back('/');
    route.link += segments[i];
  }
  return route;
}

}  // namespace

Result<Principal> Authenticator::authenticate(const http::Request& request,
                                              const ResourcePath* path) const {
  const auto header = request.header(headers::kAuthorization);
  if (header.empty()) {
    return Error(ErrorCode::Unauthorized,
                 "Required Header authorization is missing. Ensure a valid Authorization token is "
                 "passed.");
  }
  ORRERY_TRY(const auto authorization, parse_authorization(header));
  if (authorization.type != "master") {
    return Error(
        ErrorCode::Unauthorized,
        fmt::format("Authorization of type '{}' is not supported by this server: sign with "
                    "an account key (type=master).",
                    authorization.type));
  }
  const auto x_date = request.header(headers::kXDate);
  const auto date = request.header(headers::kDate);
  if (x_date.empty() && date.empty()) {
    return Error(
        ErrorCode::Unauthorized,
        "The authorization header needs a date: send x-ms-date (or Date) in the form 'Tue, "
        "01 Apr 2025 12:00:00 GMT', and sign it.");
  }

  std::vector<Candidate> candidates;
  std::string rid;
  UnknownRoute unknown[2];
  if (path != nullptr) {
    const auto type = resource_type_name(path->type);
    if (path->rid_link) {
      rid = lower(*path->rid_link);
      candidates.push_back({type, rid});
    }
    for (const std::string& link : path->link_candidates) candidates.push_back({type, link});
    // Another type that some clients sign such a request with. The link tells that it is this one.
    std::string_view other_type;
    if (path->type == ResourceType::PartitionKeyDelete) other_type = "partitionkey";
    if (path->type == ResourceType::Conflicts && !path->is_feed) other_type = "users";
    if (!other_type.empty()) {
      const auto count = candidates.size();
      for (std::size_t i = 0; i < count; ++i) {
        candidates.push_back({other_type, candidates[i].link});
      }
    }
  } else {
    unknown[0] = unknown_route(request.target, /*decoded=*/true);
    unknown[1] = unknown_route(request.target, /*decoded=*/false);
    for (const UnknownRoute& route : unknown) {
      candidates.push_back({route.type, route.link});
      // @azure/cosmos reads a conflict at …/conflicts/x/conflicts, signed so; it is to hear that
      // there is none (sdk.cosmos_js_conflicts).
      if (route.type == "conflicts") candidates.push_back({"users", route.link});
    }
  }

  for (const Candidate& candidate : candidates) {
    const SignedContent content{request.method, candidate.type, candidate.link, x_date, date};
    const Keyring::Keys& keys = keys_.in_force();
    const auto signer = std::ranges::find_if(keys, [&](const AccountKey& each) {
      return each.key.verify(content, authorization.signature);
    });
    if (signer != keys.end()) {
      ORRERY_TRY(check_date(x_date.empty() ? date : x_date));
      note_use(*signer);
      return Principal{signer->access, signer->id};
    }
  }
  const bool by_rid = path != nullptr && path->rid_link.has_value();
  const Candidate& shown = by_rid && candidates.size() > 1 ? candidates[1] : candidates[0];
  auto payload = string_to_sign({request.method, shown.type, shown.link, x_date, date},
                                /*with_date_line=*/x_date.empty());
  std::string escaped;
  for (const char c : payload) {
    if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped.push_back(c);
    }
  }
  return Error(
      ErrorCode::Unauthorized,
      fmt::format("The input authorization token can't serve the request. Please check that "
                  "the expected payload is built as per the protocol, and check the key "
                  "being used. Server used the following payload to sign: '{}'",
                  escaped));
}

void Authenticator::note_use(const AccountKey& key) const {
  const UnixSeconds now = clock_.unix_seconds();
  // Written once a second at most: all event loops read what is beside it.
  if (key.last_used->load(std::memory_order_relaxed) != now) {
    key.last_used->store(now, std::memory_order_relaxed);
  }
}

Result<> Authenticator::check_date(std::string_view date) const {
  const auto time = parse_http_date(date);
  if (!time) {
    return Error(
        ErrorCode::Unauthorized,
        fmt::format("'{}' is not a date in the form 'Tue, 01 Apr 2025 12:00:00 GMT'.", date));
  }
  if (!check_dates_) return {};
  const auto now = clock_.unix_seconds();
  if (*time < now - kTokenLife - kClockSkew || *time > now + kClockSkew) {
    return Error(
        ErrorCode::Forbidden,
        fmt::format("The authorization token is not valid at the current time. Please create "
                    "another token and retry (token time: {}, server time: {}). Check both "
                    "clocks.",
                    date, format_http_date(now)));
  }
  return {};
}

bool Authenticator::bears_key(const http::Request& request) const {
  constexpr std::string_view kBearer = "Bearer ";
  auto header = request.header(headers::kAuthorization);
  if (!header.starts_with(kBearer)) return false;
  header.remove_prefix(kBearer.size());
  const Keyring::Keys& keys = keys_.in_force();
  const auto borne = std::ranges::find_if(
      keys, [&](const AccountKey& each) { return equal_in_constant_time(each.text, header); });
  if (borne == keys.end()) return false;
  note_use(*borne);
  return true;
}

}  // namespace orrery::api

#include "api/admin/explorer.h"

#include <algorithm>
#include <string>

#include "protocol/wire/headers.h"

namespace orrery::api::explorer {
namespace {

constexpr std::string_view kRoot = "_explorer";
constexpr std::string_view kStartPage = "index.html";

// Only what comes from this server, no inline code, no text that becomes code or markup, and nobody
// may frame the page: an injected script would get the account key.
constexpr std::string_view kContentSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

std::string_view content_type(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "application/octet-stream";
}

/// Whether If-None-Match, a list of etags or `*`, names this one. Our etags have no commas.
bool names(std::string_view list, std::string_view etag) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view one = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (one.starts_with("W/")) one.remove_prefix(2);
    if (one == "*" || one == etag) return true;
  }
  return false;
}

http::Response redirect_to_page(const Context& context, int status) {
  http::Response response;
  response.status = status;
  // Relative, so that it holds behind a proxy that puts us below another path.
  response.add("location", "_explorer/");
  response.add(headers::kContentType.text, "text/plain; charset=utf-8");
  response.add(headers::kActivityId.text, context.activity_id);
  response.body = "The explorer is at /_explorer/\n";
  return response;
}

}  // namespace

http::Response redirect_from_root(const Context& context) {
  auto response = redirect_to_page(context, 302);
  // The same address is the account for those who sign, and must not be remembered as this.
  response.add(headers::kCacheControl.text, "no-store");
  response.add("vary", "accept, authorization");
  return response;
}

std::optional<http::Response> serve(const Context& context) {
  std::string_view name = context.path.text;
  if (!name.starts_with(kRoot)) return {};
  name.remove_prefix(kRoot.size());
  if (name.starts_with('/')) name.remove_prefix(1);
  if (name.empty()) {
    // The path has lost its trailing slash by now; the page's own links need it.
    const std::string_view target = context.request.target;
    if (!target.substr(0, target.find('?')).ends_with('/')) return redirect_to_page(context, 307);
    name = kStartPage;
  }
  const auto all = files();
  const auto file = std::ranges::find(all, name, &File::name);
  if (file == all.end()) return {};

  http::Response response;
  response.add(headers::kEtag.text, file->etag);
  // Kept by the browser, but asked for each time: the page always fits the server.
  response.add(headers::kCacheControl.text, "no-cache");
  response.add("content-security-policy", kContentSecurityPolicy);
  response.add("x-content-type-options", "nosniff");
  response.add("referrer-policy", "no-referrer");
  response.add("cross-origin-resource-policy", "same-origin");
  response.add(headers::kActivityId.text, context.activity_id);
  if (names(context.header(headers::kIfNoneMatch), file->etag)) {
    response.status = 304;
    return response;
  }
  response.add(headers::kContentType.text, content_type(file->name));
  response.body = std::string(file->content);
  return response;
}

}  // namespace orrery::api::explorer

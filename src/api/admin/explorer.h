// The web explorer: static files that are part of the binary, served under /_explorer/. They need
// no key and hold nothing secret; all that the page shows it asks the REST API for, signed.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "api/context.h"
#include "http/message.h"

namespace orrery::api::explorer {

struct File {
  std::string_view name;  ///< below /_explorer/: "app.js"
  std::string_view etag;  ///< quoted; changes with the content
  std::string_view content;
};

/// All files, defined in a source that the build writes from explorer/ (cmake/embed.cmake).
std::span<const File> files();

/// The answer to a GET of context.path, if it is one of the explorer's: a file, 304 for one that
/// the browser has, or the way from /_explorer to /_explorer/. Nothing for what is not there.
std::optional<http::Response> serve(const Context& context);

/// The way to the explorer from /, for a browser whose user has typed the server's address.
http::Response redirect_from_root(const Context& context);

}  // namespace orrery::api::explorer

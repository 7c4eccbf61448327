#include "client/transport/transport.h"

#include <algorithm>
#include <cctype>

#include <curl/curl.h>
#include <fmt/format.h>

#include "base/assert.h"
#include "client/transport/link.h"

namespace orrery::client {
namespace {

/// An answer that is kept in memory; pages end at 4 MB.
constexpr std::size_t kReplyBytesMax = 64 << 20;

struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

/// Shared by the callbacks of one transfer.
struct Transfer {
  CURL* handle = nullptr;
  Reply reply;
  const Transport::Take* take = nullptr;
  bool ended_by_taker = false;
  bool too_large = false;
};

std::size_t on_header(char* text, std::size_t size, std::size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  std::string_view line(text, size * count);
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {
    // A new head, as after a 100: what came before does not count.
    transfer.reply.headers.clear();
  } else if (const auto colon = line.find(':'); colon != std::string_view::npos) {
    auto value = line.substr(colon + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    transfer.reply.headers.emplace_back(line.substr(0, colon), value);
  }
  return size * count;
}

std::size_t on_body(char* text, std::size_t size, std::size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  const std::string_view piece(text, size * count);
  long status = 0;
  curl_easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &status);
  if (transfer.take != nullptr && status == 200) {
    if ((*transfer.take)(piece)) return piece.size();
    transfer.ended_by_taker = true;
    return 0;
  }
  if (transfer.reply.body.size() + piece.size() > kReplyBytesMax) {
    transfer.too_large = true;
    return 0;
  }
  transfer.reply.body.append(piece);
  return piece.size();
}

}  // namespace

std::string_view Reply::header(HeaderName name) const {
  for (const auto& [each, value] : headers) {
    if (equal_ignoring_case(each, name.text)) return value;
  }
  return {};
}

struct Transport::State {
  TransportOptions options;
  CURL* handle = nullptr;

  Result<Reply> perform(const Request& request, const Take* take,
                        std::chrono::seconds silence_max) {
    // Keeps connections and sessions, forgets everything else.
    curl_easy_reset(handle);
    Transfer transfer;
    transfer.handle = handle;
    transfer.take = take;

    const std::string url = options.endpoint + request.path;
    std::unique_ptr<curl_slist, ListDeleter> lines;
    const auto add_line = [&lines](const std::string& line) {
      curl_slist* longer = curl_slist_append(lines.get(), line.c_str());
      ORRERY_ASSERT(longer != nullptr);
      (void)lines.release();
      lines.reset(longer);
    };
    for (const auto& [name, value] : request.headers) {
      // A header without a value needs a semicolon, or libcurl takes it out.
      add_line(value.empty() ? name + ";" : name + ": " + value);
    }
    add_line("Expect:");  // Bodies are small: asking first costs a round trip.

    curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
    curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, lines.get());
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, &transfer);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(options.connect_time_max.count()));
    if (take == nullptr) {
      curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS,
                       static_cast<long>(options.request_time_max.count()));
    } else {
      curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
      curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(silence_max.count()));
    }
    curl_easy_setopt(handle, CURLOPT_SSL_VERIFYPEER, options.verify_certificate ? 1L : 0L);
    curl_easy_setopt(handle, CURLOPT_SSL_VERIFYHOST, options.verify_certificate ? 2L : 0L);
    if (!options.certificate_file.empty()) {
      curl_easy_setopt(handle, CURLOPT_CAINFO, options.certificate_file.c_str());
    }
    if (request.method == "HEAD") {
      curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
    } else if (request.method != "GET") {
      curl_easy_setopt(handle, CURLOPT_POST, 1L);
      curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
      curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request.body.data());
      curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(request.body.size()));
    }

    const CURLcode code = curl_easy_perform(handle);
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    transfer.reply.status = static_cast<int>(status);
    if (code == CURLE_OK || transfer.ended_by_taker) return std::move(transfer.reply);
    if (transfer.too_large) {
      return Error(ErrorCode::Unavailable,
                   fmt::format("{} sent more than {} MB", options.endpoint, kReplyBytesMax >> 20));
    }
    return Error(ErrorCode::Unavailable,
                 fmt::format("no answer from {}: {}", options.endpoint, curl_easy_strerror(code)));
  }
};

Transport::Transport(TransportOptions options) : state_(std::make_unique<State>()) {
  init_libcurl();
  while (options.endpoint.ends_with('/')) options.endpoint.pop_back();
  state_->options = std::move(options);
  state_->handle = curl_easy_init();
  ORRERY_ASSERT(state_->handle != nullptr);
}

Transport::~Transport() { curl_easy_cleanup(state_->handle); }

Result<Reply> Transport::send(const Request& request) {
  return state_->perform(request, nullptr, std::chrono::seconds(0));
}

Result<Reply> Transport::stream(const Request& request, std::chrono::seconds silence_max,
                                const Take& take) {
  return state_->perform(request, &take, silence_max);
}

}  // namespace orrery::client

#include "client/transport/link.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <mutex>

#include <curl/curl.h>
#include <fmt/format.h>

#include "base/assert.h"

namespace orrery::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

NoAnswer kind_of(CURLcode code) {
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_OUT_OF_MEMORY:
      return NoAnswer::Unreachable;
    default:
      // A certificate that does not hold, a file of certificates that is none, and the like: it
      // will not be better the next time.
      return NoAnswer::Distrusted;
  }
}

/// Advice to the user, appended to the error.
std::string advice_for(CURLcode code, const Endpoint& endpoint) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
      return fmt::format(
          ". If you know this server, name the PEM file of who signed its certificate in "
          "certificate_file: Orrery's own is at {}/_explorer/emulator.pem. On your own machine "
          "verify_certificate = false will do, or http instead of https",
          endpoint.url);
    case CURLE_SSL_CACERT_BADFILE:
      return ". certificate_file must name a readable PEM file with at least one certificate";
    case CURLE_SSL_CONNECT_ERROR:
      return ". Does the server speak https at this port?";
    default:
      return {};
  }
}

/// The outcome of a failed connection. Nothing was sent. `details` is the text that libcurl adds to
/// the code, and often says more.
Outcome not_connected(const Endpoint& endpoint, CURLcode code, std::string_view details = {}) {
  while (details.ends_with('\n') || details.ends_with('.')) details.remove_suffix(1);
  return Outcome::failed(
      kind_of(code),
      fmt::format("no connection to {}: {}{}", endpoint.url,
                  details.empty() ? curl_easy_strerror(code) : details, advice_for(code, endpoint)),
      false);
}

/// As libcurl would do it, but closed in programs that this one starts.
curl_socket_t open_socket(void*, curlsocktype, curl_sockaddr* address) {
  const int descriptor =
      ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  return descriptor >= 0 ? descriptor : CURL_SOCKET_BAD;
}

/// libcurl takes 0 for its own default, and ignores what is no int.
long connect_time_max_ms(milliseconds time) {
  return static_cast<long>(std::clamp<milliseconds::rep>(time.count(), 1, INT_MAX));
}

}  // namespace

void init_libcurl() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

Wake::Wake() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  ORRERY_ASSERT(descriptor_ >= 0);
}

Wake::~Wake() { ::close(descriptor_); }

void Wake::ring() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(descriptor_, &one, sizeof(one));
}

void Wake::silence() noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(descriptor_, &count, sizeof(count));
}

struct Link::Handles {
  std::array<char, CURL_ERROR_SIZE> details{};  // Written by libcurl while it connects.
  CURL* easy = nullptr;
  CURLM* multi = nullptr;
  bool owns_multi = false;

  ~Handles() {
    if (multi != nullptr) curl_multi_remove_handle(multi, easy);
    curl_easy_cleanup(easy);
    if (owns_multi) curl_multi_cleanup(multi);
  }
};

Link::Link(EndpointPtr endpoint, const LinkOptions& options)
    : endpoint_(std::move(endpoint)), handles_(std::make_unique<Handles>()) {
  init_libcurl();
  CURL* easy = curl_easy_init();
  ORRERY_ASSERT(easy != nullptr);
  handles_->easy = easy;
  curl_easy_setopt(easy, CURLOPT_URL, endpoint_->url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
  // Through a proxy, too, it is the endpoint that is talked to.
  curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, connect_time_max_ms(options.connect_time_max));
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, handles_->details.data());
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, &open_socket);
#if LIBCURL_VERSION_NUM >= 0x075700
  // A pending name lookup does not block a caller that has given up waiting for it.
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, options.verify_certificate ? 1L : 0L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, options.verify_certificate ? 2L : 0L);
  if (!options.certificate_file.empty()) {
    curl_easy_setopt(easy, CURLOPT_CAINFO, options.certificate_file.c_str());
  }
}

Link::~Link() = default;

void* Link::handle() const { return handles_->easy; }

Outcome Link::open(steady_clock::time_point deadline, const Wake* wake) {
  handles_->multi = curl_multi_init();
  ORRERY_ASSERT(handles_->multi != nullptr);
  handles_->owns_multi = true;
  curl_multi_add_handle(handles_->multi, handles_->easy);
  for (;;) {
    int running = 0;
    curl_multi_perform(handles_->multi, &running);
    int left = 0;
    if (const CURLMsg* message = curl_multi_info_read(handles_->multi, &left);
        message != nullptr && message->msg == CURLMSG_DONE) {
      return opened(message->data.result);
    }
    const auto time_left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    if (time_left <= milliseconds(0)) {
      return Outcome::failed(NoAnswer::TimedOut,
                             fmt::format("no connection to {} in time", endpoint_->url), false);
    }
    curl_waitfd ring{};
    if (wake != nullptr)
      ring = {.fd = wake->descriptor(), .events = CURL_WAIT_POLLIN, .revents = 0};
    curl_multi_poll(handles_->multi, &ring, wake != nullptr ? 1 : 0,
                    static_cast<int>(std::min(time_left, milliseconds(60'000)).count()), nullptr);
    if (ring.revents != 0) {
      return Outcome::failed(NoAnswer::Cancelled, "the call was cancelled", false);
    }
  }
}

void Link::open_in(void* multi) {
  handles_->multi = static_cast<CURLM*>(multi);
  curl_multi_add_handle(handles_->multi, handles_->easy);
}

Outcome Link::opened(int code) {
  if (code != CURLE_OK) {
    return not_connected(*endpoint_, static_cast<CURLcode>(code), handles_->details.data());
  }
  curl_socket_t socket = CURL_SOCKET_BAD;
  curl_easy_getinfo(handles_->easy, CURLINFO_ACTIVESOCKET, &socket);
  if (socket == CURL_SOCKET_BAD) return not_connected(*endpoint_, CURLE_COULDNT_CONNECT);
  descriptor_ = socket;
  return {};
}

Link::Progress Link::send(std::string_view bytes) {
  if (endpoint_->secure) {
    std::size_t count = 0;
    const CURLcode code = curl_easy_send(handles_->easy, bytes.data(), bytes.size(), &count);
    return {.count = count, .closed = code != CURLE_OK && code != CURLE_AGAIN};
  }
  for (;;) {
    const ssize_t count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) return {.count = static_cast<std::size_t>(count)};
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
    if (errno != EINTR) return {.closed = true};
  }
}

Link::Progress Link::receive(std::span<char> room) {
  if (endpoint_->secure) {
    std::size_t count = 0;
    const CURLcode code = curl_easy_recv(handles_->easy, room.data(), room.size(), &count);
    return {.count = count, .closed = code == CURLE_OK ? count == 0 : code != CURLE_AGAIN};
  }
  for (;;) {
    const ssize_t count = ::recv(descriptor_, room.data(), room.size(), 0);
    if (count > 0) return {.count = static_cast<std::size_t>(count)};
    if (count == 0) return {.closed = true};
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
    if (errno != EINTR) return {.closed = true};
  }
}

bool Link::is_quiet() {
  // With TLS there may be bytes that are none of HTTP's, such as a new session ticket: a read
  // swallows them.
  std::array<char, 1> byte;
  if (!endpoint_->secure) {
    return ::recv(descriptor_, byte.data(), 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EWOULDBLOCK);
  }
  const Progress progress = receive(byte);
  return progress.count == 0 && !progress.closed;
}

}  // namespace orrery::client

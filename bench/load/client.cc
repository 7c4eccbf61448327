#include "client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace bench {
namespace {

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() &&
         std::equal(text.begin(), text.end(), lower.begin(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
}

template <typename Integer>
Integer to_number(std::string_view text) {
  Integer value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    fail("not a number in a response: " + std::string(text));
  }
  return value;
}

}  // namespace

const std::string kKey =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

void fail(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, what.c_str());
  std::exit(2);
}

bool Target::take(std::string_view name, const char* value) {
  if (name == "--host") {
    host = value;
  } else if (name == "--port") {
    port = std::atoi(value);
  } else if (name == "--database") {
    database = value;
  } else if (name == "--container") {
    container = value;
  } else {
    return false;
  }
  return true;
}

Signer::Signer(const std::string& base64_key) {
  key_.resize(base64_key.size());
  const int size =
      EVP_DecodeBlock(key_.data(), reinterpret_cast<const unsigned char*>(base64_key.data()),
                      static_cast<int>(base64_key.size()));
  if (size < 0) fail("--key is not base64");
  const auto padding = std::count(base64_key.begin(), base64_key.end(), '=');
  key_.resize(static_cast<std::size_t>(size - padding));
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[64];
  std::strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &utc);
  date_ = text;
  lower_date_ = date_;
  for (char& c : lower_date_) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
}

std::string Signer::authorization(std::string_view lower_verb, std::string_view type,
                                  std::string_view link) const {
  std::string text;
  for (const std::string_view line : {lower_verb, type, link, std::string_view(lower_date_)}) {
    text.append(line).push_back('\n');
  }
  text.push_back('\n');
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned int mac_size = 0;
  HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac, &mac_size);
  unsigned char base64[64];
  const int base64_size = EVP_EncodeBlock(base64, mac, static_cast<int>(mac_size));
  std::string out = "type%3Dmaster%26ver%3D1.0%26sig%3D";
  for (int i = 0; i < base64_size; ++i) {
    switch (base64[i]) {
      case '+':
        out += "%2B";
        break;
      case '/':
        out += "%2F";
        break;
      case '=':
        out += "%3D";
        break;
      default:
        out.push_back(static_cast<char>(base64[i]));
    }
  }
  return out;
}

std::string head(const Target& target, const Signer& signer, std::string_view verb,
                 std::string_view path, const std::string& authorization) {
  std::string out;
  out.append(verb).append(" ").append(path).append(" HTTP/1.1\r\n");
  out += "host: " + target.host + ":" + std::to_string(target.port) + "\r\n";
  out += "cache-control: no-cache\r\nuser-agent: orrery-load/1.0\r\naccept: application/json\r\n";
  out += "x-ms-version: 2020-07-15\r\nx-ms-cosmos-sdk-supportedcapabilities: 1\r\n";
  out += "x-ms-date: " + signer.date() + "\r\nauthorization: " + authorization + "\r\n";
  return out;
}

bool parse_head(std::string_view bytes, Head& out) {
  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == std::string_view::npos) return false;
  if (!bytes.starts_with("HTTP/1.1 ") || end < 12) fail("this is not HTTP/1.1");
  out = Head{};
  out.status = to_number<int>(bytes.substr(9, 3));
  out.size = end + 4;
  bool sized = out.status == 204 || out.status == 304;
  std::size_t at = bytes.find("\r\n") + 2;
  while (at < end) {
    const std::size_t line_end = bytes.find("\r\n", at);
    const std::string_view line = bytes.substr(at, line_end - at);
    at = line_end + 2;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) fail("a header line without a colon");
    const std::string_view name = line.substr(0, colon);
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    switch (name.size()) {  // the sizes sort out nearly all headers before any comparison
      case 14:
        if (equals_ignoring_case(name, "content-length")) {
          out.body = to_number<std::size_t>(value);
          sized = true;
        }
        break;
      case 15:
        if (equals_ignoring_case(name, "x-ms-item-count")) {
          out.item_count = to_number<std::uint64_t>(value);
        }
        break;
      case 17:
        if (equals_ignoring_case(name, "x-ms-continuation")) out.continuation = value;
        if (equals_ignoring_case(name, "transfer-encoding")) out.chunked = sized = true;
        break;
      case 4:
        if (equals_ignoring_case(name, "etag")) out.etag = value;
        break;
      case 10:
        if (equals_ignoring_case(name, "connection")) {
          out.closes = equals_ignoring_case(value, "close");
        }
        break;
      default:
        break;
    }
  }
  if (!sized) fail("a response without content-length");
  return true;
}

int connect_to(const Target& target) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail(std::string("socket: ") + std::strerror(errno));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(target.port));
  if (::inet_pton(AF_INET, target.host.c_str(), &address.sin_addr) != 1) {
    fail("--host must be an IPv4 address");
  }
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    fail(std::string("connect: ") + std::strerror(errno));
  }
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return fd;
}

void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) fail(std::string("send: ") + std::strerror(errno));
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::size_t receive_response(int fd, std::vector<char>& buffer, Head& head) {
  std::size_t filled = 0;
  head = Head{};
  for (;;) {
    if (filled == buffer.size()) buffer.resize(buffer.size() * 2);
    const ssize_t got = ::recv(fd, buffer.data() + filled, buffer.size() - filled, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail("the server closed the connection");
    filled += static_cast<std::size_t>(got);
    if (head.size == 0 && !parse_head({buffer.data(), filled}, head)) continue;
    if (filled >= head.size + head.body) break;
  }
  if (filled > head.size + head.body) fail("more bytes than one response");
  // The buffer may have moved since the head was read.
  parse_head({buffer.data(), filled}, head);
  return filled;
}

void upsert(int fd, const Target& target, const Signer& signer, const std::string& partition_key,
            std::string_view body, std::vector<char>& buffer) {
  std::string request = head(target, signer, "POST", "/" + target.container_link() + "/docs",
                             signer.authorization("post", "docs", target.container_link()));
  request += "x-ms-documentdb-is-upsert: true\r\nx-ms-documentdb-partitionkey: [\"" +
             partition_key + "\"]\r\n";
  request += "content-type: application/json\r\ncontent-length: " + std::to_string(body.size());
  request.append("\r\n\r\n").append(body);
  send_all(fd, request);
  Head answered;
  receive_response(fd, buffer, answered);
  if (answered.status != 200 && answered.status != 201) {
    fail("a write was answered " + std::to_string(answered.status));
  }
}

double quantile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return 0;
  return sorted[std::min(sorted.size() - 1,
                         static_cast<std::size_t>(q * static_cast<double>(sorted.size())))];
}

}  // namespace bench

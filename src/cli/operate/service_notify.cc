#include "cli/operate/service_notify.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "base/file_descriptor.h"

namespace orrery::cli {

void notify_service_manager(std::string_view state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr) return;
  const std::string_view name = path;
  sockaddr_un address{};
  // A path, or with an @ the name of a socket that is in no directory.
  if (name.size() < 2 || name.size() >= sizeof address.sun_path ||
      (name[0] != '/' && name[0] != '@')) {
    return;
  }
  address.sun_family = AF_UNIX;
  std::ranges::copy(name, address.sun_path);
  if (name[0] == '@') address.sun_path[0] = '\0';
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  ::sendto(socket.number(), state.data(), state.size(), MSG_NOSIGNAL,
           reinterpret_cast<const sockaddr*>(&address), size);
}

}  // namespace orrery::cli

// Telling systemd how far a service is: Type=notify of a unit.
#pragma once

#include <string_view>

namespace orrery::cli {

/// Sends a state such as "READY=1" or "STOPPING=1" to whoever started this process and asked for it
/// by NOTIFY_SOCKET. Does nothing when nobody did; a failure is nobody's concern here.
void notify_service_manager(std::string_view state);

}  // namespace orrery::cli

#include "server/config.h"

#include <boost/asio/ip/address.hpp>

namespace orrery::server {

bool Config::listens_on_loopback() const {
  if (listen_address == "localhost") return true;
  boost::system::error_code failure;
  const auto parsed = boost::asio::ip::make_address(listen_address, failure);
  return !failure && parsed.is_loopback();
}

}  // namespace orrery::server

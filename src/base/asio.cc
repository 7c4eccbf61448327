// Asio is compiled here once (BOOST_ASIO_SEPARATE_COMPILATION); everybody else sees declarations.
#include <boost/asio/impl/src.hpp>

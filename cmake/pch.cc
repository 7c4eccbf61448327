// Holds the precompiled header, and Asio's own implementation: with BOOST_ASIO_SEPARATE_COMPILATION
// it is compiled in src/base/asio.cc and nowhere else.

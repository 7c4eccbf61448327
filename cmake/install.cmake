# What `cmake --install` gives: the server's binary, the public headers, and the C++ SDK as two
# archives or one shared library, for find_package(orrery) and pkg-config. Nothing in it names an
# absolute path: the directory may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Modules are separate libraries only for us. Whoever uses the SDK gets one archive with all that
# stands behind its headers.
add_library(orrery_client_archive STATIC
  $<TARGET_OBJECTS:orrery_base> $<TARGET_OBJECTS:orrery_json>
  $<TARGET_OBJECTS:orrery_protocol> $<TARGET_OBJECTS:orrery_client>)
set_target_properties(orrery_client_archive PROPERTIES
  OUTPUT_NAME orrery-client EXPORT_NAME client LINKER_LANGUAGE CXX)
target_compile_features(orrery_client_archive INTERFACE cxx_std_20)
target_include_directories(orrery_client_archive INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(orrery_client_archive INTERFACE
  CURL::libcurl OpenSSL::SSL OpenSSL::Crypto simdjson::simdjson spdlog::spdlog fmt::fmt
  Threads::Threads)

add_library(orrery_processor_archive STATIC $<TARGET_OBJECTS:orrery_processor>)
set_target_properties(orrery_processor_archive PROPERTIES
  OUTPUT_NAME orrery-processor EXPORT_NAME processor LINKER_LANGUAGE CXX)
target_link_libraries(orrery_processor_archive INTERFACE orrery_client_archive)

# Both in one shared library: two of them would each have an Asio of their own, and share its
# objects. Only what is ours is exported: templates of the standard library that we have made use of
# are nobody else's business.
add_library(orrery_shared SHARED
  $<TARGET_OBJECTS:orrery_base> $<TARGET_OBJECTS:orrery_json>
  $<TARGET_OBJECTS:orrery_protocol> $<TARGET_OBJECTS:orrery_client>
  $<TARGET_OBJECTS:orrery_processor>)
set_target_properties(orrery_shared PROPERTIES
  OUTPUT_NAME orrery EXPORT_NAME orrery LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
target_link_options(orrery_shared PRIVATE
  -Wl,--as-needed -Wl,--no-undefined -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map)
target_compile_features(orrery_shared INTERFACE cxx_std_20)
target_include_directories(orrery_shared INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(orrery_shared PRIVATE
  CURL::libcurl OpenSSL::SSL OpenSSL::Crypto simdjson::simdjson spdlog::spdlog fmt::fmt
  Threads::Threads)

install(TARGETS orrery RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/orrery
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS orrery_client_archive orrery_processor_archive orrery_shared
  EXPORT orrery
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/orrery)
install(EXPORT orrery NAMESPACE orrery:: FILE orreryTargets.cmake DESTINATION ${package_directory})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/orreryConfig.cmake.in
  ${CMAKE_BINARY_DIR}/package/orreryConfig.cmake INSTALL_DESTINATION ${package_directory})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/orreryConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/package/orreryConfig.cmake
              ${CMAKE_BINARY_DIR}/package/orreryConfigVersion.cmake
  DESTINATION ${package_directory})

# From where a .pc file lies to the prefix.
file(RELATIVE_PATH pc_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
foreach(library orrery orrery-client orrery-processor)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${library}.pc.in
    ${CMAKE_BINARY_DIR}/package/${library}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/package/${library}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

# How a module of Orrery becomes a library, its unit tests, and its fuzz targets.

find_package(Boost 1.81.0 CONFIG REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(RocksDB 7.8 REQUIRED)
find_package(simdjson REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(CURL REQUIRED)
find_package(prometheus-cpp REQUIRED COMPONENTS core)
find_package(GTest REQUIRED)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(re2 REQUIRED IMPORTED_TARGET re2)
# It asks for -pthread, which the common precompiled header is made without.
set_property(TARGET PkgConfig::re2 PROPERTY INTERFACE_COMPILE_OPTIONS "")
# Debian's shared library hides the hooks, by which RE2 tells that it has to search the slow way.
find_library(ORRERY_RE2_ARCHIVE NAMES libre2.a REQUIRED)
set_property(TARGET PkgConfig::re2 PROPERTY INTERFACE_LINK_LIBRARIES ${ORRERY_RE2_ARCHIVE})

option(ORRERY_FUZZ "Build the fuzz targets with libFuzzer" OFF)
# Most of what a file costs to compile are the templates of its headers: several files together cost
# little more than one. Switched off for editing (preset debug) and for clang-tidy, which wants single
# files.
option(ORRERY_UNITY "Compile several source files as one" ON)
set(CMAKE_UNITY_BUILD ${ORRERY_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)

add_library(orrery_options INTERFACE)
target_compile_options(orrery_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Werror)
target_include_directories(orrery_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(orrery_options INTERFACE
  BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_SEPARATE_COMPILATION SPDLOG_FMT_EXTERNAL
  ORRERY_VERSION="${PROJECT_VERSION}")
target_link_libraries(orrery_options INTERFACE
  Boost::headers fmt::fmt nlohmann_json::nlohmann_json Threads::Threads)

# Asio, and the coroutine machinery that comes with it, is most of what a translation unit costs
# to compile; after it come the headers of libraries that are one large header each. They are parsed
# once for all modules.
add_library(orrery_pch OBJECT cmake/pch.cc)
target_link_libraries(orrery_pch PUBLIC orrery_options)
# With the times of the headers in it a precompiled header would be another one in every clone, and
# ccache could give one to a clone that refuses it.
set(ORRERY_PCH_OPTIONS "SHELL:-Xclang -fno-pch-timestamp")
# Names of functions and lines for profiles and stack traces of what is shipped; tests need none.
set(ORRERY_DEBUG_INFO $<$<CONFIG:Release>:-g1>)
target_compile_options(orrery_pch PRIVATE ${ORRERY_PCH_OPTIONS} ${ORRERY_DEBUG_INFO})
target_precompile_headers(orrery_pch PRIVATE cmake/pch.h)

# Tests are compiled quickly rather than well, since they are about half of all there is to compile:
# without optimisation, and with GoogleTest parsed once.
set(ORRERY_TEST_OPTIONS -O0)
add_library(orrery_test_pch OBJECT cmake/test_pch.cc)
target_link_libraries(orrery_test_pch PUBLIC orrery_options GTest::gmock)
target_compile_options(orrery_test_pch PRIVATE ${ORRERY_TEST_OPTIONS} ${ORRERY_PCH_OPTIONS})
target_precompile_headers(orrery_test_pch PRIVATE cmake/test_pch.h)

# Runs a fuzz target over its corpus, without libFuzzer.
add_library(fuzz_corpus_runner OBJECT tests/fuzz/corpus_runner.cc)
target_compile_options(fuzz_corpus_runner PRIVATE ${ORRERY_TEST_OPTIONS})

add_custom_target(fuzzers)
add_custom_target(unit_tests)

# orrery_module(NAME DEPS module… LIBS target…)
# The .cc files below src/NAME are the library, *_test.cc its unit tests, each *_fuzz.cc one fuzz
# target.
function(orrery_module name)
  cmake_parse_arguments(arg "" "" "DEPS;LIBS" ${ARGN})
  set(dir ${PROJECT_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cc)
  set(tests ${sources})
  set(fuzzers ${sources})
  list(FILTER sources EXCLUDE REGEX "(_(test|fuzz)|/main)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  list(TRANSFORM arg_DEPS PREPEND orrery_ OUTPUT_VARIABLE deps)
  if(sources)
    add_library(orrery_${name} STATIC ${sources})
    target_link_libraries(orrery_${name} PUBLIC orrery_options ${deps} ${arg_LIBS})
    target_compile_options(orrery_${name} PRIVATE ${ORRERY_DEBUG_INFO})
    target_precompile_headers(orrery_${name} REUSE_FROM orrery_pch)
  else()
    add_library(orrery_${name} INTERFACE)
    target_link_libraries(orrery_${name} INTERFACE orrery_options ${deps} ${arg_LIBS})
  endif()
  if(tests)
    add_executable(${name}_tests ${tests})
    target_link_libraries(${name}_tests PRIVATE orrery_${name} GTest::gmock GTest::gtest_main)
    target_compile_options(${name}_tests PRIVATE ${ORRERY_TEST_OPTIONS})
    target_precompile_headers(${name}_tests REUSE_FROM orrery_test_pch)
    add_dependencies(unit_tests ${name}_tests)
    add_test(NAME unit.${name} COMMAND ${name}_tests --gtest_brief=1)
    set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT 900)
  endif()
  foreach(fuzzer ${fuzzers})
    get_filename_component(target ${fuzzer} NAME_WE)
    add_executable(${target} ${fuzzer})
    target_link_libraries(${target} PRIVATE orrery_${name})
    add_dependencies(fuzzers ${target})
    if(ORRERY_FUZZ)
      target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    else()
      target_compile_options(${target} PRIVATE ${ORRERY_TEST_OPTIONS})
      target_link_libraries(${target} PRIVATE fuzz_corpus_runner)
      add_test(NAME fuzz.${target} COMMAND ${target} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${target})
      set_tests_properties(fuzz.${target} PROPERTIES LABELS fuzz TIMEOUT 600)
    endif()
  endforeach()
endfunction()

# orrery_explorer(TARGET): the files of explorer/ become part of TARGET.
function(orrery_explorer target)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/explorer/*.html ${PROJECT_SOURCE_DIR}/explorer/*.js
                                    ${PROJECT_SOURCE_DIR}/explorer/*.css ${PROJECT_SOURCE_DIR}/explorer/*.svg)
  set(out ${CMAKE_BINARY_DIR}/explorer_files.cc)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} "-DFILES=${files}" -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding the explorer" VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()

# orrery_build_commit(): a library that knows the commit it was built from. It is asked for at every
# build, and compiled only when it is another one.
function(orrery_build_commit)
  set(out ${CMAKE_BINARY_DIR}/build_commit.cc)
  add_custom_target(orrery_find_commit BYPRODUCTS ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DSOURCE=${PROJECT_SOURCE_DIR}
            -P ${PROJECT_SOURCE_DIR}/cmake/build_commit.cmake
    VERBATIM)
  add_library(orrery_commit OBJECT ${out})
  target_include_directories(orrery_commit PRIVATE ${PROJECT_SOURCE_DIR}/src)
  add_dependencies(orrery_commit orrery_find_commit)
endfunction()

# orrery_program(NAME): the binary.
function(orrery_program name)
  add_executable(${name} ${PROJECT_SOURCE_DIR}/src/cli/main.cc)
  target_link_libraries(${name} PRIVATE orrery_cli orrery_commit)
  # A request allocates many small things. Sanitizers, of other configurations, have an allocator of
  # their own.
  target_link_libraries(${name} PRIVATE $<$<CONFIG:Release>:jemalloc>)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()

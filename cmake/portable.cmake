# orrery_portable: the same program for a machine that has none of our libraries. Archives are linked
# where Debian has them; packaging/portable.py carries the rest along, the C library and its loader
# included. OpenSSL stays shared, since libcurl uses it too and there must be one of it; so do zlib and
# zstd.
set(portable_archives rocksdb snappy lz4 bz2 stemmer jemalloc curl)
# What the archive of libcurl needs. Their -dev packages are not needed to build Orrery, so that there
# are no names without a version.
set(portable_libraries z zstd :libnghttp2.so.14 :libidn2.so.0 :libssh2.so.1 :libpsl.so.5
                       :libgssapi_krb5.so.2 :libbrotlidec.so.1)
set(portable_files "")
foreach(name ${portable_archives})
  find_library(ORRERY_ARCHIVE_${name} NAMES lib${name}.a REQUIRED)
  list(APPEND portable_files ${ORRERY_ARCHIVE_${name}})
endforeach()
list(TRANSFORM portable_libraries PREPEND -l)

orrery_program(orrery_portable)
target_sources(orrery_portable PRIVATE ${PROJECT_SOURCE_DIR}/packaging/portable/carried.cc)
set_source_files_properties(${PROJECT_SOURCE_DIR}/packaging/portable/carried.cc PROPERTIES
                            SKIP_UNITY_BUILD_INCLUSION ON)
# An archive that stands before the shared library of the same name is the one that symbols are taken
# from, and --as-needed then drops the shared one. Sections that nothing refers to go, too. Symbols of
# archives are for the program alone; of jemalloc they are not, since everybody's memory is to be its.
target_link_options(orrery_portable PRIVATE
  -Wl,--as-needed -Wl,--gc-sections -Wl,--icf=safe -Wl,--build-id -Wl,-z,pack-relative-relocs
  -Wl,--exclude-libs,librocksdb.a:libsnappy.a:liblz4.a:libbz2.a:libstemmer.a:libre2.a:libcurl.a
  ${portable_files} ${portable_libraries})
# The loader that portable.py carries finds the libraries beside the program. RUNPATH would hold for
# the program's own libraries only, and not for those that they need.
target_link_options(orrery_portable PRIVATE -Wl,--disable-new-dtags)
set_target_properties(orrery_portable PROPERTIES BUILD_RPATH "$ORIGIN")
target_link_options(orrery_portable PRIVATE
  -Wl,--wrap=newlocale -Wl,--wrap=curl_easy_init -Wl,--wrap=curl_easy_reset)
# libcurl's table of protocols, at whose end stands a null, begins with https and http. It ends where
# LDAP would stand, and the libraries of LDAP and RTMP, GnuTLS among them, are not needed: 6 MB.
foreach(protocol ldap ldaps rtmp rtmpt rtmpe rtmpte rtmps rtmpts)
  target_link_options(orrery_portable PRIVATE -Wl,--defsym=Curl_handler_${protocol}=0)
endforeach()
# Which archives something was taken from, for the list of contents.
target_link_options(orrery_portable PRIVATE
  -Wl,--print-archive-stats=${CMAKE_BINARY_DIR}/orrery_portable.archives)
set_target_properties(orrery_portable PROPERTIES EXCLUDE_FROM_ALL ON)

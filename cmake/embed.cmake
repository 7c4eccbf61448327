# Writes a C++ source that holds the explorer's files:
#   cmake -DOUT=explorer_files.cc -DFILES="a/index.html;a/app.js" -P embed.cmake
set(declarations "")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} text)
  file(SHA256 ${file} hash)
  string(SUBSTRING ${hash} 0 32 hash)
  string(FIND "${text}" ")orrery\"" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${file} contains )orrery\", which ends the literal that would hold it")
  endif()
  string(APPEND declarations "    {\"${name}\", R\"(\"${hash}\")\", R\"orrery(${text})orrery\"},\n")
endforeach()
set(source "// Written by cmake/embed.cmake from explorer/. Do not edit.
#include \"api/admin/explorer.h\"

namespace orrery::api::explorer {
namespace {

constexpr File kFiles[] = {
${declarations}};

}  // namespace

std::span<const File> files() { return kFiles; }

}  // namespace orrery::api::explorer
")
file(WRITE ${OUT} "${source}")

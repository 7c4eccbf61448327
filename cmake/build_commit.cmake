# Writes the commit of SOURCE into the C++ source OUT, if it is not there yet:
#   cmake -DOUT=build_commit.cc -DSOURCE=. -P build_commit.cmake
# An archive of the sources has no commit unless ORRERY_COMMIT in the environment names it.
set(commit "$ENV{ORRERY_COMMIT}")
if(commit STREQUAL "")
  execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(source "// Written by cmake/build_commit.cmake. Do not edit.
#include \"cli/build_commit.h\"

namespace orrery::cli {
const char* const kBuildCommit = \"${commit}\";
}
")
if(EXISTS ${OUT})
  file(READ ${OUT} before)
endif()
if(NOT source STREQUAL "${before}")
  file(WRITE ${OUT} "${source}")
endif()

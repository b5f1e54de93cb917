# cmake -DSOURCE=<tree> -DOUTPUT=<source.cc> -P WriteCommit.cmake
# Writes a source whose function trainer::BuildCommit() returns the commit of the tree: "1a2b3c4d5e6f",
# with " and changes" where files differ from it, or "unknown" outside of a repository.
cmake_minimum_required(VERSION 3.25)
set(commit unknown)
find_program(git git)
if(git AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${git} rev-parse --short=12 HEAD WORKING_DIRECTORY ${SOURCE}
                  OUTPUT_VARIABLE found ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(found MATCHES "^[0-9a-f]+$")
    set(commit ${found})
    execute_process(COMMAND ${git} --no-optional-locks status --porcelain --untracked-files=no
                    WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      string(APPEND commit " and changes")
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT "#include <string_view>
namespace trainer {
std::string_view BuildCommit();
std::string_view BuildCommit() { return \"@commit@\"; }
}  // namespace trainer
")

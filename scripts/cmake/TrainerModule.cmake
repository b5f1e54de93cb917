# trainer_module(<name> DEPS <modules> [LIBS <imported targets>] [KERNELS])
# Makes src/<name> an object library, which may include only the modules of DEPS.
# KERNELS: its files may contain device code, which is written once for both devices; with
# TRAINER_CUDA nvcc compiles the files that contain it.

# The generated protobuf code: one library below every module.
file(GLOB protos CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/proto/*.proto)
set(proto_out ${PROJECT_BINARY_DIR}/proto)
file(MAKE_DIRECTORY ${proto_out})
foreach(proto ${protos})
  get_filename_component(stem ${proto} NAME_WE)
  list(APPEND proto_sources ${proto_out}/${stem}.pb.cc)
  list(APPEND proto_headers ${proto_out}/${stem}.pb.h)
endforeach()
add_custom_command(OUTPUT ${proto_sources} ${proto_headers}
  COMMAND protobuf::protoc --cpp_out=${proto_out} -I${PROJECT_SOURCE_DIR}/proto ${protos}
  DEPENDS ${protos} VERBATIM)
# The comments of the fields, for `trainer layers`: the generated C++ code does not keep them.
set(schema ${PROJECT_BINARY_DIR}/proto/schema)
set(embed ${PROJECT_SOURCE_DIR}/scripts/cmake/EmbedFile.cmake)
add_custom_command(OUTPUT ${schema}.cc BYPRODUCTS ${schema}.bin
  COMMAND protobuf::protoc --include_source_info --descriptor_set_out=${schema}.bin
          -I${PROJECT_SOURCE_DIR}/proto ${protos}
  COMMAND ${CMAKE_COMMAND} -DINPUT=${schema}.bin -DOUTPUT=${schema}.cc -DNAME=SchemaBytes -P ${embed}
  DEPENDS ${protos} ${embed} VERBATIM)
# For code without numeric loops: O1 takes two thirds of the time to compile. Later flags win.
set(cold_flags $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
add_library(trainer_proto OBJECT ${proto_sources} ${proto_headers} ${schema}.cc)
set_target_properties(trainer_proto PROPERTIES
  UNITY_BUILD OFF  # its file-local names clash
  POSITION_INDEPENDENT_CODE ${TRAINER_LIBRARY})
target_compile_options(trainer_proto PRIVATE ${cold_flags})
target_include_directories(trainer_proto SYSTEM PUBLIC ${PROJECT_BINARY_DIR}/proto)
target_link_libraries(trainer_proto PUBLIC protobuf::libprotobuf)
set_property(GLOBAL APPEND PROPERTY TRAINER_MODULES trainer_proto)

# Precompiles the generated headers and common standard headers, because parsing them takes two
# thirds of a compilation. Each source still includes what it uses.
function(trainer_precompiled target)
  add_library(${target} OBJECT ${PROJECT_SOURCE_DIR}/scripts/cmake/precompiled.cc)
  target_link_libraries(${target} PRIVATE trainer_proto trainer_flags ${ARGN})
  list(TRANSFORM proto_headers REPLACE ".*/(.*)$" "<\\1>" OUTPUT_VARIABLE headers)
  if(CCACHE)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER
      "${PROJECT_SOURCE_DIR}/scripts/cmake/without_last_output.sh;${CMAKE_CXX_COMPILER_LAUNCHER}")
  endif()
  target_precompile_headers(${target} PRIVATE ${headers} <algorithm> <array> <charconv> <cmath>
    <cstdint> <cstring> <functional> <iostream> <map> <memory> <mutex> <optional> <set> <span>
    <sstream> <string> <string_view> <utility> <vector> <google/protobuf/text_format.h>)
endfunction()
trainer_precompiled(trainer_headers)

# Sets <out> to whether the file contains device code, i.e. includes backend/loops/launch.h directly
# or through the project's headers, such as map.h. An #error in map.h reports a file that began to
# include it after CMake ran.
function(trainer_holds_device_code out file module)
  if(file MATCHES "/backend/loops/launch[.]h$")
    set(${out} TRUE PARENT_SCOPE)
    return()
  endif()
  get_property(found GLOBAL PROPERTY "TRAINER_DEVICE_CODE ${file}")
  if("${found}" STREQUAL "")
    set(found FALSE)
    set_property(GLOBAL PROPERTY "TRAINER_DEVICE_CODE ${file}" FALSE)
    file(STRINGS ${file} includes REGEX "^#include \"")
    list(TRANSFORM includes REPLACE "^#include \"(.*)\".*" "\\1")
    list(TRANSFORM includes PREPEND ${PROJECT_SOURCE_DIR}/include/ REGEX "^trainer/")
    list(TRANSFORM includes PREPEND ${PROJECT_SOURCE_DIR}/src/${module}/ REGEX "^[^/]")
    foreach(include ${includes})
      if(NOT found AND EXISTS ${include})
        trainer_holds_device_code(found ${include} ${module})
      endif()
    endforeach()
    set_property(GLOBAL PROPERTY "TRAINER_DEVICE_CODE ${file}" ${found})
  endif()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

function(trainer_compile_by_nvcc module sources)
  foreach(source ${sources})
    trainer_holds_device_code(found ${source} ${module})
    if(found)
      set_source_files_properties(${source} PROPERTIES LANGUAGE CUDA)
    endif()
    if(source MATCHES "/cuda/bindings/.*_linked[.]cc$")  # only these files include CUDA's headers
      set_source_files_properties(${source} PROPERTIES
        COMPILE_OPTIONS "-isystem${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES}"
        SKIP_PRECOMPILE_HEADERS ON)
    elseif(source MATCHES "/cuda/bindings/find_gpus[.]cc$")
      string(REPLACE ";" " " architectures "${CMAKE_CUDA_ARCHITECTURES}")
      set_source_files_properties(${source} PROPERTIES
        COMPILE_DEFINITIONS "TRAINER_CUDA_ARCHITECTURES=\"${architectures}\"")
    endif()
  endforeach()
endfunction()

function(trainer_module name)
  cmake_parse_arguments(arg "KERNELS;COLD" "" "DEPS;LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cc)
  if(TRAINER_CUDA_MODE STREQUAL "OFF")
    list(FILTER sources EXCLUDE REGEX "/src/backend/cuda/")
  elseif(TRAINER_CUDA_MODE STREQUAL "EMULATED")  # these files need CUDA's headers
    list(FILTER sources EXCLUDE REGEX "/src/backend/cuda/bindings/.*_linked[.]cc$")
  endif()
  add_library(trainer_${name} OBJECT ${sources})
  add_library(trainer::${name} ALIAS trainer_${name})
  set_property(GLOBAL PROPERTY TRAINER_DEPS_${name} ${arg_DEPS})
  list(TRANSFORM arg_DEPS PREPEND trainer_)
  target_include_directories(trainer_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include
                                             PRIVATE ${PROJECT_SOURCE_DIR}/src/${name})
  target_link_libraries(trainer_${name} PUBLIC ${arg_DEPS} trainer_proto ${arg_LIBS} Threads::Threads
                                        ${CMAKE_DL_LIBS}
                                        PRIVATE trainer_flags)
  target_precompile_headers(trainer_${name} REUSE_FROM trainer_headers)
  set_property(GLOBAL APPEND PROPERTY TRAINER_MODULES trainer_${name})  # a program links them all
  if(arg_COLD)
    target_compile_options(trainer_${name} PRIVATE ${cold_flags})
  endif()
  if(arg_KERNELS AND TRAINER_CUDA_MODE STREQUAL "ON")
    trainer_compile_by_nvcc(${name} "${sources}")
  endif()
endfunction()

# Sets <out> to the targets of the named modules and of all modules that they use.
function(trainer_closure out)
  set(names ${ARGN})
  set(targets trainer_proto)
  while(names)
    list(POP_FRONT names name)
    if(NOT trainer_${name} IN_LIST targets)
      list(APPEND targets trainer_${name})
      get_property(deps GLOBAL PROPERTY TRAINER_DEPS_${name})
      list(APPEND names ${deps})
    endif()
  endwhile()
  set(${out} ${targets} PARENT_SCOPE)
endfunction()

# trainer_job_templates(<module>): compiles the batch scripts into the module. SlurmScript() returns
# scripts/jobs/slurm.sh.in.
function(trainer_job_templates module)
  foreach(system Slurm Pbs Lsf Sqsub Mpirun)
    string(TOLOWER ${system} file)
    set(template ${PROJECT_SOURCE_DIR}/scripts/jobs/${file}.sh.in)
    set(source ${PROJECT_BINARY_DIR}/jobs/${file}.cc)
    add_custom_command(OUTPUT ${source}
      COMMAND ${CMAKE_COMMAND} -DINPUT=${template} -DOUTPUT=${source} -DNAME=${system}Script
              -P ${embed}
      DEPENDS ${template} ${embed} VERBATIM)
    target_sources(trainer_${module} PRIVATE ${source})
  endforeach()
endfunction()

# trainer_program(<name> <folder>): the folder's files plus every module. Tests link <name>_files.
function(trainer_program name folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cc)
  get_property(modules GLOBAL PROPERTY TRAINER_MODULES)
  # Runs in each build, but changes the file only when the commit changes.
  set(commit ${PROJECT_BINARY_DIR}/commit.cc)
  add_custom_target(${name}_commit BYPRODUCTS ${commit}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUTPUT=${commit}
            -P ${PROJECT_SOURCE_DIR}/scripts/cmake/WriteCommit.cmake VERBATIM)
  # The pages of `trainer help VERB`: HelpFile("train") returns tools/help/train.txt.
  file(GLOB_RECURSE pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/help/*.txt)
  set(help ${PROJECT_BINARY_DIR}/help_files.cc)
  set(embed_help ${PROJECT_SOURCE_DIR}/scripts/cmake/EmbedHelp.cmake)
  add_custom_command(OUTPUT ${help}
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${PROJECT_SOURCE_DIR}/${folder}/help -DOUTPUT=${help}
            -P ${embed_help}
    DEPENDS ${pages} ${embed_help} VERBATIM)
  add_library(${name}_files OBJECT ${sources} ${help} ${commit})
  add_dependencies(${name}_files ${name}_commit)
  target_link_libraries(${name}_files PRIVATE ${modules} trainer_flags glog::glog gflags)
  target_compile_options(${name}_files PRIVATE ${cold_flags})
  target_precompile_headers(${name}_files REUSE_FROM trainer_headers)
  target_include_directories(${name}_files PRIVATE ${PROJECT_SOURCE_DIR}/${folder})
  trainer_executable(${name} ${name}_files)
endfunction()

# trainer_executable(<name> <object libraries>): links these and every module. The program looks for
# libraries first in the folder lib next to it, where scripts/bundle.sh puts them. This uses RPATH,
# which, unlike RUNPATH, also applies to the libraries of libraries.
function(trainer_executable name)
  get_property(modules GLOBAL PROPERTY TRAINER_MODULES)
  add_executable(${name})
  target_link_libraries(${name} PRIVATE ${ARGN} ${modules} glog::glog gflags)
  trainer_link_cuda(${name})
  set_property(TARGET ${name} APPEND PROPERTY BUILD_RPATH "$ORIGIN/lib")
  target_link_options(${name} PRIVATE -Wl,--disable-new-dtags)
endfunction()

# Links CUDA's runtime statically, so that the program also starts on machines without CUDA.
function(trainer_link_cuda name)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX CUDA_RUNTIME_LIBRARY Static)
endfunction()

# trainer_module(<name> DEPS <modules> [LIBS <imported targets>] [KERNELS])
# One folder under src/ becomes one object library. DEPS is all it may include.
# KERNELS: its files hold device code; with TRAINER_CUDA_OBJECTS nvcc compiles them as well, to
# objects only, so that the seam between the devices holds in a build without a GPU.

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
# The comments of the fields, for `trainer layers`: C++ code generated from them keeps none.
set(schema ${PROJECT_BINARY_DIR}/proto/schema)
set(embed ${PROJECT_SOURCE_DIR}/scripts/cmake/EmbedFile.cmake)
add_custom_command(OUTPUT ${schema}.cc BYPRODUCTS ${schema}.bin
  COMMAND protobuf::protoc --include_source_info --descriptor_set_out=${schema}.bin
          -I${PROJECT_SOURCE_DIR}/proto ${protos}
  COMMAND ${CMAKE_COMMAND} -DINPUT=${schema}.bin -DOUTPUT=${schema}.cc -DNAME=SchemaBytes -P ${embed}
  DEPENDS ${protos} ${embed} VERBATIM)
add_library(trainer_proto OBJECT ${proto_sources} ${proto_headers} ${schema}.cc)
target_include_directories(trainer_proto SYSTEM PUBLIC ${PROJECT_BINARY_DIR}/proto)
target_link_libraries(trainer_proto PUBLIC protobuf::libprotobuf)
set_property(GLOBAL APPEND PROPERTY TRAINER_MODULES trainer_proto)

# Headers that most sources read, parsed once: the generated ones and those of the standard library
# take two thirds of the time of a compilation. A source still includes what it uses.
function(trainer_precompiled target)
  add_library(${target} OBJECT ${PROJECT_SOURCE_DIR}/scripts/cmake/precompiled.cc)
  target_link_libraries(${target} PRIVATE trainer_proto trainer_flags ${ARGN})
  list(TRANSFORM proto_headers REPLACE ".*/(.*)$" "<\\1>" OUTPUT_VARIABLE headers)
  target_precompile_headers(${target} PRIVATE ${headers} <algorithm> <array> <charconv> <cmath>
    <cstdint> <cstring> <functional> <iostream> <map> <memory> <mutex> <optional> <set> <span>
    <sstream> <string> <string_view> <utility> <vector> <google/protobuf/text_format.h>)
endfunction()
trainer_precompiled(trainer_headers)

function(trainer_module name)
  cmake_parse_arguments(arg "KERNELS" "" "DEPS;LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cc)
  add_library(trainer_${name} OBJECT ${sources})
  add_library(trainer::${name} ALIAS trainer_${name})
  set_property(GLOBAL PROPERTY TRAINER_DEPS_${name} ${arg_DEPS})
  list(TRANSFORM arg_DEPS PREPEND trainer_)
  target_include_directories(trainer_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include
                                             PRIVATE ${PROJECT_SOURCE_DIR}/src/${name})
  target_link_libraries(trainer_${name} PUBLIC ${arg_DEPS} trainer_proto ${arg_LIBS} Threads::Threads
                                        PRIVATE trainer_flags)
  if(arg_KERNELS)
    target_link_libraries(trainer_${name} PRIVATE OpenMP::OpenMP_CXX)
  endif()
  target_precompile_headers(trainer_${name} REUSE_FROM trainer_headers)
  set_property(GLOBAL APPEND PROPERTY TRAINER_MODULES trainer_${name})  # what a program links
  if(arg_KERNELS AND TRAINER_CUDA_OBJECTS)
    trainer_cuda_objects(${name} "${sources}")
  endif()
endfunction()

# The targets of the named modules and of all they use, for a program that links only those.
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

# A language is enabled in file scope or not at all. CMake 3.25 does not know nvcc's flag for C++20.
if(TRAINER_CUDA_OBJECTS)
  enable_language(CUDA)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()

# The same sources through nvcc, from copies that end in .cu so that both builds can stand side by
# side.
function(trainer_cuda_objects name sources)
  foreach(source ${sources})
    get_filename_component(stem ${source} NAME_WE)
    set(copy ${PROJECT_BINARY_DIR}/cuda/${name}/${stem}.cu)
    file(GENERATE OUTPUT ${copy} CONTENT "#include \"${source}\"\n")
    list(APPEND copies ${copy})
  endforeach()
  add_library(trainer_${name}_cuda OBJECT ${copies})
  target_include_directories(trainer_${name}_cuda PRIVATE ${PROJECT_SOURCE_DIR}/include
    ${PROJECT_SOURCE_DIR}/src/${name} $<TARGET_PROPERTY:trainer_${name},INCLUDE_DIRECTORIES>)
  target_compile_definitions(trainer_${name}_cuda PRIVATE TRAINER_CUDA=1)
  target_compile_options(trainer_${name}_cuda PRIVATE --extended-lambda --expt-relaxed-constexpr)
  set_target_properties(trainer_${name}_cuda PROPERTIES CUDA_STANDARD 20)
  add_dependencies(trainer_${name}_cuda trainer_proto)
endfunction()

# trainer_program(<name> <folder>): the folder's files plus every module.
function(trainer_program name folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cc)
  get_property(modules GLOBAL PROPERTY TRAINER_MODULES)
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${modules} trainer_flags glog::glog gflags)
  target_precompile_headers(${name} REUSE_FROM trainer_headers)
  target_compile_definitions(${name} PRIVATE TRAINER_VERSION="${PROJECT_VERSION}")
  install(TARGETS ${name})
endfunction()

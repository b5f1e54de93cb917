# Every library as an imported target; Debian 12 ships them all. scripts/setup.sh installs them.
find_package(Threads REQUIRED)
find_package(Protobuf 3.12 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(HDF5 REQUIRED COMPONENTS C)
find_package(glog REQUIRED)
find_package(gflags REQUIRED)

# trainer_library(<target> <header> <library>): a library without a CMake package of its own.
function(trainer_library target header library)
  string(REPLACE "::" "_" key ${target})
  find_path(${key}_INCLUDE ${header} REQUIRED)
  find_library(${key}_LIBRARY ${library} REQUIRED)
  add_library(${target} UNKNOWN IMPORTED)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${${key}_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${${key}_INCLUDE})
endfunction()
trainer_library(dnnl::dnnl dnnl.h dnnl)
trainer_library(lmdb::lmdb lmdb.h lmdb)
trainer_library(leveldb::leveldb leveldb/db.h leveldb)
trainer_library(turbojpeg::turbojpeg turbojpeg.h turbojpeg)

# oneDNN's parallel regions run on the program's own threads: src/backend/cpu/openmp.cc stands in for
# libgomp, with the functions that Debian's oneDNN calls. A build of oneDNN that calls others would
# mix two runtimes.
set(openmp_functions GOMP_parallel GOMP_barrier omp_get_thread_num omp_get_num_threads
    omp_get_max_threads omp_in_parallel)
execute_process(COMMAND ${CMAKE_NM} -D --undefined-only ${dnnl_dnnl_LIBRARY}
                OUTPUT_VARIABLE dnnl_symbols ERROR_QUIET)
string(REGEX MATCHALL "[ ](GOMP|omp|__kmpc)_[A-Za-z0-9_]+" dnnl_calls "${dnnl_symbols}")
list(TRANSFORM dnnl_calls STRIP)
list(REMOVE_ITEM dnnl_calls ${openmp_functions})
if(dnnl_calls)
  message(FATAL_ERROR "${dnnl_dnnl_LIBRARY} calls OpenMP functions that "
          "src/backend/cpu/openmp.cc does not have: ${dnnl_calls}. Build oneDNN with GCC's OpenMP, "
          "or add them there")
endif()
